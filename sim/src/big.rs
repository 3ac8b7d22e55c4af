//! A large town: how fast the minds are when there are many of them, and whether a tree that large keeps its promise while
//! leaders die at every level.
//!
//! ```
//! use lessor_sim::big::BigTown;
//!
//! let town = BigTown { clients: 60, fan_out: vec![2, 3], minutes: 1, ..BigTown::default() };
//! let report = town.run(1).expect("no rule is broken");
//! assert!(report.believed > 0.9 && report.believed <= 1.0, "{report:?}");
//! ```

use std::time::Duration;

use lessor_proto::Time;

use crate::oracle::Violation;
use crate::plan::{Link, Terms, TownPlan, Watch, Way};
use crate::town::{Counts, Town};

/// How large it is, and what happens in it.
#[derive(Clone, PartialEq, Debug)]
pub struct BigTown {
    /// How many clients, spread evenly over the places of the last level.
    pub clients: usize,
    /// How many children each place of a level has, from the root down.
    pub fan_out: Vec<usize>,
    /// How long it goes on.
    pub minutes: u64,
    /// What all clients want together at first, as a multiple of the capacity.
    pub load: f64,
    /// How often some clients change what they want.
    pub step: Duration,
    /// How many of them, in thousandths.
    pub changing: u32,
    /// How the leases are.
    pub terms: Terms,
    /// How they ask.
    pub way: Way,
    /// How often a leader dies, if ever: of each level in turn, from the root down. Its task is back a second later.
    pub dying: Option<Duration>,
}

/// How it went.
#[derive(Clone, PartialEq, Debug)]
pub struct BigReport {
    /// Of everything that happened.
    pub hash: u64,
    /// How many events there were.
    pub events: u64,
    /// What was sent.
    pub counts: Counts,
    /// What clients believe in the end, as a fraction of what they could: the capacity, or all they want.
    pub believed: f64,
    /// The least of that at any step, from the second minute on.
    pub least_believed: f64,
    /// How many leaders have died.
    pub deaths: u64,
}

/// Until then not everybody need have something.
const WARM_UP: Duration = Duration::from_secs(60);

// === impl BigTown ===

impl Default for BigTown {
    /// A hundred thousand clients below a hundred places below ten, for ten minutes; every ten seconds one in a hundred
    /// wants something else, and what all want is a little more than there is.
    fn default() -> BigTown {
        BigTown {
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

impl BigTown {
    /// A million clients below the same servers, of whom a leader dies every twenty seconds, one of each level a minute.
    #[must_use]
    pub fn million() -> BigTown {
        BigTown { clients: 1_000_000, dying: Some(Duration::from_secs(20)), ..BigTown::default() }
    }

    /// The town as a plan: one unit for each client in all.
    #[must_use]
    pub fn plan(&self) -> TownPlan {
        let leaves: usize = self.fan_out.iter().product();
        let (capacity, each) = (self.clients as f64, self.clients.div_ceil(leaves.max(1)));
        let mut plan = TownPlan::tree(&self.fan_out, each, capacity, self.load);
        plan.clients.truncate(self.clients);
        plan.watch = Watch::Loose(5_000_000);
        for place in &mut plan.places {
            place.terms = self.terms;
            place.link = Link { latency: Duration::from_millis(10), jitter: Duration::from_millis(1) };
        }
        plan.clients.iter_mut().for_each(|client| client.way = self.way);
        plan
    }

    /// Runs it.
    ///
    /// # Errors
    /// When a rule is broken.
    pub fn run(&self, seed: u64) -> Result<BigReport, Box<Violation>> {
        let mut town = Town::new(seed, &self.plan());
        self.run_in(&mut town)
    }

    /// Runs a town that was built by [`BigTown::plan`].
    ///
    /// # Errors
    /// When a rule is broken.
    pub fn run_in(&self, town: &mut Town) -> Result<BigReport, Box<Violation>> {
        let end = Time::ZERO + Duration::from_secs(60 * self.minutes);
        let (mut least_believed, mut deaths, mut next_death) =
            (1.0_f64, 0, self.dying.map(|every| Time::ZERO + every));
        while town.now() < end {
            let step = (town.now() + self.step).min(end);
            town.run_until(step)?;
            if step >= Time::ZERO + WARM_UP {
                least_believed = least_believed.min(self.believed(town));
            }
            if step < end {
                town.stir(self.changing, 2.0 * self.load);
            }
            if let (Some(at), Some(every)) = (next_death, self.dying)
                && at <= step
            {
                deaths += u64::from(town.lose_leader(self.victim(deaths as usize)));
                next_death = Some(at + every);
            }
        }
        Ok(BigReport {
            hash: town.hash(),
            events: town.events(),
            counts: town.counts(),
            believed: self.believed(town),
            least_believed,
            deaths,
        })
    }

    /// Of how many levels of servers it is.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.fan_out.len() + 1
    }

    /// How many servers it has, of several tasks each.
    #[must_use]
    pub fn places(&self) -> usize {
        self.sizes().sum()
    }

    /// What clients believe, as a fraction of what they could.
    fn believed(&self, town: &Town) -> f64 {
        town.total_believed(0) as f64 / 1e6 / town.total_wants(0).min(self.clients as f64)
    }

    /// Whose leader dies next, after so many: a place of each level in turn, and of those of a level another each time.
    fn victim(&self, deaths: usize) -> u32 {
        let (level, round) = (deaths % self.levels(), deaths / self.levels());
        let above: usize = self.sizes().take(level).sum();
        let size = self.sizes().nth(level).unwrap_or(1);
        (above + round % size) as u32
    }

    /// How many places each level has.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let below = self.fan_out.iter().scan(1, |size, children| {
            *size *= children;
            Some(*size)
        });
        std::iter::once(1).chain(below)
    }
}
