//! The building of a simulation from its plan.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::{ClientId, Epoch, Incarnation, Time};

use super::configurations::Configurations;
use super::etcd::Office;
use super::population::Population;
use super::progress::Progress;
use super::templates::TemplateOffice;
use super::tree::Tree;
use super::{Event, Simulation};
use crate::client::{Client, Mind};
use crate::clock::{Clock, PERFECT};
use crate::directory::Directory;
use crate::event_queue::EventQueue;
use crate::faults::Fault;
use crate::holding::Holding;
use crate::oracle::Oracle;
use crate::plan::{ClientPlan, Election, Hold, Keeps, Link, PREFIX, SimulationPlan, SitePlan};
use crate::process::Process;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::rng::Rng;
use crate::rules::Rules;
use crate::site::{Door, Kin, LeaseLengths, Site, SiteFigures, Task, UpwardWay};
use crate::stream::Streams;
use crate::trace::Trace;

/// Simulations with more clients than this get the large event queue.
const LARGE: usize = 2_000;
/// The dates that a clock may show at the beginning, in nanoseconds: up to 30 years, but of a node up to 8, as
/// its event queue counts ticks of 67 ms in 32 bits.
const CLIENT_DATES: u64 = 1_000_000_000_000_000_000;
const NODE_DATES: u64 = 250_000_000_000_000_000;

pub(super) fn sim(seed: u64, plan: &SimulationPlan) -> Simulation {
    let holdings = plan.clients.iter().map(|client| client.holds.len()).sum();
    let mut sim = Simulation {
        now: Time::ZERO,
        rules: Rules::new(plan),
        rng: Rng::new(seed),
        queue: if plan.clients.len() > LARGE { EventQueue::large() } else { EventQueue::small() },
        tree: Tree::with_capacity(plan.sites.len()),
        population: Population::with_capacity(plan.clients.len(), holdings),
        streams: Streams::default(),
        resources: plan.resources.iter().map(Resource::new).collect(),
        configurations: Configurations::new(plan),
        oracle: Oracle::new(plan.resources.len(), &plan.sites),
        trace: Trace::new(),
        progress: Progress::default(),
    };
    sim.share_domain(plan);
    plan.sites.iter().for_each(|site| sim.settle(site));
    if plan.follows {
        sim.configurations.templates = Some(Box::new(TemplateOffice::new(seed, sim.tree.tasks.len())));
    }
    sim.publish();
    plan.clients.iter().for_each(|client| {
        sim.admit(client, None);
    });
    sim.oracle.begin(Time::ZERO, &sim.resources);
    sim.begin(plan);
    sim.put_down_first(plan);
    sim
}

// === impl Simulation ===

impl Simulation {
    /// Puts down the first events: when clients come, when they want something else, and when what goes wrong.
    fn put_down_first(&mut self, plan: &SimulationPlan) {
        for client in self.population.numbers() {
            // Nobody starts exactly when others do.
            let at = self.rng.time(Duration::ZERO, Duration::from_millis(10));
            self.later(plan.clients_from + at, Event::Back(client));
        }
        if let Some(every) = self.rules.faults.restless {
            for client in self.population.numbers() {
                let pause = self.rng.exponential(every);
                self.later(pause, Event::Wants(client));
            }
        }
        for hold in 0..self.population.holdings.len() as u32 {
            self.use_from(hold);
        }
        for client in self.population.numbers() {
            self.ask_from(client);
        }
        for kind in Fault::ALL {
            if let Some(every) = self.rules.faults.every(kind) {
                let pause = self.rng.exponential(every);
                self.later(pause, Event::Fault(kind));
            }
        }
    }

