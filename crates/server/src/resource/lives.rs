//! The lives of one id at a resource, for whoever calls it by its name.

use lessor_proto::message::{Ask, HolderKind, Report};
use lessor_proto::{Amount, Incarnation, Time};

use super::Resource;
use super::identity::{Holder, Life, holder};
use super::slab::Slot;
use crate::config::NodeConfig;
use crate::streams::{Peer, Peers};

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
    /// Whether the holder that sends `report` is charged for anything.
    pub(crate) fn is_charged(&self, ask: &Ask, report: &Report, config: &NodeConfig) -> bool {
        let slot = self.holders.children().locate(holder(ask, report, config));
        slot.is_some_and(|slot| self.holders.at(slot).account().charge() > Amount::ZERO)
    }

    /// Whether the holder at `slot` counts as one that wants some.
    pub(crate) fn wants_some(&self, slot: Slot) -> bool {
        self.holders.at(slot).demands().wants() > 0.0
    }

    /// Nothing is charged to the holder at `slot` any more, whatever it may use, and it is forgotten. Returns which life it was.
    pub(crate) fn seize(&mut self, slot: Slot, peers: &mut Peers) -> Incarnation {
        let session = self.holders.at(slot).life.session;
        self.evict(slot, peers);
        self.reshare();
        session
    }

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
