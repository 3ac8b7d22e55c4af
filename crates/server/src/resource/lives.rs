//! The lives of one id at a resource, for whoever calls it by its name.

use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, Time};

use super::Resource;
use super::identity::{Holder, Life};
use super::slab::Slot;
use crate::streams::Peer;

/// A life of a holder that is called by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecalledLife {
    pub(crate) slot: Slot,
    pub(crate) kind: HolderKind,
    /// The stream on which it listens.
    pub(crate) peer: Option<Peer>,
    /// The amount that it is charged for, and when the last of that ends.
    pub(crate) charged: Amount,
    pub(crate) ends: Time,
}

// === impl Resource ===

impl Resource {
    /// All lives of the clients and nodes of that name.
    pub(crate) fn lives_of(&self, name: &str) -> Vec<RecalledLife> {
        let kinds = [HolderKind::Client, HolderKind::Node].into_iter();
        let slots = kinds.flat_map(|kind| {
            self.holders.children().lives(Holder { kind, name, life: Life::New }).collect::<Vec<_>>()
        });
        let life = |slot: Slot| {
            let child = self.holders.at(slot);
            let (charged, ends) = (child.account().charge(), child.account().last_end());
            let ends = ends.unwrap_or(Time::ZERO);
            RecalledLife { slot, kind: child.kind, peer: self.pusher.peer(slot), charged, ends }
        };
        slots.map(life).collect()
    }
}
