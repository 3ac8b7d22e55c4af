//! Jobs: holders of a gauge, at the root or below leaves, who do jobs and wait for those of others, while everything goes wrong.
//!
//! Real nodes and sessions with a network between them. A judge that sees all of it finds fault where somebody is told of a job that
//! nobody else did since it began to wait, and where somebody is not told of one although nothing has gone wrong for a while.
//!
//! ```
//! use lessor_sim::jobs::JobsRun;
//!
//! let report = JobsRun::of(2, 0).play(1);
//! assert!(report.told > 30 && report.fault.is_none(), "{report:?}");
//! ```

mod judge;
#[cfg(test)]
mod tests;
mod world;

use std::time::Duration;

use lessor_client::internals::mutation::HolderRules;
use lessor_proto::Amount;
use lessor_server::mutation::Rules;
use lessor_server::repository::{Glob, Kind, Repository, Template};

use self::world::JobsWorld;
use crate::rng::Rng;

/// The time that news of a job takes at the most in a run: a job counts for a wait that begins so long after it.
pub(crate) const NEWS: Duration = Duration::from_millis(50);
/// The length of a lease.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// Holders of one gauge, and what goes wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobsRun {
    /// The number of holders.
    pub holders: usize,
    /// The servers between the root and the holders.
    pub leaves: usize,
    /// The longest way of a message; the shortest is a twentieth of that.
    pub way: Duration,
    /// The time for which jobs are done.
    pub lasts: Duration,
    /// Whether holders die and come back, are not heard of for a while, let go of the gauge, and servers are lost, until a while before
    /// the end.
    pub goes_wrong: bool,
    /// Whether the second holder is of an earlier version, which does not know of jobs.
    pub has_older: bool,
    /// The rules that holders go by: all of them, but in tests.
    pub rules: HolderRules,
    /// The rules that servers go by: all of them, but in tests.
    pub grantors: Rules,
}

/// The outcome.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobsReport {
    /// Jobs.
    pub jobs: u64,
    /// Waits that ended as a job was done elsewhere.
    pub told: u64,
    /// The longest that it took to hear of a job that was done while somebody waited, where nothing had gone wrong for a while.
    pub longest: Duration,
    /// Messages of jobs, up and down.
    pub messages: u64,
    /// The number of times that something went wrong.
    pub faults: u64,
    /// The first thing that the judge found fault with.
    pub fault: Option<String>,
}

// === impl JobsRun ===

impl JobsRun {
    /// Holders at the root or below so many leaves, of which nothing goes wrong.
    #[must_use]
    pub fn of(holders: usize, leaves: usize) -> JobsRun {
        JobsRun {
            holders,
            leaves,
            way: Duration::from_millis(20),
            lasts: Duration::from_secs(300),
            goes_wrong: false,
            has_older: false,
            rules: HolderRules::default(),
            grantors: Rules::default(),
        }
    }

    /// A few holders, and everything goes wrong.
    #[must_use]
    pub fn drawn(seed: u64) -> JobsRun {
        let mut rng = Rng::new(seed ^ 0x00b5_d0e5);
        let holders = rng.between(3, 6) as usize;
        let leaves = rng.between(0, 3) as usize;
        let has_older = rng.chance(300);
        let run = JobsRun::of(holders, leaves);
        JobsRun { goes_wrong: true, has_older, lasts: Duration::from_secs(700), ..run }
    }

    /// Plays it.
    #[must_use]
    pub fn play(&self, seed: u64) -> JobsReport {
        JobsWorld::new(*self, seed).play()
    }

    /// The time in which a job is known to whoever waits: the way to the root and back down, twice if who works has yet to be asked.
    #[must_use]
    pub fn two_trips(&self) -> Duration {
        let levels = if self.leaves > 0 { 2 } else { 1 };
        self.way * 2 * levels * 2
    }

    fn repository() -> Repository {
        let template = Template {
            kind: Kind::Gauge,
            lease_length: LEASE,
            learning: LEASE,
            refresh_interval: Duration::from_secs(2),
            ..Template::new(Glob::new("*").expect("a glob"), Amount::from_units(2))
        };
        Repository::new(vec![template]).expect("it holds together")
    }
}
