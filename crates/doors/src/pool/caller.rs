//! A caller: the locks that one connection has, and its wait for another.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Time;

use super::key::PoolGauge;

/// The time that news of a job takes at the most that was done elsewhere. What was done so shortly before a wait began counts for
/// it: its caller has looked for the outcome before that, and found none.
const NEWS: Duration = Duration::from_millis(50);

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
    /// The moment from which on a job that is done elsewhere counts for it.
    pub(super) fn job_since(&self) -> Time {
        self.since.earlier(NEWS)
    }

    /// When there is something to be decided of it.
    pub(super) fn due(&self) -> Time {
        self.doubts.unwrap_or(Time::MAX).min(self.deadline)
    }
}
