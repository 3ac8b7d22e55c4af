//! The holders of a resource that listen on a stream, in the order in which they are to be told something.
//!
//! When one demand changes the share of everybody moves, but only those need to hear of it who hold more than their share
//! or could hold more. Under FairShare the share of a client is a level times its weight, or its wants; so ordered by
//! what each holds per weight those above the level are at one end, and of those who want more the ones below it are at
//! the other. Telling m of n costs O(m log n). Others, whose share is no such product, are looked at one by one: nodes,
//! which stand for many demands at once, and everybody under other policies.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::slab::Slot;
use crate::streams::Peer;
use crate::table::Table;

/// All that listen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streaming {
    listeners: Table<Listener>,
    /// By the places of their streams: an entry counts as long as the listener goes by that stream.
    by_place: Table<Slot>,
    /// Those who have not been told anything on their stream, and can be.
    owed: BTreeSet<Slot>,
    /// Those who are owed a grant that could not be made when it was tried last.
    stalled: BTreeSet<Slot>,
    /// The greatest priority first.
    ranks: BTreeMap<Reverse<i64>, Ranks>,
    /// Those without a rank.
    others: BTreeSet<Slot>,
    /// Where the next look at those without a rank begins, and the number of them that are to be looked at since something
    /// changed for all.
    next_other: Slot,
    others_left: usize,
}

#[derive(Clone, Debug)]
struct Listener {
    peer: Peer,
    told: Option<Told>,
    rank: Option<Rank>,
    /// It is owed a grant.
    is_owed: bool,
    /// Its stream takes nothing: it stands in no order until that has changed.
    is_parked: bool,
}

/// The last grant sent on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) seq: u32,
    pub(crate) length: Duration,
    pub(crate) at: Time,
    /// Whether it has all that it wanted then.
    pub(super) is_all: bool,
}

/// The clients of one priority.
#[derive(Clone, Debug, Default)]
struct Ranks {
    /// Those who want more than they hold, by what they hold per weight.
    hungry: BTreeSet<(Level, Slot)>,
    /// The same, of those who want no more.
    sated: BTreeSet<(Level, Slot)>,
    /// Those who hold more than they want, by how much more.
    full: BTreeSet<(u64, Slot)>,
}

/// The criteria that decide where a client stands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rank {
    pub(crate) priority: i64,
    pub(crate) weight: u32,
    pub(crate) wants: Amount,
    /// The amount that it was granted last, or less if it has promised less since.
    pub(crate) holds: Amount,
}

/// Units per weight, ordered: the bits of a double that is not negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Level(u64);

// === impl Streaming ===

impl Streaming {
    pub(crate) fn len(&self) -> usize {
        self.listeners.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    pub(crate) fn slot(&self, peer: Peer) -> Option<Slot> {
        self.by_place.get(peer.place()).copied().filter(|&slot| self.peer(slot) == Some(peer))
    }

    pub(crate) fn peer(&self, slot: Slot) -> Option<Peer> {
        self.listeners.get(slot).map(|listener| listener.peer)
    }

    pub(crate) fn told(&self, slot: Slot) -> Option<Told> {
        self.listeners.get(slot)?.told
    }

    /// The holder at `slot` listens on `peer` from here on, and on nothing else.
    pub(crate) fn attach(&mut self, slot: Slot, peer: Peer) {
        if self.peer(slot) == Some(peer) {
            return;
        }
        self.remove(slot);
        let listener = Listener { peer, told: None, rank: None, is_owed: true, is_parked: false };
        self.listeners.insert(slot, listener);
        self.by_place.insert(peer.place(), slot);
        self.owed.insert(slot);
        self.others.insert(slot);
    }

    /// The holder at `slot` listens no more.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let Some(listener) = self.listeners.remove(slot) else { return };
        if self.by_place.get(listener.peer.place()) == Some(&slot) {
            self.by_place.remove(listener.peer.place());
        }
        self.disown(slot);
        self.others.remove(&slot);
        if let Some(rank) = listener.rank.filter(|_| !listener.is_parked) {
            self.leave(slot, rank);
        }
    }

