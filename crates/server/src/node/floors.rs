//! A resource and its floor: two pools with books of their own, which come out of one capacity.
//!
//! As long as each keeps to its own pool, neither has to know of the other. But when the capacity or the part of it that is
//! reserved is changed, or a leader finds that its predecessors had shared it otherwise, one of them has more out than is
//! its own; until that has come back, the other gets only what is left of the capacity. So the sum of both never passes it,
//! and a cut is over when the short leases have ended, however long floors last.
//!
//! That is for the root to see to. What nodes below have they hold from there.

use lessor_proto::{Amount, ResourceId, Time};

use super::Node;

// === impl Node ===

impl Node {
    /// With which other resource one shares its capacity: its floor, or whose floor it is. A floor with a template of its own
    /// is a resource like others.
    pub(super) fn floor_pair(&self, id: &ResourceId) -> Option<ResourceId> {
        if self.parent.is_some() {
            return None;
        }
        if let Some(floored) = id.floored() {
            return (!self.repository.has_template(id)).then_some(floored);
        }
        let floor = id.floor();
        let has_floor = self.template(id).is_some_and(|template| template.reserves())
            || self.resources.contains(&floor)
            || self.config.record.as_ref().is_some_and(|record| record.marks.contains_key(&floor));
        (has_floor && !self.repository.has_template(&floor)).then_some(floor)
    }

    /// Lets a resource and its kin have no more than the capacity together.
    pub(super) fn couple(&mut self, now: Time, id: &ResourceId) {
        let Some(floor_pair) = self.resources.floor_pair(id).cloned() else { return };
        let (base, floor) = if id.is_floor() { (&floor_pair, id) } else { (id, &floor_pair) };
        let Some(template) = self.template(base) else { return };
        let [lent, reserved] = [base, floor].map(|id| self.out(now, id));
        let limits = [
            (base, template.shared().min(template.capacity.saturating_sub(reserved))),
            (floor, template.reserved().min(template.capacity.saturating_sub(lent))),
        ];
        for (id, limit) in limits {
            if self.resources.get_mut(id).is_some_and(|resource| resource.limit_to(limit)) {
                self.note_mark(now, id);
                self.resources.reschedule(id);
            }
        }
    }

    /// The amount that may be out of a resource, whether somebody has asked this leader for it or not.
    fn out(&self, now: Time, id: &ResourceId) -> Amount {
        match self.resources.get(id) {
            Some(resource) => resource.outstanding(),
            None => self.need(now, id).out,
        }
    }
}
