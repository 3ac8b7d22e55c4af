//! The loss through leases: how much of what one limiter would grant is lost when many clients share it by leases, and
//! nobody says what it wants.
//!
//! The real nodes, sessions, estimators and limiters, with a network between them that takes its time: a message takes 10 to
//! 15 ms, and one in a hundred is lost and comes 200 ms later, before all that was sent after it. With leaves between the
//! clients and the root it takes 1 to 1.5 ms from a client to its leaf, and 20 to 30 ms from there. Clients look at their
//! demand every 250 ms and knock, as the client's driver does. Requests are for one unit, and nobody waits.
//!
//! ```
//! use lessor_sim::spare::{SpareRun, SpareTraffic};
//!
//! let run = SpareRun { clients: 1, traffic: SpareTraffic::Poisson, seconds: 20, ..SpareRun::default() };
//! let report = run.play(1);
//! assert!(report.asked > 30_000);
//! assert!(report.lost() < 0.001, "{report:?}");
//! ```

mod client;
mod traffic;
mod world;

use std::time::Duration;

use lessor_proto::{Amount, ResourceId};
use lessor_server::repository::{Glob, Repository, Template};

pub use self::traffic::SpareTraffic;
use self::world::SpareWorld;

/// After so long a message that was lost comes again.
const SAID_AGAIN: Duration = Duration::from_millis(200);
/// The start of the count: what is asked and refused before is not counted.
const BEGIN: Duration = Duration::from_secs(5);

/// One run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpareRun {
    /// The number of clients that share the capacity.
    pub clients: usize,
    /// Which of them is asked, when.
    pub traffic: SpareTraffic,
    /// The time for which requests are counted, in simulated seconds.
    pub seconds: u64,
    /// Units a second.
    pub capacity: u64,
    /// The burst that may be saved up.
    pub burst: Duration,
    /// The number of servers between the root and the clients; none: clients report to the root.
    pub leaves: usize,
    /// The least time that a message takes from a client to its server.
    pub delay: Duration,
    /// The least time that a message takes from a leaf to the root.
    pub delay_above: Duration,
    /// One message in so many is lost, and comes 200 ms later, and each may take up to half as long again; zero: neither.
    pub lost_in: u64,
}

/// The outcome of a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SpareReport {
    /// Requests.
    pub asked: u64,
    /// Those that clients refused.
    pub refused: u64,
    /// Those that one limiter of the whole capacity refused, which was asked for each.
    pub refused_by_one: u64,
    /// Grants that came to clients and to leaves.
    pub grants: u64,
    /// Those that say nothing but what the one before them said: the same amount, bound by the same.
    pub repeated: u64,
    /// Reports of clients and of leaves, with heartbeats.
    pub reports: u64,
    /// Events after which more was believed than there is.
    pub over: u64,
}

// === impl SpareRun ===

impl Default for SpareRun {
    /// Ten clients of 5,000 a second, 50 ms of which may be saved up, for half a minute of even requests.
    fn default() -> SpareRun {
        SpareRun {
            clients: 10,
            traffic: SpareTraffic::Poisson,
            seconds: 30,
            capacity: 5_000,
            burst: Duration::from_millis(50),
            leaves: 0,
            delay: Duration::from_millis(10),
            delay_above: Duration::from_millis(20),
            lost_in: 100,
        }
    }
}

impl SpareRun {
    /// As many clients with the capacity that the table has for them: 5,000 up to ten, and a hundred for each above.
    #[must_use]
    pub fn of(clients: usize, traffic: SpareTraffic) -> SpareRun {
        let capacity = if clients <= 10 { 5_000 } else { clients as u64 * 100 };
        SpareRun { clients, traffic, capacity, ..SpareRun::default() }
    }

    /// The same with so many servers between the root and the clients, which are near to those.
    #[must_use]
    pub fn below(self, leaves: usize) -> SpareRun {
        let delay = if leaves > 0 { Duration::from_millis(1) } else { self.delay };
        SpareRun { leaves, delay, ..self }
    }

    /// Plays it.
    #[must_use]
    pub fn play(&self, seed: u64) -> SpareReport {
        SpareWorld::new(*self, seed).play()
    }

    fn repository(&self) -> Repository {
        let capacity = Amount::from_units(self.capacity);
        let template =
            Template { learning: Duration::ZERO, ..Template::new(Glob::new("*").expect("a glob"), capacity) };
        Repository::new(vec![template]).expect("it holds together")
    }
}

// === impl SpareReport ===

impl SpareReport {
    /// The requests that were refused beyond what one limiter refuses, as a fraction of those that were asked.
    #[must_use]
    pub fn lost(&self) -> f64 {
        (self.refused as f64 - self.refused_by_one as f64) / (self.asked as f64).max(1.0)
    }
}

fn resource() -> ResourceId {
    ResourceId::new("db", 256).expect("a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(clients: usize, traffic: SpareTraffic) -> SpareReport {
        let report = SpareRun { seconds: 20, ..SpareRun::of(clients, traffic) }.play(1);
        assert!(report.asked > 10_000, "{report:?}");
        assert_eq!(report.over, 0, "{report:?}");
        report
    }

    #[test]
    fn one_client_loses_nothing_of_what_nobody_else_wants() {
        for traffic in SpareTraffic::ALL {
            let report = play(1, traffic);
            // A tenth is kept, which a rise has to show before it has it.
            let most = if traffic == SpareTraffic::OnOff { 0.02 } else { 0.002 };
            assert!(report.lost() < most, "{traffic}: {report:?}");
        }
    }

    #[test]
    fn ten_clients_lose_little_and_the_same_each_time() {
        let report = play(10, SpareTraffic::Poisson);
        assert!(report.lost() < 0.005, "{report:?}");
        assert_eq!(report, play(10, SpareTraffic::Poisson));
    }

    #[test]
    fn below_leaves_little_more_is_lost() {
        let run = SpareRun { seconds: 10, ..SpareRun::of(100, SpareTraffic::Poisson) };
        let (flat, tree) = (run.play(1), run.below(5).play(1));
        assert_eq!((flat.over, tree.over), (0, 0));
        assert_eq!(flat.asked, tree.asked, "they are asked for the same");
        assert!(tree.lost() < 0.03 && tree.lost() > flat.lost(), "{flat:?} {tree:?}");
    }

    #[test]
    fn a_hot_client_is_fed_within_a_few_round_trips() {
        let report = play(10, SpareTraffic::Hot);
        // Before anything was lent to clients this was more than a tenth.
        assert!(report.lost() < 0.06, "{report:?}");
    }
}
