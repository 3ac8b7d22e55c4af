//! Bounds of the clock of whoever leads, kept by those who stand by.
//!
//! A lease that the leader of an epoch has charged ends by that leader's clock, which its successor does not have. So a
//! candidate asks the leader now and then what its clock shows. The answer was read after the question was sent, so at any later
//! moment that clock shows no more than the answer and the time since the sending, stretched for both clocks. From that
//! follows by when, on its own clock, the leader had certainly stopped.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lessor_proto::{Drift, Epoch, Time};

/// The known bounds of the clocks of leaders, epoch by epoch: each epoch may be another process, with another
/// clock.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClockBounds {
    epochs: BTreeMap<Epoch, ClockReading>,
    /// Times that one's own clock did not show, each with the moment at which that was noticed.
    losses: VecDeque<(Time, Duration)>,
}

/// A clock showed this after that moment of one's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ClockReading {
    asked: Time,
    shown: Time,
}

/// Epochs that are remembered: the last ones.
const EPOCHS: usize = 8;
/// Lost times that are remembered one by one, for answers to questions that were asked before they were noticed.
const LOSSES: usize = 16;

// === impl ClockBounds ===

impl ClockBounds {
    /// The leader of the epoch `epoch` was asked at `asked`, by one's own clock read before the question left, and its clock
    /// showed `shown` after it had the question. The answer that bounds it best is kept.
    pub fn note(&mut self, epoch: Epoch, asked: Time, shown: Time, drift: Drift) {
        let since = self.losses.iter().filter(|&&(noticed, _)| asked <= noticed);
        let lost = since.map(|&(_, lost)| lost).sum();
        let Some(asked) = asked.checked_earlier(lost) else { return };
        let reading = ClockReading { asked, shown };
        let known = self.epochs.entry(epoch).or_insert(reading);
        let both = asked.max(known.asked);
        if reading.latest(both, drift) < known.latest(both, drift) {
            *known = reading;
        }
        while self.epochs.len() > EPOCHS {
            self.epochs.pop_first();
        }
    }

    /// Time has passed that one's own clock did not show, as is noticed at `now`: all answers so far are that much older, and
    /// those to come to what was asked before.
    pub fn lose_time(&mut self, now: Time, lost: Duration) {
        self.losses.push_back((now, lost));
        if self.losses.len() > LOSSES
            && let Some((_, oldest)) = self.losses.pop_front()
            && let Some((_, next)) = self.losses.front_mut()
        {
            *next += oldest;
        }
        self.epochs.retain(|_, reading| {
            let asked = reading.asked.checked_earlier(lost);
            reading.asked = asked.unwrap_or(Time::ZERO);
            asked.is_some()
        });
    }

    /// The latest that the clock of the leader of `epoch` can show at `now`; absent if it never answered.
    #[must_use]
    pub fn latest(&self, epoch: Epoch, now: Time, drift: Drift) -> Option<Time> {
        self.epochs.get(&epoch).map(|reading| reading.latest(now, drift))
    }

    /// When the leader of `epoch` has certainly stopped, by its clock: at `gone`, by one's own, its key was known to have gone,
    /// and it acts no longer than for `authority` after it saw that it still had the key.
    #[must_use]
    pub fn stop(&self, epoch: Epoch, gone: Time, authority: Duration, drift: Drift) -> Option<Time> {
        self.latest(epoch, gone, drift).map(|latest| latest + authority)
    }
}

// === impl ClockReading ===

