//! Views of a table: nothing changes by them.

use lessor_proto::Time;

use super::PoolCounts;
use super::caller::PoolWait;
use super::caller_id::CallerId;
use super::key::PoolGauge;
use super::table::PoolTable;

// === impl PoolTable ===

impl<P> PoolTable<P> {
    /// Whether a caller has a lock or waits for one.
    #[must_use]
    pub fn is_busy(&self, caller: CallerId) -> bool {
        self.callers.get(&caller).is_some_and(|of| of.count() > 0)
    }

    /// Whether the next line of a caller has to wait, as one is not answered yet that would be at once if its unit were here.
    #[must_use]
    pub fn is_asking(&self, caller: CallerId, now: Time) -> bool {
        let wait = self.callers.get(&caller).and_then(|of| of.wait.as_ref());
        wait.and_then(|wait| wait.asks_until).is_some_and(|until| now < until)
    }

    /// When there is something to be decided of the wait of a caller, if it waits.
    #[must_use]
    pub fn due(&self, caller: CallerId) -> Option<Time> {
        self.callers.get(&caller)?.wait.as_ref().map(PoolWait::due)
    }

    /// The units of a gauge that are in use, and those that are waited for and would be given.
    #[must_use]
    pub fn need(&self, gauge: &PoolGauge) -> (u32, u32) {
        self.keys.get(&gauge.key).map_or((0, 0), |line| line.need(gauge))
    }

    /// Since when a job that is done elsewhere is waited for, with a unit of this gauge; nothing where nobody waits for anybody's, or
    /// nobody can be at work elsewhere.
    #[must_use]
    pub fn awaits(&self, gauge: &PoolGauge) -> Option<Time> {
        let line = self.keys.get(&gauge.key).filter(|line| line.need(gauge).1 > 0)?;
        let mut waits = line.for_anyone.iter().filter_map(|caller| self.callers.get(caller)?.wait.as_ref());
        // They stand in the order in which they came.
        waits.find(|wait| wait.gauge.workers == gauge.workers).map(PoolWait::job_since)
    }

    /// The counts of it.
    #[must_use]
    pub fn counts(&self) -> PoolCounts {
        PoolCounts { keys: self.keys.len() as u64, ..self.counts.clone() }
    }
}
