//! The part of all clients that keeps to leases: the others let everything pass, which they are told with each grant. The grants
//! are the same for all.

use lessor_proto::message::HolderKind;

use super::Resource;
use super::slab::Slot;
use crate::repository::Template;

// === impl Resource ===

impl Resource {
    /// Whether the holder at `slot` is to let everything pass.
    pub(super) fn lets_pass(&self, slot: Slot) -> bool {
        let child = self.holders.at(slot);
        child.kind == HolderKind::Client && !self.terms.enforces(&child.name)
    }

    /// The template is another one than `before`: whoever listens is told whether it keeps to its lease.
    pub(super) fn change_enforcing(&mut self, before: &Template) {
        if before.enforce == self.terms.enforce {
            return;
        }
        let changes = |name: &str| before.enforces(name) != self.terms.enforces(name);
        let clients =
            self.holders.children().iter_slots().filter(|(_, child)| child.kind == HolderKind::Client);
        let slots: Vec<Slot> =
            clients.filter(|(_, child)| changes(&child.name)).map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.pusher.owe(slot));
    }
}
