//! Runs of several clients that share the tiers of one domain: how well they keep to them, beside one who knew
//! everything.
//!
//! The real server, sessions and domains of clients, with a network between them that takes its time, and a clock of its
//! own for each client. One domain's requests reach the clients in a pattern; each is for one hit.
//!
//! Two things are compared with. *The truth* is the history of all hits that were really made, wherever that was: a refusal
//! is *incorrect* if the rules, applied to it, would have granted the hit. *The center* is one who is asked for every hit
//! and decides alone; what the clients grant more than it is *over-admitted*.
//!
//! ```
//! use lessor_sim::tenants::{Ask, TenantsRun, TenantsTraffic, TenantsWay};
//!
//! let run = TenantsRun { clients: 4, traffic: TenantsTraffic::Uniform, way: TenantsWay::Shared(Ask::Confirmed), seconds: 60, ..TenantsRun::default() };
//! let report = run.play(1);
//! assert_eq!(report.incorrect, 0);
//! assert!(report.over() < 0.05, "{}", report.over());
//! ```

mod client;
mod line;
mod picture;
mod report;
mod traffic;
mod truth;
mod way;
mod world;

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::Contract;
use lessor_client::internals::domain::{Policies, Rules, Scope};
use lessor_proto::{Amount, ResourceId};
use lessor_server::repository::{Domains, Glob, Repository, Template};

pub use self::line::TenantsLine;
pub use self::picture::svg;
pub use self::report::TenantsReport;
pub use self::traffic::TenantsTraffic;
pub use self::way::{Ask, TenantsWay};
use self::world::TenantsWorld;

/// The domain.
const DOMAIN: &str = "tenant-42";
/// The name of the resource.
const RESOURCE: &str = "db";
/// By how much the times of two messages of the same way may differ.
const JITTER: Duration = Duration::from_millis(4);
/// The least time between two reports of a server to the one above.
const PAUSE: Duration = Duration::from_millis(5);
/// The deepest tree.
const MOST_LEVELS: u32 = 4;
/// Clients hold their leases before the first request comes.
const BEGIN: Duration = Duration::from_secs(5);

/// One run.
#[derive(Clone, Debug)]
pub struct TenantsRun {
    /// The number of clients that the domain reaches.
    pub clients: usize,
    /// The servers from a client up to the root: with two there are two leaves, with
    /// three four, below two nodes. Clients ask the leaves in turn.
    pub levels: u32,
    /// Which of them, when.
    pub traffic: TenantsTraffic,
    /// The knowledge that they have of each other.
    pub way: TenantsWay,
    /// The length of the run, in simulated seconds.
    pub seconds: u64,
    /// Requests a second of all clients together, while there are any.
    pub rate: f64,
    /// The least time that a message takes from a client to the server; a few milliseconds may be added.
    pub delay: Duration,
    /// The contract that says what the domain may do.
    pub contract: Contract,
    /// The server, or the last of the leaves, is lost then, and another one takes its site a second later.
    pub lost_at: Option<Duration>,
}

// === impl TenantsRun ===

impl Default for TenantsRun {
    /// Four clients that tell each other, asked forty times a second for ten minutes, ten milliseconds from the server, with
    /// the tiers of [`TenantsWay::contract`].
    fn default() -> TenantsRun {
        let way = TenantsWay::Shared(Ask::Confirmed);
        TenantsRun {
            clients: 4,
            levels: 1,
            traffic: TenantsTraffic::Uniform,
            way,
            seconds: 600,
            rate: 40.0,
            delay: Duration::from_millis(10),
            contract: way.contract(),
            lost_at: None,
        }
    }
}

impl TenantsRun {
    /// Plays it; chance is drawn from `seed`.
    ///
    /// # Panics
    /// When it has no clients, or no levels, or more than four.
    #[must_use]
    pub fn play(&self, seed: u64) -> TenantsReport {
        assert!(self.clients > 0, "a domain reaches at least one client");
        assert!((1..=MOST_LEVELS).contains(&self.levels), "a tree of one to four levels");
        let mut world = TenantsWorld::new(self, seed);
        world.play();
        world.report
    }

    /// The server that each asks, the root first.
    fn parents(&self) -> Vec<Option<usize>> {
        let above = |server: usize| server.checked_sub(1).map(|before| before / 2);
        (0..(1 << self.levels) - 1).map(above).collect()
    }

    fn leaves(&self) -> usize {
        1 << (self.levels - 1)
    }

    /// For how long nobody need know what another client did: up to the root and down again, on each way as long as a message
    /// takes and a report waits for the one before it.
    fn young(&self) -> Duration {
        let way = (self.delay + JITTER) * 2 * self.levels;
        way + Duration::from_millis(1) + PAUSE * 2 * (self.levels - 1)
    }

    fn repository(&self) -> Repository {
        let scope = match self.way {
            TenantsWay::Alone => Scope::Client,
            TenantsWay::Shared(_) | TenantsWay::Polling => Scope::Shared,
            TenantsWay::Strict => Scope::Strict,
        };
        let rules = Rules { scope, default: Some(self.contract.clone()), ..Rules::default() };
        let policies = Policies::new(rules).expect("nothing stands twice");
        let domains = Domains { policies: Arc::new(policies), changes: Vec::new() };
        // So much that the lease refuses nothing.
        let template = Template::new(Glob::new("*").expect("a glob"), Amount::from_units(1_000_000));
        let learning = Duration::ZERO;
        let template = Template { domains: Some(domains), learning, ..template };
        Repository::new(vec![template]).expect("a template that holds together")
    }
}

/// The failure that a client hears of when nobody is there.
fn resource() -> ResourceId {
    ResourceId::new(RESOURCE, 256).expect("a name")
}
