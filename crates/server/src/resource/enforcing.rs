//! The part of all clients that keeps to leases: the others let everything pass, which they are told with each grant. The grants
//! are the same for all.

use super::Resource;
use super::holders::Child;
use super::slab::Slot;
use crate::repository::Template;

// === impl Resource ===

impl Resource {
    /// Whether the holder at `slot` is to let everything pass.
    pub(super) fn lets_pass(&self, slot: Slot) -> bool {
        let child = self.holders.at(slot);
        self.terms.lets_pass(child.kind, &child.name)
    }

    /// The template is another one than `before`: whoever listens is told whether it keeps to its lease.
    pub(super) fn change_enforcing(&mut self, before: &Template) {
        if before.enforce == self.terms.enforce {
            return;
        }
        let told = |template: &Template, child: &Child| template.lets_pass(child.kind, &child.name);
        let others = self.holders.children().iter_slots();
        let others = others.filter(|(_, child)| told(before, child) != told(&self.terms, child));
        let slots: Vec<Slot> = others.map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.pusher.owe(slot));
    }
}
