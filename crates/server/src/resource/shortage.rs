//! The shortage: who is short of its share, by how much, and what was recalled for them and is on its way.
//!
//! Those who miss least come first, so that one who misses much does not hold up many who miss little. Of those who miss
//! about as much, which is up to twice as much, whoever came first comes first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::slab::Slot;

/// The longest wait for the yield of a recall; then others are asked.
const PATIENCE: Duration = Duration::from_millis(500);

/// Those who are short of their share, and what is on its way back.
#[derive(Clone, Default, Debug)]
pub(super) struct Shortage {
    missing: BTreeMap<Slot, Missing>,
    /// Those who miss least first, and of those who miss about as much the one who came first.
    line: BTreeSet<(u32, u64, Slot)>,
    /// By what they miss, in millionths.
    by_amount: BTreeSet<(u64, Slot)>,
    /// The number of those who have come so far.
    joined: u64,
    /// All of it.
    sum: u128,
    /// The time of each recall, and the amount, in millionths, that the holder is charged for beyond its last
    /// grant.
    recalls: BTreeMap<Slot, (Time, u64)>,
    /// All of it.
    coming: u128,
    /// The recalls in the order in which they were made.
    order: VecDeque<(Time, Slot)>,
}

/// The amount that a holder misses.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// In millionths.
    amount: u64,
    /// Its number among those who have come to be short.
    joined: u64,
}

// === impl Shortage ===

impl Shortage {
    pub(super) fn is_empty(&self) -> bool {
        self.missing.is_empty()
    }

    pub(super) fn has(&self, slot: Slot) -> bool {
        self.missing.contains_key(&slot)
    }

    /// The first `most` in line.
    pub(super) fn line(&self, most: usize) -> Vec<Slot> {
        self.line.iter().take(most).map(|&(_, _, slot)| slot).collect()
    }

    /// The one who misses most, in millionths.
    pub(super) fn greatest(&self) -> Option<(u64, Slot)> {
        self.by_amount.last().copied()
    }

    /// The amount that is missing in all, in millionths.
    pub(super) fn sum(&self) -> u128 {
        self.sum
    }

    /// The amount that others miss than the holder at `slot`.
    pub(super) fn of_others(&self, slot: Slot) -> Amount {
        let own = self.missing.get(&slot).map_or(0, |missing| missing.amount);
        Amount::from_micros(u64::try_from(self.sum - u128::from(own)).unwrap_or(u64::MAX))
    }

    /// The amount that was recalled and is on its way, in millionths.
    pub(super) fn coming(&self) -> u128 {
        self.coming
    }

    /// The holder at `slot` misses so much of its share from here on; nothing: it is not short.
    pub(super) fn set(&mut self, slot: Slot, missing: Amount) {
        let amount = missing.as_micros();
        let before = self.missing.get(&slot).copied();
        if before.map_or(0, |before| before.amount) == amount {
            return;
        }
        if let Some(before) = before {
            self.missing.remove(&slot);
            self.line.remove(&before.place(slot));
            self.by_amount.remove(&(before.amount, slot));
            self.sum -= u128::from(before.amount);
        }
        if amount > 0 {
            self.joined += u64::from(before.is_none());
            let missing = Missing { amount, joined: before.map_or(self.joined, |before| before.joined) };
            self.missing.insert(slot, missing);
            self.line.insert(missing.place(slot));
            self.by_amount.insert((amount, slot));
            self.sum += u128::from(amount);
        }
    }

    /// The holder at `slot` is forgotten, or not told anything any more.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.set(slot, Amount::ZERO);
        self.give_back(slot, Amount::ZERO);
    }

    /// `amount` was recalled from the holder at `slot`.
    pub(super) fn recall(&mut self, now: Time, slot: Slot, amount: Amount) {
        self.give_back(slot, Amount::ZERO);
        self.recalls.insert(slot, (now, amount.as_micros()));
        self.coming += u128::from(amount.as_micros());
        self.order.push_back((now, slot));
    }

    /// The holder at `slot` is charged for so much more than it was granted last.
    pub(super) fn give_back(&mut self, slot: Slot, left: Amount) {
        let Some(&(at, before)) = self.recalls.get(&slot) else { return };
        let left = left.as_micros().min(before);
        self.coming -= u128::from(before - left);
        match left {
            0 => _ = self.recalls.remove(&slot),
            _ => _ = self.recalls.insert(slot, (at, left)),
        }
    }

    /// Forgets recalls that have not brought anything for too long. Returns whether somebody waits for them.
    pub(super) fn lapse(&mut self, now: Time) -> bool {
        let mut lapsed = false;
        while let Some(&(at, slot)) = self.order.front().filter(|(at, _)| *at + PATIENCE <= now) {
            self.order.pop_front();
            if self.recalls.get(&slot).is_some_and(|recall| recall.0 == at) {
                self.give_back(slot, Amount::ZERO);
                lapsed = true;
            }
        }
        lapsed && !self.is_empty()
    }

    /// When the first recall is not waited for any more, if anybody waits.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.order.front().filter(|_| !self.is_empty()).map(|&(at, _)| at + PATIENCE)
    }
}

// === impl Missing ===

impl Missing {
    fn place(&self, slot: Slot) -> (u32, u64, Slot) {
        (self.amount.checked_ilog2().unwrap_or(0), self.joined, slot)
    }
}
