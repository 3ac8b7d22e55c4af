//! The account of one holder: all that it may still believe it has of one resource.

use std::cmp::Reverse;

use lessor_proto::{Amount, Time};
use smallvec::SmallVec;

/// A grant that counts: sent, neither superseded nor ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The amount that the holder may use under it; lowered by what the holder promises, never raised.
    pub amount: Amount,
    /// When it is certainly over, on the grantor's clock.
    pub end: Time,
    /// The number of the grant; 0 for what was claimed from an earlier epoch.
    pub seq: u32,
    /// The number of debts there had been when it was granted, plus one; 0 if it is from before the start.
    pub cut: u32,
}

/// All grants that count for one holder, oldest first. Nearly always there is one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    entries: SmallVec<[Entry; 1]>,
}

/// A holder that is never heard to lower itself would collect one entry a grant. From here on the two oldest that were
/// granted between the same debts are counted as one that is as large and lasts as long as either.
const MOST_ENTRIES: usize = 16;

// === impl Account ===

impl Account {
    /// The most that the holder may still use: what is counted against the limit.
    #[must_use]
    #[inline]
    pub fn charge(&self) -> Amount {
        self.greatest(|entry| entry.amount).unwrap_or(Amount::ZERO)
    }

    /// The same when what has ended by `now` is left out.
    #[must_use]
    #[inline]
    pub fn charge_at(&self, now: Time) -> Amount {
        self.greatest(|entry| if entry.end > now { entry.amount } else { Amount::ZERO })
            .unwrap_or(Amount::ZERO)
    }

    /// The same after a promise to use no more than `held` under all grants up to `seq`.
    #[must_use]
    #[inline]
    pub fn charge_after(&self, seq: u64, held: Amount) -> Amount {
        let amount = |entry: &Entry| match u64::from(entry.seq) <= seq {
            true => entry.amount.min(held),
            false => entry.amount,
        };
        self.greatest(amount).unwrap_or(Amount::ZERO)
    }

    /// The same of the grants made since debt number `cut` began.
    #[must_use]
    #[inline]
    pub fn charge_since(&self, cut: u32) -> Amount {
        self.greatest(|entry| if entry.cut >= cut { entry.amount } else { Amount::ZERO })
            .unwrap_or(Amount::ZERO)
    }