    /// The stream of the holder at `slot` takes nothing.
    pub(crate) fn park(&mut self, slot: Slot) {
        let Some(listener) = self.listeners.get_mut(slot).filter(|listener| !listener.is_parked) else {
            return;
        };
        listener.is_parked = true;
        let rank = listener.rank;
        self.disown(slot);
        match rank {
            Some(rank) => self.leave(slot, rank),
            None => _ = self.others.remove(&slot),
        }
    }

    /// The stream of the holder at `slot` may take something again. Returns whether it took nothing before.
    pub(crate) fn unpark(&mut self, slot: Slot) -> bool {
        let Some(listener) = self.listeners.get_mut(slot).filter(|listener| listener.is_parked) else {
            return false;
        };
        listener.is_parked = false;
        let (rank, is_owed) = (listener.rank, listener.is_owed);
        if is_owed {
            self.owed.insert(slot);
        }
        match rank {
            Some(rank) => self.enter(slot, rank),
            None => _ = self.others.insert(slot),
        }
        true
    }

    pub(crate) fn is_parked(&self, slot: Slot) -> bool {
        self.listeners.get(slot).is_some_and(|listener| listener.is_parked)
    }

    /// The holder at `slot` cannot be told anything now, whatever its stream takes.
    pub(crate) fn stall(&mut self, slot: Slot) {
        if self.owed.remove(&slot) {
            self.stalled.insert(slot);
        }
    }

    /// Those who could not be told anything may be told something now.
    pub(crate) fn resume(&mut self) {
        self.owed.append(&mut self.stalled);
    }

    /// The holder at `slot` stands among those who are owed a grant no more.
    fn disown(&mut self, slot: Slot) {
        self.owed.remove(&slot);
        self.stalled.remove(&slot);
    }

    pub(crate) fn tell(&mut self, slot: Slot, told: Told) {
        self.disown(slot);
        if let Some(listener) = self.listeners.get_mut(slot) {
            (listener.told, listener.is_owed) = (Some(told), false);
        }
    }

    /// The holder at `slot` shows that it did not adopt what it was told last: it has to be told again.
    pub(crate) fn owe(&mut self, slot: Slot) {
        if let Some(listener) = self.listeners.get_mut(slot) {
            listener.is_owed = true;
            if !listener.is_parked {
                self.stalled.remove(&slot);
                self.owed.insert(slot);
            }
        }
    }

    pub(crate) fn is_owed(&self, slot: Slot) -> bool {
        self.listeners.get(slot).is_some_and(|listener| listener.is_owed)
    }

    pub(crate) fn is_anybody_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    /// No more than `most` of those who are owed a grant, and can be told.
    pub(crate) fn owed(&self, most: usize) -> Vec<Slot> {
        self.owed.iter().copied().take(most).collect()
    }

    /// Something has changed for all of those without a rank.
    pub(crate) fn begin_round(&mut self) {
        self.others_left = self.others.len();
    }

    /// Whether some of those without a rank have not been looked at since then.
    pub(crate) fn is_in_round(&self) -> bool {
        self.others_left > 0
    }

    /// No more than `most` of those without a rank, beginning behind those who were looked at before.
    pub(crate) fn others(&self, most: usize) -> Vec<Slot> {
        if self.others.len() <= most {
            return self.others.iter().copied().collect();
        }
        let behind = self.others.range(self.next_other..);
        behind.chain(self.others.range(..self.next_other)).copied().take(most).collect()
    }

    /// `looked_at` have been looked at, and have been told what they are due.
    pub(crate) fn pass_others(&mut self, looked_at: &[Slot]) {
        self.others_left = self.others_left.min(self.others.len()).saturating_sub(looked_at.len());
        self.next_other = looked_at.last().map_or(0, |&last| last.saturating_add(1));
    }

