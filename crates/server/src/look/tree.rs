//! The tree as operators look at it: each node with its busiest resources, by its published figures.

use lessor_proto::wire;
use lessor_proto::wire::view_below::Seen;
use prost::Message;

use super::frame::{ViewBranch, ViewTree, plain};
use crate::node::{NodeStatus, ResourceRow};
use crate::repository::Glob;

/// The choice of what is shown of each node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeQuery {
    /// Resources of each node at the most: the busiest.
    pub resources: usize,
    /// Those only whose names match this.
    pub matching: Option<Glob>,
}

/// A node and those below it, as it was seen by the one above.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct NodeBranch {
    /// Its name.
    pub node: String,
    /// Whether it has answered, and why not.
    pub seen: NodeSeen,
    /// The figures of it; absent where it has not answered.
    pub figures: Option<NodeFigures>,
    /// The nodes below it that are named.
    pub below: Vec<NodeBranch>,
    /// The number of those that are not, as there are too many.
    pub unnamed: usize,
}

/// The way in which a node was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum NodeSeen {
    /// It has answered.
    Shown,
    /// It has not answered in time.
    Silent,
    /// It has no stream open, or is of a version that is not asked.
    CannotBeAsked,
    /// There was more than is shown.
    LeftOut,
    /// The answer cannot be read.
    Malformed,
}

/// The figures of a node.
#[derive(Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct NodeFigures {
    /// The version of its program.
    pub version: String,
    /// The number of its epoch.
    pub epoch: u64,
    /// Where its leader says that it is.
    pub address: String,
    /// Which edition of the configuration is in force; 0 if nobody counts them.
    pub config_version: u64,
    /// The later one that was in force before, if there is such a one: then nothing is granted.
    pub later_config: Option<u64>,
    /// The time for which it has led, in seconds.
    pub leading_seconds: f64,
    /// Streams that are open.
    pub streams: u64,
    /// Those of them whose holders are of an earlier version.
    pub older_streams: u64,
    /// The number of resources that it keeps.
    pub resources_in_all: u64,
    /// The age of these figures, in seconds.
    pub age_seconds: f64,
    /// The busiest of its resources, the busiest first.
    pub resources: Vec<ResourceFigures>,
}

/// The figures of a resource at a node.
#[derive(Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct ResourceFigures {
    /// Its name.
    pub resource: String,
    /// `rate` or `gauge`.
    pub kind: &'static str,
    /// The amount that the node may hand out.
    pub capacity: f64,
    /// All that may be out.
    pub out: f64,
    /// The amount that is wanted.
    pub wants: f64,
    /// Holders, clients and nodes.
    pub clients: u64,
    /// The amount by which holders are short of their shares.
    pub short: f64,
    /// The part of what is out that may be out to holders that are not known.
    pub ghost: f64,
    /// The amount by which more is out than may be.
    pub over: f64,
    /// Whether the node learns what is out.
    pub learning: bool,
    /// Whether more is out than there is after a cut.
    pub in_debt: bool,
    /// The time for which the lease from the node above lasts, in seconds. Absent where the capacity is configured.
    pub lease_ends_in_seconds: Option<f64>,
}

/// The count of nodes by how they were seen.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct SeenNodes {
    /// Those that have answered.
    pub shown: usize,
    /// The ways to those that have not in time, from the root down.
    pub silent: Vec<String>,
    /// Those that cannot be asked.
    pub cannot_be_asked: Vec<String>,
    /// Those that were left out, or that cannot be read.
    pub left_out: Vec<String>,
}

/// The figures of a node beside its status.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct NodeFacts<'a> {
    /// The version of its program.
    pub version: &'a str,
    /// Where it says that it is.
    pub address: &'a str,
    /// Streams that are open.
    pub streams: usize,
    /// Those of them whose holders are of an earlier version.
    pub older_streams: usize,
    /// The age of the status, in milliseconds.
    pub age_ms: u64,
}

// === impl TreeQuery ===

impl TreeQuery {
    /// Resources that are shown of each node where nobody says otherwise, and at the most.
    pub const RESOURCES: [usize; 2] = [50, 1_000];

    /// As it is asked.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        wire::TreeQuestion {
            resources: Some(u32::try_from(self.resources).unwrap_or(u32::MAX)),
            matching: self.matching.as_ref().map(ToString::to_string),
        }
        .encode_to_vec()
    }

    /// As it was asked; nothing where it cannot be read.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<TreeQuery> {
        let [usual, most] = TreeQuery::RESOURCES;
        let wire::TreeQuestion { resources, matching } = wire::TreeQuestion::decode(body).ok()?;
        Some(TreeQuery {
            resources: resources.map_or(usual, |resources| resources as usize).min(most),
            matching: matching.map(|matching| Glob::new(&matching)).transpose().ok()?,
        })
    }

    /// The content of a node for this, of at most so many bytes: resources that would go beyond are left out.
    #[must_use]
    pub fn content(&self, status: &NodeStatus, facts: &NodeFacts<'_>, bytes: usize) -> Vec<u8> {
        let matching = |row: &&ResourceRow| {
            self.matching.as_ref().is_none_or(|glob| glob.matches(&row.resource.resource))
        };
        let mut rows: Vec<&ResourceRow> = status.resources.iter().filter(matching).collect();
        rows.sort_by(|one, other| {
            let [one_over, over] = [one, other].map(|row| row.resource.overcommitment);
            let [one_clients, clients] = [one, other].map(|row| row.resource.clients);
            over.total_cmp(&one_over)
                .then(clients.cmp(&one_clients))
                .then_with(|| one.resource.resource.cmp(&other.resource.resource))
        });
        let mut node = wire::TreeNode {
            version: Some(facts.version.to_owned()),
            epoch: Some(status.epoch.0),
            address: Some(facts.address.to_owned()),
            config_version: Some(status.config_version),
            later_config: status.later_config,
            leading_ms: Some(millis(status.leading_seconds)),
            streams: Some(facts.streams as u64),
            older_streams: Some(facts.older_streams as u64),
            resources_in_all: Some(status.resources_in_all as u64),
            age_ms: Some(facts.age_ms),
            resource: Vec::new(),
        };
        let mut left = bytes.saturating_sub(node.encoded_len());
        for row in rows.into_iter().take(self.resources) {
            let row = packed(row);
            let length = row.encoded_len() + 4;
            if length > left {
                break;
            }
            left -= length;
            node.resource.push(row);
        }
        node.encode_to_vec()
    }
}

