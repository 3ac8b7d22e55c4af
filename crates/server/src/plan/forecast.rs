//! The forecast of one node: its part of a plan, as it says it.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::domains::DomainsForecast;

/// The forecast of a node.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct NodeForecast {
    /// The name of the node.
    pub node: String,
    /// The number of its epoch.
    pub epoch: u64,
    /// Which edition of the configuration is in force there; 0 if nobody counts them.
    pub config_version: u64,
    /// Whether its templates would be others.
    pub has_change: bool,
    /// The resources that change there.
    pub resources: Vec<ResourceForecast>,
    /// Those that would change as well, and were not looked at, as they are too many.
    pub unplanned: usize,
    /// Nodes below that do not say what they would want, each with the reason.
    pub silent: Vec<String>,
    /// Holders that would be refused.
    pub refused: Vec<RefusedHolders>,
    /// Things that somebody should see to.
    pub notes: Vec<PlanNote>,
    /// The clients that were asked about.
    pub watched: Vec<WatchedClients>,
}

/// The forecast of a resource at a node, or of a tree.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct ResourceForecast {
    /// Its name.
    pub resource: String,
    /// The glob of the template that covers it, and of the one that would; absent: none.
    pub template: [Option<String>; 2],
    /// `rate` or `gauge`, before and after.
    pub kind: [String; 2],
    /// The name of the policy, before and after.
    pub algorithm: [String; 2],
    /// The amount that may be out, before and after; without limit it is absent.
    pub capacity: [Option<f64>; 2],
    /// All that may be out.
    pub out: f64,
    /// The amount that is wanted.
    pub wants: f64,
    /// The levels, the greatest priority first.
    pub levels: Vec<BandChange>,
    /// Clients whose share shrinks.
    pub losers: Movers,
    /// Clients whose share grows.
    pub gainers: Movers,
    /// Clients that keep what they have.
    pub keep: usize,
    /// The sum of the shares of all clients, before and after.
    pub shares: [f64; 2],
    /// Clients that are not looked at one by one, as they are too many: their shares are right together.
    pub not_named: usize,
    /// Its hot domains, where their policies change and clients share them: as the node sees them where the most would be refused.
    #[serde(default)]
    pub domains: Option<DomainsForecast>,
    /// When it would be in force.
    pub until: UntilForecast,
}

/// A priority of a resource, before and after.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct BandChange {
    /// The greater number is served first.
    pub priority: i64,
    /// The most that one client of it gets; absent where all have what they want.
    pub level: [Option<f64>; 2],
}

/// Clients whose shares change in one way.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Movers {
    /// The number of them.
    pub count: usize,
    /// The sum of the changes.
    pub sum: f64,
    /// Those with the greatest.
    pub worst: Vec<Mover>,
}

/// A client whose share changes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Mover {
    /// The node at which it is.
    pub node: String,
    /// Its id.
    pub client: String,
    /// The amount that it is charged for.
    pub has: f64,
    /// The amount that it wants.
    pub wants: f64,
    /// The share, before and after.
    pub share: [f64; 2],
}

/// The time until a change is in force.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct UntilForecast {
    /// The time that it takes if everybody answers at once, in seconds.
    pub likely_s: f64,
    /// The time that it takes at the latest, in seconds.
    pub latest_s: f64,
    /// The reason of that.
    pub because: String,
}

/// Holders of a resource at a node that would be refused.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct RefusedHolders {
    /// The resource.
    pub resource: String,
    /// The node.
    pub node: String,
    /// The number of them.
    pub count: usize,
    /// The names of some.
    pub some: Vec<String>,
    /// The reason.
    pub why: String,
    /// When the last of their leases ends, in seconds.
    pub by_s: f64,
}

/// Something about a change that somebody should see to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
pub struct PlanNote {
    /// The resource, or the glob of the template.
    pub resource: String,
    /// The node.
    pub node: String,
    /// The text.
    pub note: String,
}

/// Clients that were asked about by a pattern.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct WatchedClients {
    /// The pattern.
    pub glob: String,
    /// The number of them.
    pub count: usize,
    /// The sum of what they lose.
    pub loss: f64,
    /// The sum of their shares, before and after.
    pub shares: [f64; 2],
}

/// Clients that are named.
const MOST_NAMED: usize = 10;

// === impl Movers ===

impl Movers {
    /// One more.
    pub fn add(&mut self, mover: Mover) {
        self.count += 1;
        self.sum += mover.change();
        self.worst.push(mover);
        if self.worst.len() > MOST_NAMED * 2 {
            self.rank();
        }
    }

    /// Those as well.
    pub fn join(&mut self, other: Movers) {
        self.count += other.count;
        self.sum += other.sum;
        self.worst.extend(other.worst);
        self.rank();
    }

    /// Leaves those with the greatest changes, the greatest first.
    pub fn rank(&mut self) {
        self.worst.sort_by(Mover::order);
        self.worst.truncate(MOST_NAMED);
    }
}

// === impl Mover ===

impl Mover {
    /// The amount by which its share changes.
    #[must_use]
    pub fn change(&self) -> f64 {
        (self.share[1] - self.share[0]).abs()
    }

    fn order(&self, other: &Mover) -> Ordering {
        let names = || (&self.node, &self.client).cmp(&(&other.node, &other.client));
        other.change().total_cmp(&self.change()).then_with(names)
    }
}

// === impl UntilForecast ===

impl UntilForecast {
    /// The later of both.
    pub fn join(&mut self, other: UntilForecast) {
        self.likely_s = self.likely_s.max(other.likely_s);
        if other.latest_s > self.latest_s {
            (self.latest_s, self.because) = (other.latest_s, other.because);
        }
    }
}
