//! A large town where nothing goes wrong: how fast the minds are when there are many of them.
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
}

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
        }
    }
}

impl BigTown {
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
        while town.now() < end {
            let step = (town.now() + self.step).min(end);
            town.run_until(step)?;
            if step < end {
                town.stir(self.changing, 2.0 * self.load);
            }
        }
        let wanted: f64 = town.total_wants(0).min(self.clients as f64);
        Ok(BigReport {
            hash: town.hash(),
            events: town.events(),
            counts: town.counts(),
            believed: town.total_believed(0) as f64 / 1e6 / wanted,
        })
    }
}
