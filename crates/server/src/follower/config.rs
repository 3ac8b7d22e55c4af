//! The settings of a follower, and what it is told of its task.

use std::time::Duration;

use super::mutation::FollowerRules;
use crate::revision::{BadPrefix, FEATURE_LEVEL, RevisionKeys};

/// The settings of a follower.
#[derive(Clone, Debug)]
pub struct FollowerConfig {
    /// The keys of revisions.
    pub keys: RevisionKeys,
    /// The node.
    pub node: String,
    /// The number of this process, which no other has.
    pub nonce: u64,
    /// The address that clients are told.
    pub address: String,
    /// The version of the program.
    pub binary: String,
    /// The feature level of the templates that it reads.
    pub level: u32,
    /// The time that a call may take.
    pub call_timeout: Duration,
    /// The rules that it keeps: all of them, but in some tests.
    pub rules: FollowerRules,
}

/// The standing of a task, as it is told in its report.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TaskStanding {
    /// Whether it leads its node.
    pub leads: bool,
    /// Whether it stands for election, or needs none.
    pub stands: bool,
    /// The greatest number in the record of the node, if it leads.
    pub record: u64,
}

// === impl FollowerConfig ===

impl FollowerConfig {
    /// That of a task of `node`, with the templates under `prefix`.
    ///
    /// # Errors
    /// When the prefix cannot be one.
    pub fn new(prefix: &str, node: &str, nonce: u64) -> Result<FollowerConfig, BadPrefix> {
        Ok(FollowerConfig {
            keys: RevisionKeys::new(prefix)?,
            node: node.to_owned(),
            nonce,
            address: String::new(),
            binary: String::new(),
            level: FEATURE_LEVEL,
            call_timeout: Duration::from_secs(2),
            rules: FollowerRules::default(),
        })
    }
}
