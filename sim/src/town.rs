//! The town: a tree of places and the clients that ask them, on one clock, with everything between them that may go
//! wrong.
//!
//! The nodes and the sessions are the real ones. The town moves messages, wakes whoever has a deadline, and asks the
//! oracle after every event. It draws everything it decides from one seed, and nothing in it depends on the machine.

mod build;
mod holder;
mod mail;
mod mischief;
mod node;
mod reign;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::{Amount, ResourceId, Time};
use lessor_server::repository::{Kind, Policy, Repository};

use crate::agenda::Agenda;
use crate::client::Client;
use crate::dice::Dice;
use crate::faults::{Faults, Mischief, Tally};
use crate::oracle::{Holding, Oracle, Violation};
use crate::place::Place;
use crate::plan::{Manners, TownPlan, Watch};
use crate::process::{Frozen, Party, Process, Sender};
use crate::story::{Line, Story, What, Who};
use crate::stream::Streams;

pub(crate) use self::mail::{Event, ToHolder, ToNode};

/// A town as it stands.
#[derive(Debug)]
pub struct Town {
    pub(crate) seed: u64,
    pub(crate) now: Time,
    pub(crate) rules: Rules,
    pub(crate) dice: Dice,
    pub(crate) agenda: Agenda<Event>,
    pub(crate) places: Vec<Place>,
    pub(crate) clients: Vec<Client>,
    pub(crate) holdings: Vec<Holding>,
    pub(crate) streams: Streams,
    pub(crate) resources: Vec<Resource>,
    addresses: HashMap<Arc<str>, (u32, u8)>,
    pub(crate) oracle: Oracle,
    pub(crate) story: Story,
    pub(crate) counts: Counts,
    pub(crate) tally: Tally,
    events: u64,
    /// How many of them at this very moment.
    at_once: u32,
    /// What clients have come to believe in the event that happens.
    pub(crate) news: Vec<News>,
}

/// There is never so much to do at one moment.
pub(crate) const ENDLESS: u32 = 1_000_000;

/// What of the plan is needed all the time.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) drift: lessor_proto::Drift,
    pub(crate) odd_clocks: bool,
    pub(crate) manners: Manners,
    pub(crate) faults: Faults,
    pub(crate) watch: Watch,
    #[cfg(feature = "mutations")]
    pub(crate) mutation: Option<crate::mutation::Mutation>,
}

/// Something that is shared.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    pub(crate) kind: Kind,
    pub(crate) policy: Policy,
    /// How much there is, as configured.
    pub(crate) capacity: Amount,
    /// Whether a template covers it.
    pub(crate) covered: bool,
}

/// What has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Requests of clients.
    pub client_asks: u64,
    /// Requests of nodes.
    pub node_asks: u64,
    /// Releases.
    pub releases: u64,
    /// Streams opened.
    pub streams: u64,
    /// Messages up streams that are no heartbeat.
    pub reports: u64,
    /// Heartbeats.
    pub heartbeats: u64,
    /// Messages down streams that are no answer to a heartbeat.
    pub pushes: u64,
    /// Answers to heartbeats that bring nothing else.
    pub renewals: u64,
}

/// A client believes something else from here on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct News {
    /// The client.
    pub client: u32,
    /// The resource.
    pub resource: u16,
    /// What it may use.
    pub amount: Amount,
    /// What all clients together may use, in millionths.
    pub total: u128,
}

/// Who wants to hear of every change of what clients believe.
pub trait Observer {
    /// It is `now`, and this has changed.
    fn hear(&mut self, now: Time, news: News);
}

/// Nobody listens.
impl Observer for () {
    fn hear(&mut self, _: Time, _: News) {}
}

// === impl Town ===

