//! Refusals, as the driver hears of them.

use lessor_proto::{Amount, ResourceId, Time};
use tracing::debug;

use super::Driver;
use crate::demand::haste::SOON;

// === impl Driver ===

impl Driver {
    /// A limiter has refused something: what it could have used is said at once.
    pub(super) fn knock(&mut self, now: Time, resource: &ResourceId, generation: u64) {
        let capacity = self.session.allowance(now, resource).capacity.unwrap_or(Amount::ZERO);
        let Some(held) = self.held(resource, generation).filter(|held| !held.leaving) else { return };
        let demand = &mut held.opening.demand;
        if demand.peak().is_none() {
            return;
        }
        let wants = held.opening.enforcer.knock(now, demand, capacity).as_f64();
        let peak = demand.peak().map(Amount::as_f64);
        held.opening.enforcer.set_gate(demand.gate(now));
        debug!(%resource, held = capacity.as_f64(), wants, peak, "refused: asking for more");
        self.looks.tick_by(now + SOON);
        self.session.set_peak(now, resource, peak);
        self.session.set_wants(now, resource, wants);
    }
}
