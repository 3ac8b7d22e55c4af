//! Idlers: holders that have nothing and want nothing, which make room where a limit is reached and somebody wants something.
//!
//! They lose nothing by it: whoever is forgotten and comes back is known again as a newcomer is, and one that listens opens its
//! stream anew. They are noted when they are heard of, and looked at again when room is wanted, so nobody is searched for.

use std::collections::BTreeSet;

use lessor_proto::{Amount, Time};

use super::holders::Demands;
use super::identity::Holder;
use super::slab::Slot;
use super::{CallContext, Resource};
use crate::mutation::Rule;
use crate::streams::Peers;

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

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
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
            let listens = self.pusher.peer(slot).is_some();
            self.holders.idlers_mut().insert(slot, listens);
        }
    }

    /// Makes room for another holder by one that idles, and is not called `beside`. Returns whether there was one.
    pub(crate) fn make_room(&mut self, beside: Option<&str>, peers: &mut Peers) -> bool {
        let mut spared = Vec::new();
        let found = loop {
            match self.holders.idlers_mut().pop() {
                Some(slot) if !self.is_idler(slot) => {}
                Some(slot) if beside.is_some_and(|name| self.holders.at(slot).name == name) => {
                    spared.push(slot);
                }
                found => break found,
            }
        };
        spared.into_iter().for_each(|slot| self.note_idler(slot));
        found.into_iter().for_each(|slot| self.evict(slot, peers));
        found.is_some()
    }

    /// Whether some of those that were idle when they were last heard of may be still.
    pub(crate) fn has_idlers(&self) -> bool {
        !self.holders.idlers().is_empty()
    }

    /// Makes room for another life of `holder` by one that idles. Returns whether there was one.
    pub(super) fn make_room_for_life(&mut self, holder: Holder<'_>, peers: &mut Peers) -> bool {
        let idler = self.holders.children().lives(holder).find(|&slot| self.is_idler(slot));
        idler.into_iter().for_each(|slot| self.evict(slot, peers));
        idler.is_some()
    }

    /// The holder at `slot` is forgotten. If it listens, it hears of that with its next heartbeat.
    pub(super) fn evict(&mut self, slot: Slot, peers: &mut Peers) {
        if let Some(peer) = self.pusher.peer(slot) {
            peers.renew_no_later(peer, Time::ZERO);
        }
        self.forget(slot);
    }

    /// Makes room for the priorities of `demands`, by those where nobody wants anything. Returns the number that there would be.
    pub(super) fn make_room_for_bands(
        &mut self,
        demands: &Demands,
        cx: CallContext<'_>,
        peers: &mut Peers,
    ) -> usize {
        let mut bands = self.bands_with(demands);
        for _ in 0..MOST_AT_ONCE {
            if bands <= cx.config.message.bands_per_resource || !self.make_room(None, peers) {
                break;
            }
            bands = self.bands_with(demands);
        }
        bands
    }

    /// The number of priorities that there would be with those of `demands`.
    pub(super) fn bands_with(&self, demands: &Demands) -> usize {
        let shares = self.holders.shares();
        let more = demands.iter().filter(|demand| !shares.has_band(demand.priority)).count();
        shares.bands() + more
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
                let has_nothing = child.account().charge() == Amount::ZERO;
                (has_nothing || !self.ledger.rules().keep(Rule::RoomFromIdle))
                    && child.demands().wants() <= 0.0
            })
    }
}
