//! How well several clients keep to the tiers of one domain that reaches all of them, beside one who knew everything.
//!
//! The real server, sessions and domains of clients, with a network between them that takes its time, and a clock of its
//! own for each client. One domain's requests reach the clients in a pattern; each is for one hit.
//!
//! Two things are compared with. *The truth* is the history of all hits that were really made, wherever that was: a refusal
//! is *incorrect* if the rules, applied to it, would have granted the hit. *The center* is one who is asked for every hit
//! and decides alone; what the clients grant more than it is *over-admitted*.
//!
//! ```
//! use lessor_sim::tenants::{Ask, Run, Traffic, Way};
//!
//! let run = Run { clients: 4, traffic: Traffic::Uniform, way: Way::Shared(Ask::Confirmed), seconds: 60, ..Run::default() };
//! let report = run.play(1);
//! assert_eq!(report.incorrect, 0);
//! assert!(report.over() < 0.05, "{}", report.over());
//! ```

mod client;
mod line;
mod report;
mod traffic;
mod truth;
mod way;
mod world;

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::Contract;
use lessor_client::domain::{Policies, Rules, Scope};
use lessor_client::session::Failure;
use lessor_proto::{Amount, ResourceId};
use lessor_server::repository::{Domains, Glob, Repository, Template};

pub use self::line::Line;
pub use self::report::Report;
pub use self::traffic::Traffic;
pub use self::way::{Ask, Way};
use self::world::World;

/// The domain.
const DOMAIN: &str = "tenant-42";
/// The name of the resource.
const RESOURCE: &str = "db";
/// By how much the times of two messages of the same way may differ.
const JITTER: Duration = Duration::from_millis(4);
/// Clients hold their leases before the first request comes.
const BEGIN: Duration = Duration::from_secs(5);

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// How many clients the domain reaches.
    pub clients: usize,
    /// Which of them, when.
    pub traffic: Traffic,
    /// What they know of each other.
    pub way: Way,
    /// How long, in simulated seconds.
    pub seconds: u64,
    /// Requests a second of all clients together, while there are any.
    pub rate: f64,
    /// How long a message takes from a client to the server, at least; a few milliseconds may be added.
    pub delay: Duration,
    /// What the domain may do.
    pub contract: Contract,
    /// The server is lost then, and another one takes its place a second later.
    pub lost_at: Option<Duration>,
}

// === impl Run ===

impl Default for Run {
    /// Four clients that tell each other, asked forty times a second for ten minutes, ten milliseconds from the server, with
    /// the tiers of [`Way::contract`].
    fn default() -> Run {
        let way = Way::Shared(Ask::Confirmed);
        Run {
            clients: 4,
            traffic: Traffic::Uniform,
            way,
            seconds: 600,
            rate: 40.0,
            delay: Duration::from_millis(10),
            contract: way.contract(),
            lost_at: None,
        }
    }
}

impl Run {
    /// Plays it; chance is drawn from `seed`.
    ///
    /// # Panics
    /// When it has no clients.
    #[must_use]
    pub fn play(&self, seed: u64) -> Report {
        assert!(self.clients > 0, "a domain reaches at least one client");
        let mut world = World::new(self, seed);
        world.play();
        world.report
    }

    fn repository(&self) -> Repository {
        let scope = match self.way {
            Way::Alone => Scope::Client,
            Way::Shared(_) | Way::Polling => Scope::Shared,
            Way::Strict => Scope::Strict,
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

/// What a client hears when nobody is there.
fn unreachable_server() -> Failure {
    Failure::Unreachable("connection refused".to_owned())
}

fn resource() -> ResourceId {
    ResourceId::new(RESOURCE, 256).expect("a name")
}