    /// All that listen.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.listeners.iter().map(|(slot, _)| slot).collect()
    }

    /// Where the holder at `slot` stands from here on; nowhere: it is looked at one by one.
    pub(crate) fn rank(&mut self, slot: Slot, rank: Option<Rank>) {
        let Some(listener) = self.listeners.get_mut(slot) else { return };
        let before = std::mem::replace(&mut listener.rank, rank);
        if before == rank {
            return;
        }
        if listener.is_parked {
            return;
        }
        match before {
            Some(before) => self.leave(slot, before),
            None => _ = self.others.remove(&slot),
        }
        match rank {
            Some(rank) => self.enter(slot, rank),
            None => _ = self.others.insert(slot),
        }
    }

    /// The priorities of those who have a rank, the greatest first.
    pub(crate) fn priorities(&self) -> Vec<i64> {
        self.ranks.keys().map(|&Reverse(priority)| priority).collect()
    }

    /// The rank of the holder at `slot`, if it has one.
    pub(crate) fn rank_of(&self, slot: Slot) -> Option<Rank> {
        self.listeners.get(slot)?.rank
    }

    /// The one that holds the most per weight, and the one that holds the most beyond what it wants.
    pub(crate) fn fullest(&self, priority: i64) -> impl Iterator<Item = Slot> {
        let ranks = self.ranks.get(&Reverse(priority));
        let holding = ranks.and_then(|ranks| ranks.hungry.last().max(ranks.sated.last()));
        let full = ranks.and_then(|ranks| ranks.full.last()).map(|&(_, slot)| slot);
        holding.map(|&(_, slot)| slot).into_iter().chain(full)
    }

    /// Those who want more and hold less than `level` per weight, who hold the least first.
    pub(crate) fn below(&self, priority: i64, level: f64) -> impl Iterator<Item = Slot> {
        let hungry =
            self.ranks.get(&Reverse(priority)).map(|ranks| ranks.hungry.range(..(Level::new(level), 0)));
        hungry.into_iter().flatten().map(|&(_, slot)| slot)
    }

    /// Of those who want more, the one who holds the least per weight, below `level`; after `last`, if that is given.
    pub(crate) fn next_below(&self, priority: i64, level: f64, last: Option<Hungry>) -> Option<Hungry> {
        let hungry = &self.ranks.get(&Reverse(priority))?.hungry;
        let next = match last {
            Some(Hungry(level, slot)) => {
                hungry.range((std::ops::Bound::Excluded((level, slot)), std::ops::Bound::Unbounded)).next()
            }
            None => hungry.first(),
        };
        next.filter(|(holds, _)| *holds < Level::new(level)).map(|&(level, slot)| Hungry(level, slot))
    }

    fn enter(&mut self, slot: Slot, rank: Rank) {
        let ranks = self.ranks.entry(Reverse(rank.priority)).or_default();
        ranks.of(rank).insert((rank.level(), slot));
        if rank.excess() > 0 {
            ranks.full.insert((rank.excess(), slot));
        }
    }

    fn leave(&mut self, slot: Slot, rank: Rank) {
        let Some(ranks) = self.ranks.get_mut(&Reverse(rank.priority)) else { return };
        ranks.of(rank).remove(&(rank.level(), slot));
        if rank.excess() > 0 {
            ranks.full.remove(&(rank.excess(), slot));
        }
        if ranks.hungry.is_empty() && ranks.sated.is_empty() {
            self.ranks.remove(&Reverse(rank.priority));
        }
    }
}

/// A place among those who want more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hungry(Level, Slot);

// === impl Ranks ===

impl Ranks {
    /// Those among whom one of that rank stands.
    fn of(&mut self, rank: Rank) -> &mut BTreeSet<(Level, Slot)> {
        if rank.wants > rank.holds { &mut self.hungry } else { &mut self.sated }
    }
}

// === impl Hungry ===

impl Hungry {
    pub(crate) fn slot(self) -> Slot {
        self.1
    }
}

// === impl Rank ===

impl Rank {
    fn level(&self) -> Level {
        Level::new(self.holds.as_f64() / f64::from(self.weight))
    }

    fn excess(&self) -> u64 {
        self.holds.saturating_sub(self.wants).as_micros()
    }
}

// === impl Level ===

impl Level {
    fn new(level: f64) -> Level {
        Level(level.max(0.0).to_bits())
    }
}

#[cfg(test)]
mod tests;
