//! Jobs that are done at other doors, for those who wait for anybody to do the work of a key.

use std::sync::Arc;

use lessor_client::internals::clock;

use super::{PoolDoor, PoolState};
use crate::pool::PoolGauge;

// === impl PoolDoor ===

impl PoolDoor {
    /// A job was done elsewhere.
    pub(super) fn hear_elsewhere(self: &Arc<PoolDoor>, gauge: &Arc<PoolGauge>) {
        let mut state = self.lock();
        state.take_job(gauge);
        self.attend(&mut state);
    }
}

// === impl PoolState ===

impl PoolState {
    /// Takes up that a job was done elsewhere, if one was.
    pub(super) fn take_job(&mut self, gauge: &Arc<PoolGauge>) {
        if let Some(at) = self.gauges.take_job(gauge) {
            self.table.finish_elsewhere(gauge, at, clock::now());
        }
    }

    /// Asks to hear of the next, where somebody waits for one.
    pub(super) fn await_job(&mut self, gauge: &PoolGauge) {
        if !self.gauges.is_job_awaited(gauge)
            && let Some(since) = self.table.awaits(gauge)
        {
            self.gauges.await_job(gauge, since);
        }
    }
}
