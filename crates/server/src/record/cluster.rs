//! The etcd that keeps a record: which cluster it is, and how far that has come.

use std::fmt;

/// An etcd, as it answers.
///
/// A cluster that was restored from a backup has another id where it was set up with another token or with members at other
/// addresses, and the id of before where it was not; but it counts its terms from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EtcdCluster {
    /// The id of the cluster.
    pub id: u64,
    /// The term of raft that it is in: of a cluster that goes on, never less than it was.
    pub term: u64,
}

// === impl EtcdCluster ===

impl EtcdCluster {
    /// Whether it may have become the one that answers as `later`: it is no other, and was not seen to be set back.
    pub(crate) fn goes_on_as(self, later: EtcdCluster) -> bool {
        self.id == later.id && self.term <= later.term
    }
}

impl fmt::Display for EtcdCluster {
    /// The id as etcd itself shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {:x} in term {}", self.id, self.term)
    }
}