    /// Whether nothing counts any more.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The grants that count, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The grant that was made last, if it has not ended. No later one can cover it, so it is there.
    #[must_use]
    pub fn last(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// When the next of them ends.
    #[must_use]
    #[inline]
    pub fn next_end(&self) -> Option<Time> {
        self.greatest(|entry| Reverse(entry.end)).map(|Reverse(end)| end)
    }

    /// When the last of them ends.
    #[must_use]
    #[inline]
    pub fn last_end(&self) -> Option<Time> {
        self.greatest(|entry| entry.end)
    }

    /// Until when at least `amount` is charged; absent if it is not.
    #[must_use]
    pub fn covers_until(&self, amount: Amount) -> Option<Time> {
        self.entries.iter().filter(|entry| entry.amount >= amount).map(|entry| entry.end).max()
    }

    /// The oldest grant of exactly `amount`: the one a holder means that shows its lease without the number of it.
    #[must_use]
    pub fn oldest_of(&self, amount: Amount) -> Option<u32> {
        self.entries.iter().find(|entry| entry.amount == amount).map(|entry| entry.seq)
    }

    /// The greatest that any of them has of something. It is asked for several times in each decision, and nearly always there
    /// is one.
    #[inline]
    fn greatest<T: Ord>(&self, of: impl Fn(&Entry) -> T) -> Option<T> {
        match self.entries.as_slice() {
            [only] => Some(of(only)),
            all => all.iter().map(of).max(),
        }
    }

    pub(super) fn expire(&mut self, now: Time) {
        self.entries.retain(|entry| entry.end > now);
    }

    /// Lowers instead of removing, so that it does not matter in which order entries end.
    pub(super) fn acknowledge(&mut self, seq: u64, held: Amount) {
        for entry in self.entries.iter_mut().filter(|entry| u64::from(entry.seq) <= seq) {
            entry.amount = entry.amount.min(held);
        }
        self.prune();
    }

    /// A grant that ends before an earlier one, because the lease of its grantor does or leases have become shorter, is
    /// counted until that one is over. A node may have handed out under it besides what it had handed out under the
    /// earlier one, and when the two had different ends nothing would be as large as both together for as long as the
    /// earlier one lasts.
    pub(super) fn add(&mut self, entry: Entry) {
        let end = self.last_end().map_or(entry.end, |last| last.max(entry.end));
        let entry = Entry { end, ..entry };
        // Before it is there itself: a renewal takes the place of the one before, and needs no room for two.
        self.entries.retain(|earlier| !entry.covers(earlier));
        self.entries.push(entry);
        self.prune();
        if self.entries.len() > MOST_ENTRIES {
            self.merge_oldest();
        }
    }

    /// Where no two were granted between the same debts, the two oldest are both of before the last one.
    fn merge_oldest(&mut self) {
        let alike = self.entries.windows(2).position(|pair| pair[0].cut == pair[1].cut);
        let oldest = self.entries.remove(alike.unwrap_or(0));
        let next = &mut self.entries[alike.unwrap_or(0)];
        next.amount = next.amount.max(oldest.amount);
        next.end = next.end.max(oldest.end);
    }

    /// The last grant lasts until `end`, if that is later.
    pub(super) fn extend(&mut self, end: Time) {
        if let Some(last) = self.entries.last_mut() {
            last.end = last.end.max(end);
        }
        self.prune();
    }

    /// All grants from `seq` on last until `end`, if that is later.
    pub(super) fn prolong_from(&mut self, seq: u64, end: Time) {
        for entry in self.entries.iter_mut().filter(|entry| u64::from(entry.seq) >= seq) {
            entry.end = entry.end.max(end);
        }
        self.prune();
    }

    /// All grants so far bear that number from here on: those to come have greater ones.
    pub(crate) fn renumber(&mut self, seq: u32) {
        self.entries.iter_mut().for_each(|entry| entry.seq = seq);
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Forgets entries that a later one covers: it is as large, lasts as long, and every promise about it is one about
    /// them.
    fn prune(&mut self) {
        if self.entries.len() < 2 {
            return;
        }
        let mut index = 0;
        while index < self.entries.len() {
            let entry = self.entries[index];
            if self.entries[index + 1..].iter().any(|later| later.covers(&entry)) {
                self.entries.remove(index);
            } else {
                index += 1;
            }
        }
    }
}

// === impl Entry ===

impl Entry {
    fn covers(&self, earlier: &Entry) -> bool {
        self.amount >= earlier.amount && self.end >= earlier.end && self.cut >= earlier.cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is smaller than the one before and lasts longer, so that none covers another.
    fn entry(number: u32, cut: u32) -> Entry {
        Entry {
            amount: Amount::from_units(u64::from(100 - number)),
            end: Time::from_nanos(u64::from(number) + 1),
            seq: number,
            cut,
        }
    }

    #[test]
    fn what_was_granted_since_a_cut_is_not_merged_with_what_was_before() {
        let mut account = Account::default();
        account.add(entry(0, 0));
        (1..=MOST_ENTRIES as u32).for_each(|number| account.add(entry(number, 1)));
        assert_eq!(account.entries().len(), MOST_ENTRIES);
        assert_eq!(account.charge(), Amount::from_units(100));
        assert_eq!(account.charge_since(1), Amount::from_units(99), "as much as before they were merged");
        assert_eq!(account.entries()[1].seq, 2, "what is promised of the first is not of both");
    }

    #[test]
    fn where_all_were_granted_between_different_debts_the_oldest_go_together() {
        let mut account = Account::default();
        (0..=MOST_ENTRIES as u32).for_each(|number| account.add(entry(number, number)));
        assert_eq!(account.entries().len(), MOST_ENTRIES);
        assert_eq!((account.charge(), account.entries()[0].cut), (Amount::from_units(100), 1));
        assert_eq!(account.charge_since(MOST_ENTRIES as u32), Amount::from_units(84));
    }

    #[test]
    fn a_renewal_takes_the_place_of_the_one_before() {
        let mut account = Account::default();
        for number in 1..=100 {
            account.add(Entry {
                amount: Amount::from_units(5),
                end: Time::from_nanos(number),
                seq: 1,
                cut: 1,
            });
        }
        assert_eq!((account.entries().len(), account.last_end()), (1, Some(Time::from_nanos(100))));
        assert!(!account.entries.spilled(), "it needs no memory of its own");
    }
}