impl ClockReading {
    /// Both clocks may err: one's own may be slow, and the other one fast.
    fn latest(&self, now: Time, drift: Drift) -> Time {
        drift.grantor_end(self.shown, now.since(self.asked))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parts per million by which clocks err.
    const ERROR: u64 = 10_000;
    const DRIFT: Drift = Drift::from_parts_per_million(ERROR as u32);

    /// The reading of a clock at a moment given in milliseconds, so that nothing is rounded.
    fn clock(offset: u64, rate: u64, millis: u64) -> Time {
        Time::from_nanos(offset + millis * rate)
    }

    fn rate() -> impl Strategy<Value = u64> {
        prop_oneof![Just(1_000_000 - ERROR), Just(1_000_000 + ERROR), 1_000_000 - ERROR..1_000_000 + ERROR]
    }

    proptest! {
        /// Whatever clocks do within their error, and however long questions and answers take.
        #[test]
        fn the_clock_never_shows_more(
            (own, other) in (rate(), rate()),
            offsets in (0u64..1 << 50, 0u64..1 << 50),
            questions in prop::collection::vec((0u64..100_000, 0u64..20_000), 1..6),
            later in 0u64..1_000_000,
        ) {
            let mut bounds = ClockBounds::default();
            let mut last = 0;
            for (sent, took) in questions {
                let read = sent + took;
                bounds.note(Epoch(7), clock(offsets.0, own, sent), clock(offsets.1, other, read), DRIFT);
                last = last.max(read);
            }
            let at = last + later;
            let latest = bounds.latest(Epoch(7), clock(offsets.0, own, at), DRIFT).unwrap();
            prop_assert!(clock(offsets.1, other, at) <= latest);
        }

        /// The best of several answers is as good as that one alone.
        #[test]
        fn another_answer_never_makes_it_worse(first in (0u64..1 << 40, 0u64..1 << 40), second in (0u64..1 << 40, 0u64..1 << 40)) {
            let time = Time::from_nanos;
            let bounds = |questions: &[(u64, u64)]| {
                let mut bounds = ClockBounds::default();
                questions.iter().for_each(|&(asked, shown)| bounds.note(Epoch(1), time(asked), time(shown), DRIFT));
                bounds.latest(Epoch(1), time(1 << 41), DRIFT).unwrap()
            };
            prop_assert!(bounds(&[first, second]) <= bounds(&[first]) + Duration::from_nanos(2));
            prop_assert!(bounds(&[first, second]) <= bounds(&[second]) + Duration::from_nanos(2));
        }
    }

    #[test]
    fn the_margin_is_for_two_clocks_and_counts_from_the_sending() {
        let second = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let mut bounds = ClockBounds::default();
        bounds.note(Epoch(3), second(10), second(500), DRIFT);
        // 101/99 of 99 s.
        assert_eq!(bounds.latest(Epoch(3), second(109), DRIFT), Some(second(601)));
        assert_eq!(bounds.stop(Epoch(3), second(109), Duration::from_secs(4), DRIFT), Some(second(605)));
    }

    #[test]
    fn time_that_the_own_clock_did_not_show_has_passed_for_the_other() {
        let second = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let mut bounds = ClockBounds::default();
        bounds.note(Epoch(3), second(100), second(500), DRIFT);
        // Ten seconds by one's own clock, and 89 that it stood still.
        bounds.lose_time(second(110), Duration::from_secs(89));
        assert_eq!(bounds.latest(Epoch(3), second(110), DRIFT), Some(second(601)));
        bounds.note(Epoch(3), second(111), second(590), DRIFT);
        assert!(
            bounds.latest(Epoch(3), second(111), DRIFT) < Some(second(591)),
            "a later answer is a better one"
        );
    }

    #[test]
    fn an_answer_is_as_old_as_its_question_though_the_own_clock_stood_still_in_between() {
        let second = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        for losses in [1, 4, 40] {
            let mut bounds = ClockBounds::default();
            // Ten seconds by one's own clock, and 80 that it stood still.
            for loss in 0..losses {
                bounds.lose_time(second(101 + loss * 9 / losses), Duration::from_secs(80) / losses as u32);
            }
            bounds.note(Epoch(3), second(100), second(500), DRIFT);
            let latest = bounds.latest(Epoch(3), second(119), DRIFT);
            assert_eq!(latest, Some(second(601)), "{losses} times");
        }
        let mut bounds = ClockBounds::default();
        bounds.lose_time(second(50), Duration::from_secs(80));
        bounds.note(Epoch(3), second(5), second(500), DRIFT);
        assert_eq!(bounds.latest(Epoch(3), second(60), DRIFT), None, "it was asked before the clock began");
    }

    #[test]
    fn a_bound_is_of_one_epoch() {
        let mut bounds = ClockBounds::default();
        (1..=20)
            .for_each(|epoch| bounds.note(Epoch(epoch), Time::from_nanos(5), Time::from_nanos(epoch), DRIFT));
        assert_eq!(bounds.latest(Epoch(21), Time::from_nanos(5), DRIFT), None);
        assert_eq!(bounds.latest(Epoch(12), Time::from_nanos(5), DRIFT), None, "long past");
        assert_eq!(bounds.latest(Epoch(20), Time::from_nanos(5), DRIFT), Some(Time::from_nanos(20)));
    }
}
