//! Uses that are kept: how many units are in use until when.
//!
//! A use is kept for the window that it was made in. Those that end within the same 4,096th of a window are one entry, so that
//! a window of any limit takes no more than about as many entries; ends are rounded up for that, never down.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::Time;

/// The parts of a window: a use is kept for one of them longer at the most.
const PARTS: u64 = 4_096;

/// The units in use, those that end first in front.
#[derive(Clone, Default, Debug)]
pub(super) struct KeptUses {
    entries: VecDeque<KeptUse>,
    units: u32,
}

/// Units that are in use until the same time.
#[derive(Clone, Copy, Debug)]
struct KeptUse {
    until: Time,
    units: u32,
}

// === impl KeptUses ===

impl KeptUses {
    /// Until when a use of `now` is kept for `hold`.
    #[inline]
    pub(super) fn end_of(now: Time, hold: Duration) -> Time {
        let end = (now + hold).as_nanos();
        let part = (u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX) / PARTS).max(1);
        Time::from_nanos(end.div_ceil(part).saturating_mul(part))
    }

    /// The units in use.
    #[inline]
    pub(super) fn units(&self) -> u32 {
        self.units
    }

    /// Keeps `units` until `until`. What was made in a longer window before may end after that.
    pub(super) fn keep(&mut self, units: u32, until: Time) {
        self.units += units;
        let place = match self.entries.back() {
            Some(last) if last.until > until => self.entries.partition_point(|kept| kept.until < until),
            Some(last) if last.until == until => self.entries.len() - 1,
            _ => self.entries.len(),
        };
        match self.entries.get_mut(place) {
            Some(kept) if kept.until == until => kept.units += units,
            _ => self.entries.insert(place, KeptUse { until, units }),
        }
    }

    /// Frees what has ended by `now`.
    #[inline]
    pub(super) fn end_until(&mut self, now: Time) {
        while let Some(first) = self.entries.front()
            && first.until <= now
        {
            self.units -= first.units;
            self.entries.pop_front();
        }
    }

    /// Frees up to `units` of those that would be free first, and returns how many. Which use is undone is not known, and each
    /// other one is left a unit that is kept for as long.
    pub(super) fn refund(&mut self, units: u32) -> u32 {
        let mut left = units;
        while left > 0
            && let Some(first) = self.entries.front_mut()
        {
            let freed = first.units.min(left);
            first.units -= freed;
            self.units -= freed;
            left -= freed;
            if first.units == 0 {
                self.entries.pop_front();
            }
        }
        units - left
    }

    /// When the first is free.
    pub(super) fn first_end(&self) -> Option<Time> {
        self.entries.front().map(|first| first.until)
    }

    /// When so many are free; absent if there are not so many.
    pub(super) fn end_of_first(&self, units: u32) -> Option<Time> {
        let mut left = units;
        self.entries.iter().find_map(|kept| {
            left = left.saturating_sub(kept.units);
            (left == 0).then_some(kept.until)
        })
    }

    /// The units that are kept for longer than until `until`.
    pub(super) fn kept_past(&self, until: Time) -> u32 {
        self.entries.iter().rev().take_while(|kept| kept.until > until).map(|kept| kept.units).sum()
    }

    /// Gives back the memory for entries that are not there.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Frees those that would be free last: a rule taken out.
    #[cfg(feature = "mutations")]
    pub(super) fn refund_last(&mut self, units: u32) -> u32 {
        let mut left = units;
        while left > 0
            && let Some(last) = self.entries.back_mut()
        {
            let freed = last.units.min(left);
            last.units -= freed;
            self.units -= freed;
            left -= freed;
            if last.units == 0 {
                self.entries.pop_back();
            }
        }
        units - left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn units_end_in_the_order_of_their_ends() {
        let mut kept = KeptUses::default();
        kept.keep(2, at(60));
        kept.keep(3, at(70));
        kept.keep(1, at(20)); // the window is shorter from here on
        kept.keep(1, at(60));
        assert_eq!((kept.units(), kept.first_end(), kept.entries.len()), (7, Some(at(20)), 3));
        assert_eq!(
            [1, 2, 4, 5, 8].map(|units| kept.end_of_first(units)),
            [20, 60, 60, 70, 0].map(|end| { Some(at(end)).filter(|_| end > 0) })
        );
        assert_eq!([0, 20, 60, 70].map(|until| kept.kept_past(at(until))), [7, 6, 3, 0]);
        kept.end_until(at(60));
        assert_eq!((kept.units(), kept.first_end()), (3, Some(at(70))));
    }

    #[test]
    fn a_refund_frees_those_that_would_be_free_first() {
        let mut kept = KeptUses::default();
        kept.keep(2, at(60));
        kept.keep(2, at(70));
        assert_eq!((kept.refund(3), kept.units(), kept.first_end()), (3, 1, Some(at(70))));
        assert_eq!((kept.refund(3), kept.units(), kept.first_end()), (1, 0, None));
    }

    #[test]
    fn ends_are_rounded_up_by_less_than_a_part_and_a_window_takes_few_entries() {
        let hold = Duration::from_millis(60_600);
        let mut kept = KeptUses::default();
        for number in 0..1_000_000_u64 {
            let now = Time::from_nanos(number * 60_600);
            let end = KeptUses::end_of(now, hold);
            assert!(end >= now + hold && end.since(now) <= hold + hold / 4_096 + Duration::from_nanos(1));
            kept.keep(1, end);
        }
        assert!(kept.entries.len() <= 4_098, "{}", kept.entries.len());
        assert_eq!((kept.units(), size_of::<KeptUse>()), (1_000_000, 16));
    }
}
