//! The reserve: units that are due to holders for good and were not free when these asked.
//!
//! A turn gives a unit to one holder before the one whose turn is over has given back. If the next unit that is free
//! went to whoever asks first, a holder of a higher priority which polls could find none for many turns. So those of a
//! lower priority leave free what it is short of, and nobody of its own takes it for a turn.
//!
//! A holder that does not come back in time has nothing kept free.

use std::collections::{BTreeMap, BTreeSet};

use lessor_proto::{Amount, Time};

use crate::resource::slab::Slot;

/// The units that are kept free for those who will ask again.
#[derive(Clone, Default, Debug)]
pub(super) struct UnitReserve {
    short: BTreeMap<Slot, Short>,
    /// All that is missing, in millionths, by priority.
    by_priority: BTreeMap<i64, u128>,
    /// When each of them is not waited for any more.
    ends: BTreeSet<(Time, Slot)>,
}

/// The shortage of one holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::resource) struct Short {
    pub(in crate::resource) priority: i64,
    pub(in crate::resource) missing: Amount,
    /// Nothing is kept free for it from then on.
    pub(in crate::resource) until: Time,
}

// === impl UnitReserve ===

impl UnitReserve {
    /// The holder at `slot` is short of that much from here on; absent: of nothing.
    pub(super) fn set(&mut self, slot: Slot, short: Option<Short>) {
        let short = short.filter(|short| short.missing > Amount::ZERO);
        if let Some(before) = self.short.remove(&slot) {
            self.ends.remove(&(before.until, slot));
            let sum = self.by_priority.get_mut(&before.priority).expect("each is in the sum of its priority");
            *sum -= u128::from(before.missing.as_micros());
            if *sum == 0 {
                self.by_priority.remove(&before.priority);
            }
        }
        if let Some(short) = short {
            self.short.insert(slot, short);
            self.ends.insert((short.until, slot));
            *self.by_priority.entry(short.priority).or_default() += u128::from(short.missing.as_micros());
        }
    }

    /// The amount that others are short of than the holder at `slot`: those of a higher priority than `priority`, or also
    /// those of the same.
    pub(super) fn of_others(&self, slot: Slot, priority: i64, or_same: bool) -> Amount {
        let counts = |&other: &i64| other > priority || or_same && other == priority;
        let own = self.short.get(&slot).filter(|own| counts(&own.priority));
        let own = own.map_or(0, |own| u128::from(own.missing.as_micros()));
        let sum: u128 =
            self.by_priority.range(priority..).filter(|(other, _)| counts(other)).map(|(_, sum)| sum).sum();
        Amount::from_micros(u64::try_from(sum - own).unwrap_or(u64::MAX))
    }

    /// Forgets those who have not come back by `now`. Returns whether there were any.
    pub(super) fn lapse(&mut self, now: Time) -> bool {
        let mut lapsed = false;
        while let Some(&(_, slot)) = self.ends.first().filter(|(end, _)| *end <= now) {
            self.set(slot, None);
            lapsed = true;
        }
        lapsed
    }

    /// When the first of them is not waited for any more.
    pub(super) fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|&(end, _)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(priority: i64, units: u64, until: u64) -> Option<Short> {
        let missing = Amount::from_micros(units * 1_000_000);
        Some(Short { priority, missing, until: Time::from_nanos(until) })
    }

    fn units(units: u64) -> Amount {
        Amount::from_micros(units * 1_000_000)
    }

    #[test]
    fn those_of_a_lower_priority_leave_what_others_are_short_of() {
        let [first, second, third]: [Slot; 3] = [0, 1, 2];
        let mut reserve = UnitReserve::default();
        reserve.set(first, short(2, 3, 10));
        reserve.set(second, short(1, 1, 20));
        assert_eq!(reserve.of_others(third, 0, false), units(4));
        assert_eq!(reserve.of_others(third, 1, false), units(3));
        assert_eq!(reserve.of_others(third, 1, true), units(4), "for a turn, of its own priority too");
        assert_eq!(reserve.of_others(second, 1, true), units(3), "nothing is kept from a holder for itself");
        assert_eq!(reserve.of_others(third, 2, false), Amount::ZERO);
    }

    #[test]
    fn who_is_not_short_any_more_or_does_not_come_back_has_nothing_kept_free() {
        let [first, second, third]: [Slot; 3] = [0, 1, 2];
        let mut reserve = UnitReserve::default();
        reserve.set(first, short(1, 3, 10));
        reserve.set(first, short(1, 2, 15));
        reserve.set(second, short(1, 5, 20));
        assert_eq!(reserve.of_others(third, 0, false), units(7));
        reserve.set(second, None);
        assert_eq!(reserve.of_others(third, 0, false), units(2));
        assert!(!reserve.lapse(Time::from_nanos(14)));
        assert_eq!(reserve.next_end(), Some(Time::from_nanos(15)));
        assert!(reserve.lapse(Time::from_nanos(15)));
        assert_eq!((reserve.of_others(third, 0, false), reserve.next_end()), (Amount::ZERO, None));
    }
}