impl Town {
    /// The town of `plan` at its beginning, with a leader in every place. The seed decides everything else.
    #[must_use]
    pub fn new(seed: u64, plan: &TownPlan) -> Town {
        build::town(seed, plan)
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
        while let Some((at, event)) = self.agenda.pop(until) {
            self.at_once = if at == self.now { self.at_once + 1 } else { 0 };
            self.now = at;
            self.events += 1;
            if self.at_once > ENDLESS {
                self.oracle.fail(21, || format!("{event:?} comes again and again at one moment"));
            }
            self.happen(event);
            self.tell_news(observer);
            self.look()?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// From here on `client` wants so much of each of its resources.
    pub fn set_wants(&mut self, client: u32, wants: f64) {
        for hold in self.clients[client as usize].holds.clone() {
            self.want(hold, wants);
        }
        self.drive_client(client);
    }

    /// What `client` believes it may use of everything it asks for.
    #[must_use]
    pub fn believed(&self, client: u32) -> Amount {
        let holds = self.clients[client as usize].holds.clone();
        Amount::from_micros(holds.map(|hold| self.holdings[hold as usize].counted).sum())
    }

    /// What all clients together believe they may use of a resource, in millionths.
    #[must_use]
    pub fn total_believed(&self, resource: u16) -> u128 {
        self.oracle.total(resource)
    }

    /// What the leader of a place has out of a resource, with its ghost, in millionths; nothing without a leader.
    #[must_use]
    pub fn leased(&self, place: u32, resource: u16) -> u128 {
        self.books(place, resource).map_or(0, |books| books.total)
    }

    /// So much longer.
    ///
    /// # Errors
    /// When a rule is broken: which, when, and what led to it.
    pub fn pass(&mut self, time: Duration) -> Result<(), Box<Violation>> {
        self.run_until(self.now + time)
    }

    /// All processes that live beside another of the same id are gone.
    pub fn end_twins(&mut self) {
        for client in 0..self.clients.len() as u32 {
            if self.clients[client as usize].twin_of.is_some() {
                self.end_life(client, true);
            }
        }
    }

    /// Some clients want something else.
    pub fn disturb(&mut self) {
        for client in 0..self.clients.len() as u32 {
            if self.dice.chance(300) {
                for hold in self.clients[client as usize].holds.clone() {
                    let wants = self.any_wants(hold);
                    self.want(hold, wants);
                }
                self.drive_client(client);
            }
        }
    }

    /// So many thousandths of the clients want something else, evenly from nothing to `most`.
    pub fn stir(&mut self, thousandths: u32, most: f64) {
        for client in 0..self.clients.len() as u32 {
            if self.dice.chance(thousandths) {
                let wants = self.dice.fraction() * most;
                self.set_wants(client, wants);
            }
        }
    }

    /// What all clients that live want of a resource.
    #[must_use]
    pub fn total_wants(&self, resource: u16) -> f64 {
        self.targets(resource).iter().map(|target| target.wants).sum()
    }

    /// The longest lease that any leader was told to grant.
    #[must_use]
    pub fn longest_lease(&self) -> Duration {
        self.places.iter().map(|place| place.longest_lease).max().unwrap_or_default()
    }

    /// Whether a place has a leader.
    #[must_use]
    pub fn is_led(&self, place: u32) -> bool {
        self.places[place as usize].leader.is_some()
    }

    /// Which task leads a place.
    #[must_use]
    pub fn leading_task(&self, place: u32) -> Option<u8> {
        self.places[place as usize].leader.as_ref().map(|leader| leader.task)
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many clients there are, with twins.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Of everything that has happened.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.story.hash()
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What was sent.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What went wrong.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The last things that happened, one a line.
    #[must_use]
    pub fn story(&self) -> String {
        self.story.tell(|who| match who {
            Who::Town => "town".to_owned(),
            Who::Client(index) => {
                let client = &self.clients[index as usize];
                format!("{}({index})", client.id)
            }
            Who::Place(index) => self.places[index as usize].name.to_string(),
        })
    }

    /// Keeps so many of them from here on.
    pub fn keep_story(&mut self, lines: usize) {
        self.story.keep(lines);
    }

    fn tell_news(&mut self, observer: &mut impl Observer) {
        for news in self.news.drain(..) {
            observer.hear(self.now, news);
        }
    }

    fn happen(&mut self, event: Event) {
        if let Some(party) = self.addressee(&event)
            && let Some(frozen) = &mut self.process_mut(party).frozen
        {
            frozen.backlog.push_back(event);
            return;
        }
        self.handle(event);
    }

    /// Handles an event whose receiver is not frozen.
    fn handle(&mut self, event: Event) {
        match event {
            Event::Wake(party) => self.wake(party),
            Event::ToNode { place, task, mail } => self.at_node(place, task, mail),
            Event::ToHolder { holder, mail } => self.at_holder(holder, mail),
            Event::Lapse(hold) => self.lapse(hold),
            Event::Use(hold) => self.take_in_use(hold),
            Event::Thaw(party, life) => self.thaw(party, life),
            Event::Mischief(kind) => self.mischief(kind),
            Event::Back(client) => self.begin_life(client),
            Event::TwinEnds(client) => self.end_life(client, true),
            Event::Elect(place) => self.elect_any(place),
            Event::Wants(client) => self.want_something(client),
            Event::Reload(place) => self.reload(place),
            Event::Tidy(place, reign) => self.tidy(place, reign),
            Event::Cover(resource) => self.cover(resource, true),
        }
    }

    /// Who has to run for an event to happen.
    fn addressee(&self, event: &Event) -> Option<Party> {
        match event {
            Event::Wake(party) => Some(*party),
            Event::ToHolder { holder, .. } => Some(holder.party),
            Event::ToNode { place, task, .. } => {
                let leader = self.places[*place as usize].leader.as_ref()?;
                (leader.task == *task).then_some(Party::Place(*place))
            }
            Event::Reload(place) | Event::Tidy(place, _) => Some(Party::Place(*place)),
            Event::Use(hold) => Some(Party::Client(self.holdings[*hold as usize].client)),
            Event::Wants(client) => Some(Party::Client(*client)),
            _ => None,
        }
    }

    /// A deadline, perhaps one that has moved.
    fn wake(&mut self, party: Party) {
        let now = self.now;
        let process = self.process_mut(party);
        if process.wake != now {
            return;
        }
        process.wake = Time::MAX;
        self.drive(party);
    }

    fn drive(&mut self, party: Party) {
        match party {
            Party::Client(client) => self.drive_client(client),
            Party::Place(place) => self.drive_place(place),
        }
    }

    /// Sees to it that the party is woken when its clock shows `deadline`.
    pub(crate) fn wake_at(&mut self, party: Party, deadline: Time) {
        let now = self.now;
        let process = self.process_mut(party);
        let when = process.clock.when(deadline).max(now);
        if deadline != Time::MAX && when < process.wake {
            process.wake = when;
            self.agenda.put(when, Event::Wake(party));
        }
    }

    /// Keeps everything back from the party until `until`.
    pub(crate) fn freeze(&mut self, party: Party, until: Time) {
        let process = self.process_mut(party);
        if process.frozen.is_some() {
            return;
        }
        process.frozen = Some(Box::new(Frozen { until, backlog: std::collections::VecDeque::new() }));
        let life = process.life;
        self.note(party.who(), What::Freezes, [until.as_nanos(), 0, 0]);
        self.agenda.put(until, Event::Thaw(party, life));
    }

    /// One event that was kept back, or the end of it.
    fn thaw(&mut self, party: Party, life: u32) {
        let now = self.now;
        let process = self.process_mut(party);
        if process.life != life {
            return;
        }
        if let Party::Client(client) = party {
            self.clients[client as usize].holds.clone().for_each(|hold| self.stop_overdue(hold));
        }
        let process = self.process_mut(party);
        let Some(frozen) = process.frozen.as_mut().filter(|frozen| frozen.until <= now) else { return };
        let event = frozen.backlog.pop_front();
        let late = frozen.backlog.len();
        if event.is_none() {
            process.frozen = None;
            process.wake = Time::MAX;
        }
        self.note(party.who(), What::Thaws, [late as u64, 0, 0]);
        match event {
            None => self.drive(party),
            Some(event) => {
                self.agenda.put(now, Event::Thaw(party, life));
                self.handle(event);
            }
        }
    }

    pub(crate) fn process(&self, party: Party) -> &Process {
        match party {
            Party::Client(client) => &self.clients[client as usize].process,
            Party::Place(place) => &self.places[place as usize].process,
        }
    }

    pub(crate) fn process_mut(&mut self, party: Party) -> &mut Process {
        match party {
            Party::Client(client) => &mut self.clients[client as usize].process,
            Party::Place(place) => &mut self.places[place as usize].process,
        }
    }

    pub(crate) fn local(&self, party: Party) -> Time {
        self.process(party).clock.at(self.now)
    }

    pub(crate) fn lives(&self, holder: Sender) -> bool {
        self.process(holder.party).life == holder.life
            && match holder.party {
                Party::Client(client) => self.clients[client as usize].lives(),
                Party::Place(place) => self.places[place as usize].leader.is_some(),
            }
    }

    pub(crate) fn later(&mut self, delay: Duration, event: Event) {
        self.agenda.put(self.now + delay, event);
    }

    pub(crate) fn faulty(&self) -> bool {
        self.now < Time::ZERO + self.rules.faults.until
    }

    /// A time until which something goes on, before the faults end.
    pub(crate) fn spell(&mut self) -> Time {
        let spell = self.rules.faults.spell;
        let end = self.now + self.dice.exponential(spell);
        end.min(Time::ZERO + self.rules.faults.until).max(self.now)
    }

    pub(crate) fn note(&mut self, who: Who, what: What, numbers: [u64; 3]) {
        let local = match who {
            Who::Town => self.now,
            Who::Client(client) => self.local(Party::Client(client)),
            Who::Place(place) => self.local(Party::Place(place)),
        };
        self.story.add(Line { at: self.now, local, who, what, numbers });
    }

    pub(crate) fn repository(&self, place: u32) -> Repository {
        build::repository(&self.resources, self.places[place as usize].terms)
    }

    /// One of the kinds of mischief, and when it comes next.
    fn mischief(&mut self, kind: Mischief) {
        if self.faulty()
            && let Some(every) = self.rules.faults.every(kind)
        {
            let pause = self.dice.exponential(every);
            self.later(pause, Event::Mischief(kind));
            if self.do_mischief(kind) {
                self.tally.count(kind);
            }
        }
    }
}

// === impl Counts ===

impl Counts {
    /// What holders have sent: requests, and messages up streams.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.client_asks + self.node_asks + self.releases + self.streams + self.reports + self.heartbeats
    }

    /// Requests and messages on streams, both ways.
    #[must_use]
    pub fn messages(&self) -> u64 {
        2 * (self.client_asks + self.node_asks + self.releases + self.streams)
            + self.reports
            + self.heartbeats
            + self.pushes
            + self.renewals
    }
}

// === impl Party ===

impl Party {
    pub(crate) fn who(self) -> Who {
        match self {
            Party::Client(index) => Who::Client(index),
            Party::Place(index) => Who::Place(index),
        }
    }
}
