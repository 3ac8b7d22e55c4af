//! The memory of servers that are not elected: what they write down, and how their operators change that.

use super::{EtcdPlan, Link};

/// The records that servers write when they are not elected, and whether sites are given another way to
/// remember.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Memory {
    /// The disk on which servers that are alone have a state directory; absent: they write nothing down.
    pub disk: Option<DiskPlan>,
    /// The etcd that sites may be given; absent: they keep to the way in which they began.
    pub etcd: Option<EtcdPlan>,
}

/// The disk of a server that is alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskPlan {
    /// The time that it takes until a file is replaced and synced.
    pub write: Link,
    /// Whether changes are added to the file of any record, and not of long ones alone.
    pub grows: bool,
}

/// The way in which a site remembers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Keeps {
    /// One server, which writes nothing down.
    Nothing,
    /// One server, with a state directory.
    File,
    /// Tasks that stand for election.
    Etcd,
}

// === impl DiskPlan ===

impl Default for DiskPlan {
    /// One to five milliseconds a write.
    fn default() -> DiskPlan {
        let millis = std::time::Duration::from_millis;
        DiskPlan { write: Link { latency: millis(1), jitter: millis(4) }, grows: false }
    }
}
