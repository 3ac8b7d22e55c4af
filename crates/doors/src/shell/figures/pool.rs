//! Figures of the door for PoolCounter, beside those of all doors.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::pool::PoolCounts;

/// The figures of keys and of those who work and wait for them.
#[derive(Clone, Default, Debug)]
pub(in crate::shell) struct PoolFigures {
    working: Gauge,
    waiting: Gauge,
    keys: Gauge,
    /// Keys of which a gauge is open, which is so for a while after the last lock.
    pub(in crate::shell) leased: Gauge,
    opened: Counter,
    done_elsewhere: Counter,
    /// Locks that were held for longer than their lease.
    pub(in crate::shell) outlived: Counter,
}

// === impl PoolFigures ===

impl PoolFigures {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("lessor_pool_working", "Locks that are held", self.working.clone());
        registry.register("lessor_pool_waiting", "Callers that wait for a lock", self.waiting.clone());
        registry.register("lessor_pool_keys", "Keys for which somebody works or waits", self.keys.clone());
        registry.register(
            "lessor_pool_leased_keys",
            "Keys that are leased, also idle ones",
            self.leased.clone(),
        );
        registry.register(
            "lessor_pool_opened",
            "Locks given although nothing was leased",
            self.opened.clone(),
        );
        registry.register(
            "lessor_pool_done_elsewhere",
            "Waits that ended as a job was done at another door",
            self.done_elsewhere.clone(),
        );
        registry.register(
            "lessor_pool_outlived",
            "Locks that were held for longer than their lease",
            self.outlived.clone(),
        );
    }

    /// Shows what a table counts.
    pub(in crate::shell) fn show(&self, counts: &PoolCounts) {
        self.working.set(counts.working.cast_signed());
        self.waiting.set(counts.waiters.cast_signed());
        self.keys.set(counts.keys.cast_signed());
        self.opened.inc_by(counts.opened.saturating_sub(self.opened.get()));
        self.done_elsewhere.inc_by(counts.done_elsewhere.saturating_sub(self.done_elsewhere.get()));
    }
}
