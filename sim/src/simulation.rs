//! The simulation: a tree of sites and the clients that ask them, on one clock, with everything between them that may go
//! wrong.
//!
//! The nodes and the sessions are the real ones. The simulation moves messages, wakes whoever has a deadline, and asks the
//! oracle after every event. It draws everything it decides from one seed, and nothing in it depends on the machine.

mod access;
mod ahead;
mod beliefs;
mod beside;
mod build;
mod clocks;
mod configurations;
mod directory;
mod domains;
mod editions;
mod election;
mod etcd;
mod fault;
mod holder;
mod judging;
mod kinds;
mod lapses;
mod leadership;
mod looks;
mod node;
mod observer;
mod population;
mod progress;
mod running;
mod shared;
mod templates;
mod tree;
mod using;
mod versions;
mod view;
mod windows;
mod wire;

use std::time::Duration;

use lessor_proto::Time;

use crate::actor::Actor;
use crate::event_queue::EventQueue;
use crate::faults::Fault;
use crate::oracle::{Oracle, Violation};
use crate::plan::SimulationPlan;
use crate::resource::Resource;
use crate::rng::Rng;
use crate::rules::Rules;
use crate::stream::Streams;
use crate::trace::{Entry, Happening, Speaker, Trace};

use self::configurations::Configurations;
pub use self::observer::{News, Observer};
use self::population::Population;
use self::progress::Progress;
pub(crate) use self::templates::TemplateStep;
use self::tree::Tree;
pub use crate::counts::Counts;
pub(crate) use crate::event::{Event, ToHolder, ToNode};

/// A simulation as it stands.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) now: Time,
    pub(crate) rules: Rules,
    pub(crate) rng: Rng,
    pub(crate) queue: EventQueue<Event>,
    pub(crate) tree: Tree,
    pub(crate) population: Population,
    pub(crate) streams: Streams,
    pub(crate) resources: Vec<Resource>,
    pub(crate) configurations: Configurations,
    pub(crate) oracle: Oracle,
    pub(crate) trace: Trace,
    pub(crate) progress: Progress,
}

/// There is never so much to do at one moment.
pub(crate) const ENDLESS: u32 = 1_000_000;

// === impl Simulation ===

impl Simulation {
    /// The simulation of `plan` at its beginning. The seed decides everything else.
    #[must_use]
    pub fn new(seed: u64, plan: &SimulationPlan) -> Simulation {
        build::sim(seed, plan)
    }

    /// Until `until`, which is included.
    ///
    /// # Errors
    /// When a rule is broken: which, when, and what led to it.
    pub fn run_until(&mut self, until: Time) -> Result<(), Box<Violation>> {
        self.run_until_heard(until, &mut ())
    }

