//! The subscribers of one resource's domains, and when each is told something.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Bound;

use lessor_proto::Time;

use super::origin::DeltaOrigin;
use super::subscriber::Subscriber;
use crate::streams::Peer;

/// All who tell and are told.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscribers {
    by_peer: BTreeMap<Peer, Subscriber>,
    by_origin: BTreeMap<DeltaOrigin, Peer>,
    /// The peers that are to be told something, by the time for it.
    due: BTreeSet<(Time, Peer)>,
}

// === impl Subscribers ===

impl Subscribers {
    pub(super) fn len(&self) -> usize {
        self.by_peer.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_peer.is_empty()
    }

    pub(super) fn get(&self, peer: Peer) -> Option<&Subscriber> {
        self.by_peer.get(&peer)
    }

    pub(super) fn get_mut(&mut self, peer: Peer) -> Option<&mut Subscriber> {
        self.by_peer.get_mut(&peer)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Peer, &mut Subscriber)> {
        self.by_peer.iter_mut().map(|(&peer, member)| (peer, member))
    }

    /// Those behind a peer, in order; all of them without one.
    pub(super) fn after(&self, peer: Option<Peer>) -> impl Iterator<Item = (Peer, &Subscriber)> {
        let from = peer.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_peer.range((from, Bound::Unbounded)).map(|(&peer, member)| (peer, member))
    }

    /// The stream on which `origin` tells and is told.
    pub(super) fn of(&self, origin: &DeltaOrigin) -> Option<Peer> {
        self.by_origin.get(origin).copied()
    }

    /// Lets `origin` tell and be told on `peer` from here on, unless somebody does already.
    pub(super) fn join(&mut self, now: Time, peer: Peer, origin: &DeltaOrigin) {
        if let Entry::Vacant(place) = self.by_peer.entry(peer) {
            place.insert(Subscriber::new(now, origin.clone()));
            self.by_origin.insert(origin.clone(), peer);
        }
    }

    /// Nobody does on `peer` any more.
    pub(super) fn leave(&mut self, peer: Peer) -> Option<Subscriber> {
        let member = self.by_peer.remove(&peer)?;
        if let Some(at) = member.due {
            self.due.remove(&(at, peer));
        }
        if self.by_origin.get(&member.origin) == Some(&peer) {
            self.by_origin.remove(&member.origin);
        }
        Some(member)
    }

    /// `peer` is told something at that time, if not before.
    pub(super) fn schedule(&mut self, peer: Peer, at: Time) {
        let Some(member) = self.by_peer.get_mut(&peer) else { return };
        if member.due.is_some_and(|due| due <= at) {
            return;
        }
        if let Some(due) = member.due.replace(at) {
            self.due.remove(&(due, peer));
        }
        self.due.insert((at, peer));
    }

    /// The next one who is to be told something, and is not any more then.
    pub(super) fn next_due(&mut self, now: Time) -> Option<Peer> {
        let &(at, peer) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, peer));
        self.by_peer.get_mut(&peer)?.due = None;
        Some(peer)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.due.first().map(|&(at, _)| at)
    }
}
