//! A large simulation: how fast the minds are when there are many of them, and whether a tree that large keeps its promise while
//! leaders die at every level.
//!
//! ```
//! use lessor_sim::big::BigTree;
//!
//! let simulation = BigTree { clients: 60, fan_out: vec![2, 3], minutes: 1, ..BigTree::default() };
//! let report = simulation.run(1).expect("no rule is broken");
//! assert!(report.believed > 0.9 && report.believed <= 1.0, "{report:?}");
//! ```

use std::time::Duration;

use lessor_proto::Time;

use crate::oracle::Violation;
use crate::plan::{Link, Scrutiny, SimulationPlan, Terms, Way};
use crate::simulation::{Counts, Simulation};

/// The size of a large simulation, and the events in it.
#[derive(Clone, PartialEq, Debug)]
pub struct BigTree {
    /// The number of clients, which are spread evenly over the sites of the last level.
    pub clients: usize,
    /// The number of children of each site of a level, from the root down.
    pub fan_out: Vec<usize>,
    /// The length of a run, in minutes.
    pub minutes: u64,
    /// The amount that all clients want together at first, as a multiple of the capacity.
    pub load: f64,
    /// The interval at which some clients change what they want.
    pub step: Duration,
    /// The part of the clients that do, in thousandths.
    pub changing: u32,
    /// The terms of the leases.
    pub terms: Terms,
    /// The way in which the clients ask.
    pub way: Way,
    /// The time from the death of one leader to that of the next, if any die: of each level in turn, from the root
    /// down. The task of a dead leader is back a second later.
    pub dying: Option<Duration>,
}

/// The outcome of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct BigReport {
    /// Of everything that happened.
    pub hash: u64,
    /// The number of events.
    pub events: u64,
    /// The counts of what was sent.
    pub counts: Counts,
    /// The amount that clients believe they hold in the end, as a fraction of the most that they could: the
    /// capacity, or all they want.
    pub believed: f64,
    /// The least of that at any step, from the second minute on.
    pub least_believed: f64,
    /// The number of leaders that have died.
    pub deaths: u64,
}

/// Until then not everybody need have something.
const WARM_UP: Duration = Duration::from_secs(60);

// === impl BigTree ===

impl Default for BigTree {
    /// A hundred thousand clients below a hundred sites below ten, for ten minutes; every ten seconds one in a hundred
    /// wants something else, and what all want is a little more than there is.
    fn default() -> BigTree {
        BigTree {
            clients: 100_000,
            fan_out: vec![10, 10],
            minutes: 10,
            load: 1.2,
            step: Duration::from_secs(10),
            changing: 10,
            terms: Terms { lease_length: Duration::from_secs(60), refresh_interval: Duration::from_secs(10) },
            way: Way::Stream,
            dying: None,
        }
    }
}

impl BigTree {
    /// A million clients below the same servers, of whom a leader dies every twenty seconds, one of each level a minute.
    #[must_use]
    pub fn million() -> BigTree {
        BigTree { clients: 1_000_000, dying: Some(Duration::from_secs(20)), ..BigTree::default() }
    }

    /// The simulation as a plan: one unit for each client in all.
    #[must_use]
    pub fn plan(&self) -> SimulationPlan {
        let leaves: usize = self.fan_out.iter().product();
        let (capacity, each) = (self.clients as f64, self.clients.div_ceil(leaves.max(1)));
        let mut plan = SimulationPlan::tree(&self.fan_out, each, capacity, self.load);
        plan.clients.truncate(self.clients);
        plan.watch = Scrutiny::Loose(5_000_000);
        for site in &mut plan.sites {
            site.terms = self.terms;
            site.link = Link { latency: Duration::from_millis(10), jitter: Duration::from_millis(1) };
        }
        plan.clients.iter_mut().for_each(|client| client.way = self.way);
        plan
    }

    /// Runs it.
    ///
    /// # Errors
    /// When a rule is broken.
    pub fn run(&self, seed: u64) -> Result<BigReport, Box<Violation>> {
        let mut sim = Simulation::new(seed, &self.plan());
        self.run_in(&mut sim)
    }

    /// Runs a simulation that was built by [`BigTree::plan`].
    ///
    /// # Errors
    /// When a rule is broken.
    pub fn run_in(&self, sim: &mut Simulation) -> Result<BigReport, Box<Violation>> {
        let end = Time::ZERO + Duration::from_secs(60 * self.minutes);
        let (mut least_believed, mut deaths, mut next_death) =
            (1.0_f64, 0, self.dying.map(|every| Time::ZERO + every));
        while sim.now() < end {
            let step = (sim.now() + self.step).min(end);
            sim.run_until(step)?;
            if step >= Time::ZERO + WARM_UP {
                least_believed = least_believed.min(self.believed(sim));
            }
            if step < end {
                sim.stir(self.changing, 2.0 * self.load);
            }
            if let (Some(at), Some(every)) = (next_death, self.dying)
                && at <= step
            {
                deaths += u64::from(sim.lose_leader(self.victim(deaths as usize)));
                next_death = Some(at + every);
            }
        }
        Ok(BigReport {
            hash: sim.hash(),
            events: sim.events(),
            counts: sim.counts(),
            believed: self.believed(sim),
            least_believed,
            deaths,
        })
    }

    /// Of how many levels of servers it is.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.fan_out.len() + 1
    }

    /// The number of its servers, of several tasks each.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.sizes().sum()
    }

    /// The amount that clients believe they hold, as a fraction of the most that they could.
    fn believed(&self, sim: &Simulation) -> f64 {
        sim.total_believed(0) as f64 / 1e6 / sim.total_wants(0).min(self.clients as f64)
    }

    /// Whose leader dies next, after so many: a site of each level in turn, and of those of a level another each time.
    fn victim(&self, deaths: usize) -> u32 {
        let (level, round) = (deaths % self.levels(), deaths / self.levels());
        let above: usize = self.sizes().take(level).sum();
        let size = self.sizes().nth(level).unwrap_or(1);
        (above + round % size) as u32
    }

    /// The number of sites of each level.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let below = self.fan_out.iter().scan(1, |size, children| {
            *size *= children;
            Some(*size)
        });
        std::iter::once(1).chain(below)
    }
}