    /// The same, with somebody who listens.
    ///
    /// # Errors
    /// When a rule is broken: which, when, and what led to it.
    pub fn run_until_heard(
        &mut self,
        until: Time,
        observer: &mut impl Observer,
    ) -> Result<(), Box<Violation>> {
        while let Some((at, event)) = self.queue.pop(until) {
            let at_once = self.progress.step(at == self.now);
            self.now = at;
            if at_once > ENDLESS {
                self.oracle.fail(21, || format!("{event:?} comes again and again at one moment"));
            }
            self.look_ahead();
            self.oracle.touched.is_of_servers = event.is_of_servers();
            self.happen(event);
            self.consult(Oracle::watch_links);
            self.tell_news(observer);
            self.look()?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// From here on `client` wants so much of each of its resources.
    pub fn set_wants(&mut self, client: u32, wants: f64) {
        for hold in self.population.clients[client as usize].holds.clone() {
            self.want(hold, wants);
        }
        self.drive_client(client);
    }

    /// Runs for `time` longer.
    ///
    /// # Errors
    /// When a rule is broken: which, when, and what led to it.
    pub fn pass(&mut self, time: Duration) -> Result<(), Box<Violation>> {
        self.run_until(self.now + time)
    }

    /// All processes that live beside another of the same id are gone.
    pub fn end_twins(&mut self) {
        for client in self.population.numbers() {
            if self.population.clients[client as usize].twin_of.is_some() {
                self.end_life(client, true);
            }
        }
    }

    /// Some clients want something else.
    pub fn disturb(&mut self) {
        for client in self.population.numbers() {
            if self.rng.chance(300) {
                for hold in self.population.clients[client as usize].holds.clone() {
                    let wants = self.any_wants(hold);
                    self.want(hold, wants);
                }
                self.drive_client(client);
            }
        }
    }

    /// Lets `thousandths` thousandths of the clients want something else, evenly from nothing to `most`.
    pub fn stir(&mut self, thousandths: u32, most: f64) {
        for client in self.population.numbers() {
            if self.rng.chance(thousandths) {
                let wants = self.rng.fraction() * most;
                self.set_wants(client, wants);
            }
        }
    }

    fn tell_news(&mut self, observer: &mut impl Observer) {
        for news in self.progress.news.drain(..) {
            observer.hear(self.now, news);
        }
    }

    fn happen(&mut self, event: Event) {
        if let Some(actor) = self.addressee(&event)
            && let Some(frozen) = &mut self.process_mut(actor).frozen
        {
            frozen.backlog.push_back(event);
            return;
        }
        self.handle(event);
    }

    /// Handles an event whose receiver is not frozen.
    fn handle(&mut self, event: Event) {
        match event {
            Event::Wake(actor) => self.wake(actor),
            Event::ToNode { task, delivery } => self.at_node(task, *delivery),
            Event::ToHolder { holder, delivery } => self.at_holder(holder, *delivery),
            Event::Lapse(hold) => self.lapse(hold),
            Event::Use(hold) => {
                self.use_some(hold);
                self.say_passed(hold);
            }
            Event::Hit(hold) => self.hit_again(hold),
            Event::Request(client) => self.request_domain(client),
            Event::Take(hold, life) => self.take(hold, life),
            Event::Reopen(hold, life) => self.reopen(hold, life),
            Event::Thaw(actor) => self.thaw(actor),
            Event::Fault(kind) => self.gaps(kind),
            Event::Back(client) => self.begin_life(client),
            Event::TwinEnds(client) => self.end_life(client, true),
            Event::Start(task) => self.begin_task(task),
            Event::Wants(client) => self.want_something(client),
            Event::Reload(task) => self.reload(task),
            Event::Access(task) => self.read_rules(task),
            Event::Templates(task, step) => self.step_template(task, *step),
            Event::Regain(whose) => self.give_back_rights(whose),
            Event::Tidy(task, life) => self.tidy(task, life),
            Event::Clock(task, call) => self.at_clock(task, *call),
            Event::Cover(resource) => self.cover(resource, true),
            Event::EtcdCall { caller, id, call } => self.at_etcd(caller, id, call),
            Event::EtcdAnswers { caller, id, result } => self.etcd_answers(caller, id, *result),
            Event::EtcdShows { caller, id, watched } => self.etcd_shows(caller, id, *watched),
            Event::LeasesEnd(site) => self.leases_end(site),
            Event::EtcdThaws => self.thaw_etcd(),
            Event::Stored { task, births } => self.stored(task, births),
            Event::Room(site) => self.room(site),
            Event::Waiting(task) => self.hear_waiting(task),
        }
    }

    /// The actor that has to run for an event to happen.
    fn addressee(&self, event: &Event) -> Option<Actor> {
        match event {
            Event::Wake(actor) => Some(*actor),
            Event::ToHolder { holder, .. } => Some(holder.actor),
            Event::ToNode { task, .. }
            | Event::Reload(task)
            | Event::Access(task)
            | Event::Tidy(task, _)
            | Event::Stored { task, .. }
            | Event::Waiting(task)
            | Event::Clock(task, _) => Some(Actor::Task(*task)),
            Event::Templates(task, step) => match **step {
                TemplateStep::Call { .. } | TemplateStep::Push => None,
                _ => Some(Actor::Task(*task)),
            },
            Event::EtcdAnswers { caller, .. } | Event::EtcdShows { caller, .. } => {
                Some(Actor::Task(caller.task))
            }
            Event::Use(hold) | Event::Hit(hold) | Event::Take(hold, _) | Event::Reopen(hold, _) => {
                Some(Actor::Client(self.population.holdings[*hold as usize].client))
            }
            Event::Wants(client) => Some(Actor::Client(*client)),
            _ => None,
        }
    }

    pub(crate) fn faulty(&self) -> bool {
        self.now < Time::ZERO + self.rules.faults.until
    }

    /// A time until which something goes on, before the faults end.
    pub(crate) fn spell(&mut self) -> Time {
        let spell = self.rules.faults.spell;
        let end = self.now + self.rng.exponential(spell);
        end.min(Time::ZERO + self.rules.faults.until).max(self.now)
    }

    pub(crate) fn note(&mut self, who: Speaker, what: Happening, numbers: [u64; 3]) {
        let local = match who {
            Speaker::Simulation | Speaker::Site(_) => self.now,
            Speaker::Client(client) => self.local(Actor::Client(client)),
            Speaker::Task(task) => self.local(Actor::Task(task)),
        };
        self.trace.add(Entry { at: self.now, local, who, what, numbers });
    }

    /// One of the kinds of fault, and when it comes next.
    fn gaps(&mut self, kind: Fault) {
        if self.faulty()
            && let Some(every) = self.rules.faults.every(kind)
        {
            let pause = self.rng.exponential(every);
            self.later(pause, Event::Fault(kind));
            if self.inject_fault(kind) {
                self.progress.tally.count(kind);
            }
        }
    }
}
