//! A caller: the locks that one connection has, and its wait for another.

use std::sync::Arc;

use lessor_proto::Time;

use super::key::PoolGauge;

/// The state of a connection.
#[derive(Debug)]
pub(super) struct PoolCaller<P> {
    /// The locks, the newest last.
    pub(super) locks: Vec<PoolLock<P>>,
    pub(super) wait: Option<PoolWait>,
}

/// A lock that is held.
#[derive(Debug)]
pub(super) struct PoolLock<P> {
    pub(super) gauge: Arc<PoolGauge>,
    pub(super) since: Time,
    /// The unit of the gauge; absent where the lock was given although nothing was leased.
    pub(super) permit: Option<P>,
}

/// A wait for a lock.
#[derive(Clone, Debug)]
pub(super) struct PoolWait {
    pub(super) gauge: Arc<PoolGauge>,
    pub(super) for_anyone: bool,
    pub(super) since: Time,
    pub(super) deadline: Time,
    /// Until when it is but a question to a server, where fewer work here than may: the next line comes after its answer.
    pub(super) asks_until: Option<Time>,
    /// When it is over already if nothing is leased by then.
    pub(super) doubts: Option<Time>,
}

// === impl PoolCaller ===

impl<P> PoolCaller<P> {
    /// The locks, one that it waits for among them.
    pub(super) fn count(&self) -> usize {
        self.locks.len() + usize::from(self.wait.is_some())
    }
}

impl<P> Default for PoolCaller<P> {
    fn default() -> PoolCaller<P> {
        PoolCaller { locks: Vec::new(), wait: None }
    }
}

// === impl PoolWait ===

impl PoolWait {
    /// When there is something to be decided of it.
    pub(super) fn due(&self) -> Time {
        self.doubts.unwrap_or(Time::MAX).min(self.deadline)
    }
}