    /// The tasks of all sites begin.
    fn begin(&mut self, plan: &SimulationPlan) {
        let tasks = 0..self.tree.tasks.len() as u32;
        if self.rules.memory.etcd.is_some() || self.rules.election != Election::Alone {
            let clock = self.odd_clock(NODE_DATES);
            let names = plan.sites.iter().map(|site| site.name.clone());
            let registry = Registry::new(clock, PREFIX, names);
            self.tree.etcd = Some(Office::new(registry, plan.sites.len()));
        }
        match self.rules.election {
            Election::Alone => tasks
                .filter(|&task| self.begins_alone(task))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|task| self.begin_alone(task)),
            Election::Etcd(_) => {
                for task in tasks {
                    let at = self.rng.time(Duration::ZERO, Duration::from_millis(10));
                    self.later(at, Event::Start(task));
                }
            }
        }
    }

    /// The longest time for which a lease that is granted for `length` may count, of any resource.
    fn longest_counted(&self, length: Duration) -> Duration {
        let counted = self.resources.iter().map(|resource| resource.legacy.counted(length));
        counted.max().unwrap_or(length)
    }

    /// The way in which sites remember in the beginning.
    fn begins_with(&self) -> Keeps {
        match self.rules.election {
            Election::Etcd(_) => Keeps::Etcd,
            Election::Alone if self.rules.memory.disk.is_some() => Keeps::File,
            Election::Alone => Keeps::Nothing,
        }
    }

    fn settle(&mut self, plan: &SitePlan) {
        let (index, first) = (self.tree.sites.len() as u32, self.tree.tasks.len() as u32);
        for number in 0..plan.tasks {
            let address: Arc<str> = format!("{}:{}", plan.name, number + 1).into();
            self.tree.note_address(&address, first + u32::from(number));
            let clock = self.odd_clock(NODE_DATES);
            self.tree.tasks.push(Task::new(index, number, address, Process::new(clock, plan.link)));
        }
        if let Some(parent) = plan.parent {
            self.tree.sites[parent as usize].kin.children.push(index);
        }
        self.tree.sites.push(Site {
            name: plan.name.as_str().into(),
            kin: Kin { parent: plan.parent, children: Vec::new(), clients: Vec::new() },
            upward: UpwardWay { transport: plan.transport, streams: plan.streams },
            lengths: LeaseLengths {
                terms: plan.terms,
                longest_lease: self.longest_counted(plan.terms.lease_length),
                authority: plan.authority,
            },
            tasks: first..self.tree.tasks.len() as u32,
            head: None,
            epoch: Epoch::default(),
            learns_until: Time::ZERO,
            keeps: self.begins_with(),
            directory: Directory::default(),
            figures: SiteFigures::default(),
            door: Door::default(),
        });
    }

    /// A client takes its site in the simulation, and has not begun.
    pub(super) fn admit(&mut self, plan: &ClientPlan, twin_of: Option<u32>) -> u32 {
        let index = self.population.clients.len() as u32;
        let first = self.population.holdings.len() as u32;
        let of = |hold: &Hold| &self.resources[usize::from(hold.resource)];
        self.population.holdings.extend(plan.holds.iter().map(|hold| Holding::new(index, hold, of(hold))));
        self.tree.sites[plan.site as usize].kin.clients.push(index);
        self.population.clients.push(Client {
            id: ClientId::new(plan.name.as_str(), 256).expect("the name of a client"),
            site: plan.site,
            way: plan.way,
            incarnation: Incarnation::default(),
            mind: Mind::Nobody,
            process: Process::new(Clock::REAL, plan.link),
            holds: first..self.population.holdings.len() as u32,
            twin_of,
            fence: Epoch::default(),
            next_look: Time::MAX,
        });
        index
    }

    /// A client's clock as it may be when its process begins.
    pub(super) fn client_clock(&mut self) -> Clock {
        self.odd_clock(CLIENT_DATES)
    }

    /// The same of a machine on which nodes run.
    pub(super) fn new_node_clock(&mut self) -> Clock {
        self.odd_clock(NODE_DATES)
    }

    fn odd_clock(&mut self, dates: u64) -> Clock {
        if !self.rules.odd_clocks {
            return Clock::REAL;
        }
        let local = Time::from_nanos(self.rng.below(dates));
        let rate = self.odd_rate();
        Clock::new(self.now, local, rate)
    }

    /// A rate within what drift allows, often at the edge of it.
    pub(super) fn odd_rate(&mut self) -> u64 {
        // The bound in parts per million, from how it stretches a million seconds.
        let stretched = self.rules.drift.stretch(Duration::from_secs(1_000_000)).as_nanos();
        // s = (1 + d) / (1 - d), so d = (s - 1) / (s + 1); a millionth less, for the rounding of clocks.
        let (above, below) = (stretched - 1_000_000_000_000_000, stretched + 1_000_000_000_000_000);
        let bound = u64::try_from(above * u128::from(PERFECT) / below).unwrap_or(0).saturating_sub(1_000);
        match self.rng.below(4) {
            0 => PERFECT - bound,
            1 => PERFECT + bound,
            _ => PERFECT - bound + self.rng.below(2 * bound + 1),
        }
    }

    pub(super) fn address(&self, address: &str) -> Option<u32> {
        self.tree.task_at(address)
    }

    /// The way of an actor, as planned.
    pub(super) fn link(&self, client: u32) -> Link {
        self.population.clients[client as usize].process.link
    }
}
