//! The identity of a task: the node that it is one of, the address at which it is, and the program that it runs.

use std::sync::Arc;

use lessor_proto::message::Leader;

use crate::node::NodeConfig;
use crate::shell::build::Build;

/// Which task this is.
pub(super) struct TaskIdentity {
    /// The configuration of the node, kept outside the lock: it never changes.
    pub(super) config: NodeConfig,
    /// The address that clients are told.
    advertise: String,
    /// The program that this is.
    pub(super) build: Build,
}

// === impl TaskIdentity ===

impl TaskIdentity {
    pub(super) fn new(config: NodeConfig, advertise: String) -> TaskIdentity {
        TaskIdentity { config, advertise, build: Build::default() }
    }

    /// The program that this is, and the node with the servers above it.
    pub(super) fn named(&self) -> (&Build, &str, &[Arc<str>]) {
        let above = self.config.parent.as_ref().map_or(&[][..], |parent| &parent.servers);
        (&self.build, &self.config.name, above)
    }

    /// The address that clients are told.
    pub(super) fn address(&self) -> &str {
        &self.advertise
    }

    /// This task as the leader.
    pub(super) fn as_leader(&self) -> Leader {
        Leader::at(self.advertise.clone())
    }

    /// Whether `leader` is this task.
    pub(super) fn is_at(&self, leader: &Leader) -> bool {
        leader.address.as_ref() == Some(&self.advertise)
    }

    /// The leader instead of this task, as far as it knows: not itself, when its authority has lapsed.
    pub(super) fn another(&self, leader: Leader) -> Leader {
        if self.is_at(&leader) { Leader::default() } else { leader }
    }
}
