//! Windows: a limit on the uses in any window that many holders keep together, and how full it gets.
//!
//! Real nodes, sessions and windows with a network between them, and holders whose clocks run as fast or as slow as clocks may.
//! Requests come to each of them, and wait for as long as is said; a judge that knows nothing of leases counts the uses of all
//! holders together in every window, also those of holders that have died since.
//!
//! ```
//! use lessor_sim::windows::{WindowsRun, WindowsTraffic};
//!
//! // A hundred at each of ten holders at one moment.
//! let report = WindowsRun::of(100, 60, WindowsTraffic::Bursts).play(1);
//! assert_eq!((report.most, report.over), (100, 0), "never more than the limit, and all of it");
//! ```

mod faults;
mod holder;
mod judge;
mod stations;
mod traffic;
mod uses;
mod world;

use std::time::Duration;

use lessor_client::internals::mutation::HolderRules;
use lessor_proto::{Amount, Drift};
use lessor_server::mutation::Rules;
use lessor_server::repository::{Glob, Kind, Repository, Template};

pub use self::judge::WindowJudge;
pub use self::traffic::WindowsTraffic;
use self::world::WindowsWorld;
use crate::rng::Rng;

/// The time for which a lease outlasts its window, for outages.
const OUTAGE: Duration = Duration::from_secs(30);

/// Holders of one key, and what comes to them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowsRun {
    /// The number of holders.
    pub holders: usize,
    /// The most uses in any window.
    pub limit: u32,
    /// The window.
    pub window: Duration,
    /// The requests.
    pub traffic: WindowsTraffic,
    /// The longest that a request waits.
    pub waits: Duration,
    /// For how many windows requests are counted, after two in which everything begins.
    pub windows: u64,
    /// The longest way of a message; the shortest is a twentieth of that.
    pub way: Duration,
    /// The servers between the root and the holders.
    pub leaves: usize,
    /// The holders that die in the middle, with all that they have.
    pub dying: usize,
    /// The holders of which nobody hears anything from the middle on, nor they of anybody; requests go on coming to them.
    pub cut: usize,
    /// The holders that let go of everything in the middle.
    pub leaving: usize,
    /// Whether holders die and come back, are not heard of for a while and stand still, and servers are lost, until twelve windows
    /// before the end.
    pub goes_wrong: bool,
    /// The rules that holders go by: all of them, but in tests.
    pub rules: HolderRules,
    /// The rules that servers go by: all of them, but in tests.
    pub grantors: Rules,
}

/// The outcome.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WindowsReport {
    /// Requests.
    pub asked: u64,
    /// Those that were granted.
    pub granted: u64,
    /// Those that were granted at once, without a wait.
    pub at_once: u64,
    /// Those that were refused while a unit was unspent anywhere.
    pub wrongly_refused: u64,
    /// The most uses in any window, whenever it began.
    pub most: u64,
    /// Uses that were more than the limit allows.
    pub over: u64,
    /// The uses of all full windows that were counted one behind the other, as a fraction of the limit.
    pub share: f64,
    /// The least uses in one of those.
    pub least: u64,
    /// The least uses in any 1.1 windows among the last four: in so long each unit is used again.
    pub last: u64,
    /// The number of times that something went wrong.
    pub faults: u64,
    /// Messages but heartbeats, of holders and leaves together, while requests were counted.
    pub messages: u64,
}

// === impl WindowsRun ===

impl WindowsRun {
    /// Ten holders of a limit of so many uses in so many seconds; messages take up to 20 ms, and requests wait up to 100 ms.
    #[must_use]
    pub fn of(limit: u32, seconds: u64, traffic: WindowsTraffic) -> WindowsRun {
        WindowsRun {
            holders: 10,
            limit,
            window: Duration::from_secs(seconds),
            traffic,
            waits: Duration::from_millis(100),
            windows: 12,
            way: Duration::from_millis(20),
            leaves: 0,
            dying: 0,
            cut: 0,
            leaving: 0,
            goes_wrong: false,
            rules: HolderRules::default(),
            grantors: Rules::default(),
        }
    }

    /// A few holders, at the root or below some leaves, and everything goes wrong.
    #[must_use]
    pub fn drawn(seed: u64) -> WindowsRun {
        let mut rng = Rng::new(seed ^ 0x0e8a_c7ed);
        let limit = u32::try_from(rng.between(20, 40)).unwrap_or(20);
        WindowsRun {
            holders: rng.between(4, 8) as usize,
            leaves: rng.between(0, 3) as usize,
            windows: 24,
            goes_wrong: true,
            ..WindowsRun::of(limit, 60, WindowsTraffic::Even(1_000))
        }
    }

    /// Plays it.
    #[must_use]
    pub fn play(&self, seed: u64) -> WindowsReport {
        WindowsWorld::new(*self, seed).play()
    }

    /// The length of a lease: so that it outlasts its window at the root, and below it.
    #[must_use]
    pub fn lease(&self) -> Duration {
        let kept = Drift::DEFAULT.outlasting(self.window) + OUTAGE;
        let levels = 1 + u32::from(self.leaves > 0);
        let needed = (1..levels).fold(kept, |kept, _| Drift::DEFAULT.stretch(kept));
        Duration::from_secs(needed.as_secs() + 1)
    }

    pub(crate) fn repository(&self) -> Repository {
        let template = Template {
            kind: Kind::Gauge,
            window: Some(self.window),
            lease_length: self.lease(),
            learning: self.lease(),
            refresh_interval: Duration::from_secs(5),
            ..Template::new(Glob::new("*").expect("a glob"), Amount::from_units(self.limit.into()))
        };
        Repository::new(vec![template]).expect("it holds together")
    }
}

// === impl WindowsReport ===

impl WindowsReport {
    /// The requests that were refused while a unit was unspent anywhere, as a fraction of all.
    #[must_use]
    pub fn wrong(&self) -> f64 {
        self.wrongly_refused as f64 / self.asked.max(1) as f64
    }

    /// Messages but heartbeats for each use.
    #[must_use]
    pub fn messages_a_use(&self) -> f64 {
        self.messages as f64 / self.granted.max(1) as f64
    }
}
