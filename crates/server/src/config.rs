//! The configuration of a node at its start.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::Transport;
use lessor_proto::message::Limits;
use lessor_proto::{Drift, Epoch, Features};

use crate::mutation::Rules;
use crate::record::Record;
use crate::repository::Template;
use crate::token::TokenKeys;

/// The configuration of a node at its start. Everything that clients can make grow has its limit here.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The name of the node in the tree.
    pub name: String,
    /// The number of this epoch: greater than that of any before.
    pub epoch: Epoch,
    /// The bound on the error of clocks.
    pub drift: Drift,
    /// Limits on one request.
    pub message: Limits,
    /// Resources in all.
    pub resources: usize,
    /// Holders of one resource.
    pub clients_per_resource: usize,
    /// Holders of all resources together, each as often as it holds one.
    pub holdings: usize,
    /// Resources that one stream may hold.
    pub resources_per_stream: usize,
    /// Resources of one stream that a heartbeat renews before others are heard.
    pub heartbeat_slice: usize,
    /// Lives of one client id that may hold one resource at once.
    pub lives_per_client: usize,
    /// Decides where names fall in hash tables, and under which number a node that stands in no line is known to the node above.
    /// Secret to clients, or they could slow others down, and pose as the node.
    pub hash_seed: u64,
    /// The template for names that the repository does not cover; absent: they are refused.
    pub unknown_names: Option<Arc<Template>>,
    /// The line of succession in which `epoch` stands: all who bear the name of this node in one line are one holder to the
    /// node above, the later in the place of the earlier. Absent: nobody has preceded this process, and whatever else bears
    /// its name is another holder.
    pub line: Option<u64>,
    /// The node above, for all but the root.
    pub parent: Option<ParentConfig>,
    /// The record of the capacity that earlier leaders may have left out; absent: nobody knows it, and the node
    /// learns, unless it keeps marks: then nothing is out.
    pub record: Option<Record>,
    /// Whether nothing is handed out beyond marks that a successor can read ([`Node::next_marks`]). A server that is
    /// alone keeps none.
    ///
    /// [`Node::next_marks`]: crate::node::Node::next_marks
    pub marks: bool,
    /// For how long a leader of this node goes on leading without hearing that it still does. Written beside the marks.
    pub authority: Duration,
    /// With what tokens are made and checked; absent: there are none.
    pub keys: Option<TokenKeys>,
    /// Whether those who show a lease from before `record` are believed without a token, where there are no keys.
    pub trust_claims: bool,
    /// The treatment of capacity that claimants give up.
    pub claims: Claims,
    /// The kinds of message that it knows, as it says to both sides: those of this version, except where a test has a node of an
    /// earlier one.
    pub features: Features,
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

/// The treatment of capacity that claimants give up of what they showed to a new leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Claims {
    /// It is free for others at once. Who shows an old token, after it has given that capacity back, makes some of what
    /// others hold look free, until that ends.
    #[default]
    Freed,
    /// It is free when everything has ended that may be out from before: whatever holders say, those who are honest are
    /// never above the capacity.
    Deferred,
}

/// The time for which a leader leads without hearing that it still does, if nothing else is said.
const AUTHORITY: Duration = Duration::from_secs(4);

// === impl NodeConfig ===

impl NodeConfig {
    /// The resources of one stream, if nothing else is said.
    pub const RESOURCES_PER_STREAM: usize = 20_000;

    /// A node of that name and epoch, with the default limits.
    #[must_use]
    pub fn new(name: impl Into<String>, epoch: Epoch) -> NodeConfig {
        NodeConfig {
            name: name.into(),
            epoch,
            drift: Drift::DEFAULT,
            message: Limits::default(),
            resources: 100_000,
            clients_per_resource: 1_000_000,
            holdings: 2_000_000,
            resources_per_stream: NodeConfig::RESOURCES_PER_STREAM,
            heartbeat_slice: 256,
            lives_per_client: 16,
            hash_seed: 0,
            unknown_names: None,
            line: None,
            parent: None,
            record: None,
            marks: false,
            authority: AUTHORITY,
            keys: None,
            trust_claims: false,
            claims: Claims::default(),
            features: Features::CURRENT,
            rules: Rules::default(),
        }
    }
}

/// For how long a leader that begins without knowing what is out learns it by `template`, of floors or of all others, before it
/// hands out anything else; zero if it is not to.
pub(crate) fn learning(
    template: &Template,
    is_floor: bool,
    record: Option<&Record>,
    drift: Drift,
) -> Duration {
    if template.learning.is_zero() {
        return Duration::ZERO;
    }
    // Whatever is written there, a lease of a server with these very templates may last for so long.
    let lease = template.lease_length;
    let longest = record.map_or(lease, |record| {
        let floors = if is_floor { record.longest_safe_lease } else { Duration::ZERO };
        let before = lease.max(record.longest_lease).max(floors);
        before.saturating_add(record.authority)
    });
    drift.stretch(template.learning.max(longest))
}
