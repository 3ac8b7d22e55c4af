//! What a node is told at its start.

use std::sync::Arc;

use lessor_proto::Drift;
use lessor_proto::message::Limits;

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
        }
    }
}