fn packed(row: &ResourceRow) -> wire::TreeResource {
    let some = |amount: f64| Some(amount).filter(|amount| *amount > 0.0);
    wire::TreeResource {
        resource: row.resource.resource.clone(),
        capacity: row.resource.capacity,
        out: row.outstanding,
        wants: row.resource.wants,
        clients: Some(row.resource.clients as u64),
        is_gauge: (row.resource.kind == "gauge").then_some(true),
        lease_ms: row.lease_ends_in_seconds.map(millis),
        short: some(row.pressure.short),
        ghost: some(row.ghost),
        over: some(row.resource.overcommitment),
        is_learning: row.resource.learning.then_some(true),
        is_in_debt: row.resource.in_debt.then_some(true),
    }
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}

// === impl NodeBranch ===

impl NodeBranch {
    /// The tree of a view, whose first node has that name.
    #[must_use]
    pub fn of(node: String, view: ViewTree) -> NodeBranch {
        let figures = view.content.as_deref().and_then(|content| wire::TreeNode::decode(content).ok());
        NodeBranch {
            node,
            seen: NodeSeen::Shown,
            figures: figures.map(NodeFigures::of),
            below: view.below.into_iter().map(NodeBranch::of_branch).collect(),
            unnamed: view.unnamed,
        }
    }

    fn of_branch(branch: ViewBranch) -> NodeBranch {
        let ViewBranch { node, seen, view } = branch;
        match view {
            Some(view) => NodeBranch::of(node, view),
            None => {
                let seen = NodeSeen::of(seen);
                NodeBranch { node, seen, figures: None, below: Vec::new(), unnamed: 0 }
            }
        }
    }

    /// The nodes of the tree by how they were seen.
    #[must_use]
    pub fn seen_nodes(&self) -> SeenNodes {
        let mut nodes = SeenNodes::default();
        self.count(&mut Vec::new(), &mut nodes);
        nodes
    }

    fn count<'a>(&'a self, way: &mut Vec<&'a str>, nodes: &mut SeenNodes) {
        way.push(&self.node);
        match self.seen {
            NodeSeen::Shown => nodes.shown += 1,
            NodeSeen::Silent => nodes.silent.push(way.join(" > ")),
            NodeSeen::CannotBeAsked => nodes.cannot_be_asked.push(way.join(" > ")),
            NodeSeen::LeftOut | NodeSeen::Malformed => nodes.left_out.push(way.join(" > ")),
        }
        self.below.iter().for_each(|below| below.count(way, nodes));
        way.pop();
    }
}

// === impl NodeSeen ===

impl NodeSeen {
    /// As the node above has said it.
    #[must_use]
    pub fn of(seen: Seen) -> NodeSeen {
        match seen {
            Seen::Shown => NodeSeen::Shown,
            Seen::Silent => NodeSeen::Silent,
            Seen::CannotBeAsked => NodeSeen::CannotBeAsked,
            Seen::LeftOut => NodeSeen::LeftOut,
            Seen::Malformed => NodeSeen::Malformed,
        }
    }
}

// === impl NodeFigures ===

impl NodeFigures {
    fn of(node: wire::TreeNode) -> NodeFigures {
        NodeFigures {
            version: plain(&node.version.unwrap_or_default()),
            epoch: node.epoch.unwrap_or_default(),
            address: plain(&node.address.unwrap_or_default()),
            config_version: node.config_version.unwrap_or_default(),
            later_config: node.later_config,
            leading_seconds: seconds(node.leading_ms.unwrap_or_default()),
            streams: node.streams.unwrap_or_default(),
            older_streams: node.older_streams.unwrap_or_default(),
            resources_in_all: node.resources_in_all.unwrap_or_default(),
            age_seconds: seconds(node.age_ms.unwrap_or_default()),
            resources: node.resource.iter().map(ResourceFigures::of).collect(),
        }
    }
}

// === impl ResourceFigures ===

impl ResourceFigures {
    fn of(row: &wire::TreeResource) -> ResourceFigures {
        ResourceFigures {
            resource: plain(&row.resource),
            kind: if row.is_gauge == Some(true) { "gauge" } else { "rate" },
            capacity: row.capacity,
            out: row.out,
            wants: row.wants,
            clients: row.clients.unwrap_or_default(),
            short: row.short.unwrap_or_default(),
            ghost: row.ghost.unwrap_or_default(),
            over: row.over.unwrap_or_default(),
            learning: row.is_learning.unwrap_or(false),
            in_debt: row.is_in_debt.unwrap_or(false),
            lease_ends_in_seconds: row.lease_ms.map(seconds),
        }
    }
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}
