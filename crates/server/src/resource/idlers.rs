//! Idlers: holders that have nothing and want nothing, which make room where a limit is reached and somebody wants something.
//!
//! They lose nothing by it: whoever is forgotten and comes back is known again as a newcomer is, and one that listens opens its
//! stream anew. They are noted when they are heard of, and looked at again when room is wanted, so nobody is searched for.

use std::collections::BTreeSet;

use lessor_proto::Amount;

use super::holders::Demands;
use super::identity::Holder;
use super::slab::Slot;
use super::{CallContext, Resource};

/// Holders that were idle when they were last heard of.
#[derive(Clone, Debug, Default)]
pub(super) struct Idlers(BTreeSet<(bool, Slot)>);

/// Idlers that one request makes go for the sake of a priority.
const MOST_AT_ONCE: usize = 64;

// === impl Idlers ===

impl Idlers {
    /// The holder at `slot` is one, which listens if `listens`.
    fn insert(&mut self, slot: Slot, listens: bool) {
        self.0.insert((listens, slot));
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        self.0.remove(&(false, slot));
        self.0.remove(&(true, slot));
    }

    /// One of them: those that listen come last.
    fn pop(&mut self) -> Option<Slot> {
        self.0.pop_first().map(|(_, slot)| slot)
    }
}

// === impl Resource ===

impl Resource {
    /// The holder at `slot` has been heard of, or looked after.
    pub(super) fn note_idler(&mut self, slot: Slot) {
        if self.is_idler(slot) {
            self.idlers.insert(slot, self.pusher.peer(slot).is_some());
        }
    }

    /// Makes room for another holder by one that idles. Returns whether there was one.
    pub(crate) fn make_room(&mut self) -> bool {
        while let Some(slot) = self.idlers.pop() {
            if self.is_idler(slot) {
                self.forget(slot);
                return true;
            }
        }
        false
    }

    /// Makes room for another life of `holder` by one that idles. Returns whether there was one.
    pub(super) fn make_room_for_life(&mut self, holder: Holder<'_>) -> bool {
        let idler = self.holders.children().lives(holder).find(|&slot| self.is_idler(slot));
        idler.into_iter().for_each(|slot| self.forget(slot));
        idler.is_some()
    }

    /// Makes room for the priorities of `demands`, by those where nobody wants anything. Returns the number that there would be.
    pub(super) fn make_room_for_bands(&mut self, demands: &Demands, cx: CallContext<'_>) -> usize {
        let count = |resource: &Resource| {
            let shares = resource.holders.shares();
            let more = demands.iter().filter(|demand| !shares.has_band(demand.priority)).count();
            shares.bands() + more
        };
        let mut bands = count(self);
        for _ in 0..MOST_AT_ONCE {
            if bands <= cx.config.message.bands_per_resource || !self.make_room() {
                break;
            }
            bands = count(self);
        }
        bands
    }

    /// Whether nobody has or wants any of it, and nobody did before who may come back for it.
    pub(crate) fn is_vacant(&self) -> bool {
        self.ledger.total() == 0
            && self.ledger.ghost() == Amount::ZERO
            && self.holders.shares().wants() <= 0.0
            && !self.pusher.has_listeners()
    }

    fn is_idler(&self, slot: Slot) -> bool {
        let child = self.holders.children().get(slot);
        self.ledger.ghost() == Amount::ZERO
            && child.is_some_and(|child| {
                child.account().charge() == Amount::ZERO && child.demands().wants() <= 0.0
            })
    }
}
