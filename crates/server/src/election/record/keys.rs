//! The keys of the record of a node.

use lessor_proto::ResourceId;

/// The keys of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordKeys {
    /// The key of the leader.
    pub leader: String,
    /// The last write.
    pub epoch: String,
    /// When the leader that wrote last had stopped.
    pub stop: String,
    /// When those before it had.
    pub earlier: String,
    /// The etcd at which the record was written.
    pub cluster: String,
    /// With that the keys of all marks begin.
    pub marks: String,
    /// With that all of them begin.
    pub node: String,
}

// === impl RecordKeys ===

impl RecordKeys {
    /// Of a node, under a prefix.
    #[must_use]
    pub fn new(prefix: &str, node: &str) -> RecordKeys {
        let node = node.replace('%', "%25").replace('/', "%2F");
        let node = format!("{}/{node}/", prefix.trim_end_matches('/'));
        RecordKeys {
            leader: format!("{node}leader"),
            epoch: format!("{node}reign"),
            stop: format!("{node}stop"),
            earlier: format!("{node}earlier"),
            cluster: format!("{node}cluster"),
            marks: format!("{node}mark/"),
            node,
        }
    }

    /// Of the mark of a resource.
    #[must_use]
    pub fn mark(&self, resource: &ResourceId) -> String {
        format!("{}{resource}", self.marks)
    }
}
