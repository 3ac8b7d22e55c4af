//! The shortage: who is short of its share, by how much, and what was recalled for them and is on its way.
//!
//! Those who miss least come first, so that one who misses much does not hold up many who miss little. Of those who miss
//! about as much, which is up to twice as much, whoever came first comes first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::slab::Slot;
use crate::measured::{Measured, Measurements, WaitPath};

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
    /// When something was heard or looked at last.
    now: Time,
    /// The number of recalls so far, and of times that the node above gave more.
    recalled: u64,
    raised: u64,
    /// The waits that have ended, until somebody takes them.
    waited: Measurements,
}

/// The amount that a holder misses.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// In millionths.
    amount: u64,
    /// Its number among those who have come to be short.
    joined: u64,
    /// When it came.
    since: Time,
    /// The number of recalls by then, beside any that were on their way, and of raises.
    recalled: u64,
    raised: u64,
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

    /// It is `now`.
    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// The node above gave more.
    pub(super) fn note_raise(&mut self) {
        self.raised += 1;
    }

    /// The waits that have ended, and that nobody has taken yet.
    pub(super) fn waited(&mut self) -> &mut Measurements {
        &mut self.waited
    }

    /// Whether there are any of those.
    pub(super) fn has_waited(&self) -> bool {
        !self.waited.is_empty()
    }

    /// The holder at `slot` misses so much of its share from here on; nothing: it has its share.
    pub(super) fn set(&mut self, slot: Slot, missing: Amount) {
        if missing == Amount::ZERO
            && let Some(before) = self.missing.get(&slot)
        {
            let path = before.path(self.recalled, self.raised);
            self.waited.add(Measured::Wait(path, self.now.since(before.since)));
        }
        self.replace(slot, missing);
    }

    fn replace(&mut self, slot: Slot, missing: Amount) {
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
            let missing = match before {
                Some(before) => Missing { amount, ..before },
                None => self.newcomer(amount),
            };
            self.missing.insert(slot, missing);
            self.line.insert(missing.place(slot));
            self.by_amount.insert((amount, slot));
            self.sum += u128::from(amount);
        }
    }

    /// One who comes to miss so much, in millionths.
    fn newcomer(&self, amount: u64) -> Missing {
        // What is on its way is for it too.
        let recalled = self.recalled - u64::from(self.coming > 0);
        Missing { amount, joined: self.joined, since: self.now, recalled, raised: self.raised }
    }

    /// The holder at `slot` is forgotten, or not told anything any more: it has not got its share.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.replace(slot, Amount::ZERO);
        self.leave(slot, Amount::ZERO);
    }

    /// `amount` was recalled from the holder at `slot`.
    pub(super) fn recall(&mut self, now: Time, slot: Slot, amount: Amount) {
        self.leave(slot, Amount::ZERO);
        self.now = now;
        self.recalled += 1;
        self.recalls.insert(slot, (now, amount.as_micros()));
        self.coming += u128::from(amount.as_micros());
        self.order.push_back((now, slot));
    }

    /// The holder at `slot` is charged for so much more than it was granted last.
    pub(super) fn give_back(&mut self, slot: Slot, left: Amount) {
        if left == Amount::ZERO
            && let Some(&(at, _)) = self.recalls.get(&slot)
        {
            self.waited.add(Measured::Recall(self.now.since(at)));
        }
        self.leave(slot, left);
    }

    /// No more than `left` of what was recalled from the holder at `slot` is waited for.
    fn leave(&mut self, slot: Slot, left: Amount) {
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
                self.leave(slot, Amount::ZERO);
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

    /// The way by which it has come to its share, as `recalled` and `raised` are by then.
    fn path(&self, recalled: u64, raised: u64) -> WaitPath {
        match (raised > self.raised, recalled > self.recalled) {
            (true, _) => WaitPath::Above,
            (false, true) => WaitPath::Recall,
            (false, false) => WaitPath::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn short(shortage: &mut Shortage, now: u64, slot: Slot, units: u64) -> Vec<Measured> {
        shortage.set_now(at(now));
        shortage.set(slot, Amount::from_units(units));
        shortage.waited().take()
    }

    #[test]
    fn a_wait_lasts_from_the_first_shortage_to_the_whole_share() {
        let mut shortage = Shortage::default();
        assert_eq!(short(&mut shortage, 10, 1, 5), []);
        assert_eq!(short(&mut shortage, 20, 1, 3), []);
        let waited = Measured::Wait(WaitPath::Free, Duration::from_millis(40));
        assert_eq!(short(&mut shortage, 50, 1, 0), [waited]);
        assert_eq!(short(&mut shortage, 60, 1, 0), []);
    }

    #[test]
    fn a_wait_is_named_after_what_ended_it() {
        let mut shortage = Shortage::default();
        short(&mut shortage, 0, 1, 5);
        shortage.recall(at(10), 7, Amount::from_units(5));
        short(&mut shortage, 20, 2, 5);
        shortage.set_now(at(30));
        shortage.give_back(7, Amount::ZERO);
        let millis = Duration::from_millis;
        assert_eq!(shortage.waited().take(), [Measured::Recall(millis(20))]);
        assert_eq!(short(&mut shortage, 30, 1, 0), [Measured::Wait(WaitPath::Recall, millis(30))]);
        assert_eq!(short(&mut shortage, 30, 2, 0), [Measured::Wait(WaitPath::Recall, millis(10))]);
        short(&mut shortage, 40, 3, 5);
        shortage.note_raise();
        assert_eq!(short(&mut shortage, 45, 3, 0), [Measured::Wait(WaitPath::Above, millis(5))]);
    }

    #[test]
    fn who_goes_or_does_not_answer_has_not_been_served() {
        let mut shortage = Shortage::default();
        short(&mut shortage, 0, 1, 5);
        shortage.recall(at(10), 7, Amount::from_units(5));
        shortage.forget(1);
        shortage.lapse(at(10) + PATIENCE);
        assert_eq!(shortage.waited().take(), []);
    }
}
