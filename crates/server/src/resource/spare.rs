//! Capacity that nobody wants, kept near to those who may come to want it.
//!
//! What is left at the root when all wants are met would cost a round trip up the whole tree as soon as somebody wants it;
//! what lies at a leaf is there at once, and has to be recalled for those below other leaves. So a part of it, half
//! if nothing else is configured, is granted to the nodes below on top of their shares, by the number of clients below each;
//! and each of them does the same with what it has. Only to those that listen on a stream: from one that polls it could
//! not be recalled before that asks again.
//!
//! What is spare moves with every change of the wants, and nobody need hear of each: a node that has between half
//! and one and a half of its part keeps what it has. So at least a quarter of what this node means to keep stays here.

use lessor_proto::Amount;
use lessor_proto::message::HolderKind;

use super::Resource;
use super::slab::Slot;

// === impl Resource ===

impl Resource {
    /// What is due to the child at `slot` whose share is so much: that, and what it keeps of what nobody wants.
    pub(super) fn with_spare(&self, slot: Slot, share: Amount) -> Amount {
        let part = self.spare_part(slot);
        if part == Amount::ZERO {
            return share;
        }
        let (holds, half) = (self.holds(slot), Amount::from_micros(part.as_micros() / 2));
        let is_enough = holds >= share.saturating_add(half);
        let is_too_much = holds > share.saturating_add(part).saturating_add(half);
        if is_enough && !is_too_much { holds } else { share.saturating_add(part) }
    }

    /// What the child at `slot` is to keep of what nobody wants.
    fn spare_part(&self, slot: Slot) -> Amount {
        let child = self.children.at(slot);
        let listens = child.kind == HolderKind::Node && self.streaming.peer(slot).is_some();
        let spare = self.shares.capacity() - self.shares.wants();
        if !listens || spare <= 0.0 || self.ledger.in_debt() {
            return Amount::ZERO;
        }
        let part = child.demands.weight() as f64 / self.shares.weight().max(1) as f64;
        self.terms.spare().of(Amount::from_f64(spare * part))
    }
}
