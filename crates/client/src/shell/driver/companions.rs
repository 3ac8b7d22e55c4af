//! Second limits, as the driver hears of them.

use lessor_proto::{ResourceId, Time};
use tracing::{debug, warn};

use super::{Driver, RATE_TICK};
use crate::holding::HoldingConfig;
use crate::session::Change;

// === impl Driver ===

impl Driver {
    /// Asks for the companion of `resource`, or gives it back, as its grantor says.
    pub(super) fn hear_of_second(&mut self, now: Time, resource: &ResourceId, is_tried: bool) {
        let Some(held) = self.open.get(resource) else { return };
        let (opening, companions) = (&held.opening, &mut self.derived.companions);
        let counted = opening.enforcer.counted_beside();
        if is_tried && !held.leaving {
            let priority = opening.config.bands.first().map_or(0, |band| band.priority);
            let wants = opening.demand.wants().as_f64();
            let config = HoldingConfig::new(opening.config.kind, wants, priority);
            let is_own = |id: &ResourceId| self.open.contains_key(id);
            companions.ask(now, (resource, counted), config, is_own, &mut self.session);
            self.looks.tick_by(now + RATE_TICK);
        } else if companions.give_back(now, (resource, counted), &mut self.session) {
            opening.enforcer.try_beside(now, None);
        }
    }

    /// Lets a second limit decide by what a server allows. Returns whether the change is about one.
    pub(super) fn try_second(&mut self, now: Time, change: &Change) -> bool {
        let Some((of, allowance)) = self.derived.companions.changed(change) else { return false };
        if let Some(held) = self.open.get(&of) {
            held.opening.enforcer.try_beside(now, allowance);
            let in_use = held.opening.enforcer.in_use_beside();
            self.session.set_in_use(now, &change.resource, in_use);
        }
        let (resource, rung) = (&change.resource, change.rung.name());
        match &change.fault {
            Some(fault) => warn!(%resource, rung, %fault, "lease of a second limit not renewed"),
            None => debug!(%resource, rung, "allowance of a second limit changed"),
        }
        true
    }

    /// The program has opened the companion of another resource itself: no second limit is tried beside that.
    pub(super) fn yield_companion(&mut self, now: Time, resource: &ResourceId) {
        let of = self.derived.companions.yield_to_program(resource);
        if let Some(held) = of.and_then(|of| self.open.get(&of)) {
            held.opening.enforcer.try_beside(now, None);
        }
    }
}
