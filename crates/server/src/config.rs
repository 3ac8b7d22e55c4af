//! What a node is told at its start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::session::Transport;
use lessor_proto::message::Limits;
use lessor_proto::{Amount, Drift, ResourceId, Time};

use crate::mutation::Rules;
use crate::repository::Template;

/// What a node is told at its start. Everything that clients can make grow has its limit here.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The name of the node in the tree.
    pub name: String,
    /// The number of this reign: greater than that of any before.
    pub epoch: u64,
    /// How much clocks may err.
    pub drift: Drift,
    /// Limits on one request.
    pub message: Limits,
    /// Resources in all.
    pub resources: usize,
    /// Holders of one resource.
    pub clients_per_resource: usize,
    /// Lives of one client id that may hold one resource at once.
    pub lives_per_client: usize,
    /// Decides where names fall in hash tables. Secret to clients, or they could slow others down.
    pub hash_seed: u64,
    /// The template for names that the repository does not cover; absent: they are refused.
    pub unknown_names: Option<Arc<Template>>,
    /// The node above, for all but the root.
    pub parent: Option<ParentConfig>,
    /// What the leaders before this one may have left out; absent: nobody knows, and the node learns.
    pub record: Option<Record>,
    /// All of them, except where a test shows what each is for.
    pub rules: Rules,
}

/// Where the capacity of a node comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParentConfig {
    /// `host:port` of the tasks of the node above, asked in turn; at least one.
    pub servers: Vec<Arc<str>>,
    /// The way to speak to them.
    pub transport: Transport,
    /// Whether polling asks before its time when there is news.
    pub eager: bool,
}

/// What a leader must know of those before it: the most that may be out under them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// Of each resource; of those that are not mentioned nothing is out.
    pub outstanding: BTreeMap<ResourceId, Amount>,
    /// How long any of it may last, by the clock of whoever holds it.
    pub longest_lease: Duration,
    /// For how long, at the least, nobody had led when this leader began, by its own clock. It need not wait again for what
    /// has ended meanwhile.
    pub vacant: Duration,
}

// === impl NodeConfig ===

impl NodeConfig {
    /// A node of that name and reign, with the default limits.
    #[must_use]
    pub fn new(name: impl Into<String>, epoch: u64) -> NodeConfig {
        NodeConfig {
            name: name.into(),
            epoch,
            drift: Drift::DEFAULT,
            message: Limits::default(),
            resources: 100_000,
            clients_per_resource: 1_000_000,
            lives_per_client: 16,
            hash_seed: 0,
            unknown_names: None,
            parent: None,
            record: None,
            rules: Rules::default(),
        }
    }
}

// === impl Record ===

impl Record {
    /// When nothing of it is in use any more, by the clock of a leader that began at `since`.
    pub(crate) fn ends(&self, since: Time, drift: Drift) -> Time {
        let over = drift.grantor_end(since, self.longest_lease);
        Time::from_nanos(
            over.as_nanos().saturating_sub(u64::try_from(self.vacant.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}
