//! Two clocks that agree about nothing: when was here what happened there?
//!
//! A message of a grantor was sent before it came, and what the grantor heard of us came there after we had said it. So
//! its clock is ahead of ours by no less than one message shows, and by no more than the other. Both bounds are kept,
//! and the one is used that makes a hit *earlier*: it then ceases to count rather too early than too late, at most by a
//! round trip, and nobody is refused because of the way that a message took.
//!
//! The bounds contradict each other where what the grantor heard was another report of that number, from before its sender began
//! again on the stream: then the message is believed that shows the least, as it says itself when it was sent.

use lessor_proto::{Drift, Time};

/// The drift of a clock that is allowed for: a twentieth of [`Drift::DEFAULT`], as much as NTP slews by at the most.
///
/// A lease is a promise, and has to hold for bad clocks. Here an hour without a message moves a hit by as much as two clocks may
/// have drifted apart since, so with one per cent of each it would be forgotten 72 seconds too early, whatever the clocks did, and
/// with this it is four. Of clocks that are worse hits count a little too long instead.
const DRIFT: Drift = Drift::from_parts_per_million(500);

/// By how much a grantor's clock is ahead of ours, in nanoseconds: no less and no more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    least: Option<FoundBound>,
    most: Option<FoundBound>,
}

/// A bound, and when it was found.
#[derive(Clone, Copy, Debug)]
struct FoundBound {
    nanos: i128,
    found: Time,
}

// === impl Clocks ===

impl Clocks {
    /// Something came at `now` that was said when the clock there showed `said`.
    pub fn came(&mut self, now: Time, said: Time) {
        let found = FoundBound { nanos: difference(said, now), found: now };
        if self.least.is_none_or(|known| found.nanos >= known.at_least(now)) {
            self.least = Some(found);
            self.most = self.most.map(|most| if most.at_most(now) < found.nanos { found } else { most });
        }
    }

    /// Notes that what we said at `sent` had come there when the clock there showed `heard`.
    pub fn heard(&mut self, now: Time, sent: Time, heard: Time) {
        let least = self.least.map_or(i128::MIN, |least| least.at_least(now));
        let nanos = difference(heard, sent).max(least);
        if self.most.is_none_or(|known| nanos <= known.at_most(now)) {
            self.most = Some(FoundBound { nanos, found: now });
        }
    }

    /// By how much the clock there is ahead of ours at the least, in nanoseconds, if anything is known of it.
    pub(super) fn least(&self, now: Time) -> Option<i128> {
        self.least.map(|least| least.at_least(now))
    }

    /// The time that the clock there showed at `here`, or an earlier one.
    pub fn there(&self, now: Time, here: Time) -> Option<Time> {
        let bound = self.least?;
        Some(moved(here, bound.at_least(now)))
    }

    /// The time that our clock showed when that there showed `there`, or an earlier one.
    pub fn here(&self, now: Time, there: Time) -> Option<Time> {
        let bound = self.most?;
        Some(moved(there, -bound.at_most(now)))
    }
}

// === impl FoundBound ===

impl FoundBound {
    /// The bound by now, where it is no less than that.
    fn at_least(&self, now: Time) -> i128 {
        self.nanos - self.drift(now)
    }

    /// The bound by now, where it is no more than that.
    fn at_most(&self, now: Time) -> i128 {
        self.nanos + self.drift(now)
    }

    /// By how much it may be wrong by now.
    fn drift(&self, now: Time) -> i128 {
        let passed = now.since(self.found);
        i128::try_from((DRIFT.stretch(passed) - passed).as_nanos()).unwrap_or(i128::MAX)
    }
}

fn difference(a: Time, b: Time) -> i128 {
    i128::from(a.as_nanos()) - i128::from(b.as_nanos())
}

fn moved(time: Time, by: i128) -> Time {
    let nanos = (i128::from(time.as_nanos()) + by).clamp(0, i128::from(u64::MAX));
    Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AHEAD: u64 = 1_000_000_000_000;

    #[test]
    fn nothing_is_known_before_something_came() {
        let clocks = Clocks::default();
        assert_eq!((clocks.there(Time::ZERO, Time::ZERO), clocks.here(Time::ZERO, Time::ZERO)), (None, None));
    }

    /// Reports are numbered anew where a client begins again on a stream, and what answers one from before that names a number
    /// that is in use: it heard of it before that was sent.
    #[test]
    fn an_answer_to_another_report_places_nothing_later_than_it_came() {
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let there = |millis: u64| Time::from_nanos(AHEAD + millis * 1_000_000);
        for answered_first in [true, false] {
            let mut clocks = Clocks::default();
            for is_answer in [answered_first, !answered_first] {
                match is_answer {
                    true => clocks.heard(at(10_001), at(10_000), there(6_000)),
                    false => clocks.came(at(10_200), there(10_150)),
                }
            }
            let here = clocks.here(at(10_200), there(10_150)).unwrap();
            assert!(here <= at(10_200), "{here}");
        }
    }

    proptest! {
        /// Clocks that go equally fast, with messages that take up to a second: what happened here or there is placed on
        /// the other clock no later than it was, and no earlier than the shortest ways explain.
        #[test]
        fn moments_are_placed_no_later_than_they_were(
            ways in proptest::collection::vec((0..1_000_000_000_u64, 0..1_000_000_000_u64), 1..20),
            ago in 0..1_000_000_000_u64,
        ) {
            let mut clocks = Clocks::default();
            let mut now = AHEAD;
            for &(up, down) in &ways {
                let sent = now;
                let heard = sent + up;
                now = heard + down;
                clocks.heard(Time::from_nanos(now), Time::from_nanos(sent), Time::from_nanos(heard + AHEAD));
                clocks.came(Time::from_nanos(now), Time::from_nanos(heard + AHEAD));
            }
            let (up, down) = ways[ways.len() - 1];
            let at = Time::from_nanos(now - ago);
            let there = clocks.there(Time::from_nanos(now), at).unwrap().as_nanos();
            prop_assert!(there <= now - ago + AHEAD && there + down >= now - ago + AHEAD);
            let here = clocks.here(Time::from_nanos(now), Time::from_nanos(now - ago + AHEAD)).unwrap().as_nanos();
            prop_assert!(here <= now - ago && here + up >= now - ago);
        }

        /// Both clocks are fast or slow by as much as is allowed for, and an hour passes without a word.
        #[test]
        fn drift_is_allowed_for(
            fast in 999_500..=1_000_500_u64,
            other in 999_500..=1_000_500_u64,
            hour in 0..3_600_000_u64,
        ) {
            let there = |millis: u64| Time::from_nanos(AHEAD + millis * other);
            let here = |millis: u64| Time::from_nanos(millis * fast);
            let mut clocks = Clocks::default();
            clocks.heard(here(0), here(0), there(0));
            clocks.came(here(0), there(0));
            prop_assert!(clocks.there(here(hour), here(hour)).unwrap() <= there(hour));
            prop_assert!(clocks.here(here(hour), there(hour)).unwrap() <= here(hour));
        }
    }
}
