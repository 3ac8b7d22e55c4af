//! The polls of a holder that takes turns and does not listen: when it asks next, and for how long its turn waits for that.
//!
//! A quantum may be shorter than the time between two polls. If a turn passed with its quantum, a holder that polls would
//! have a unit only where one of its polls happens to fall into its turn, and where both go in step it would never have one.
//! So it stands in line for the quanta in which it is expected, and its turn waits for its poll.
//!
//! A holder is expected when it was told to come back. One that is slower than that, as Doorman's clients, which may set a
//! least interval of their own, is expected after as long as it took to come the last time.

use std::time::Duration;

use lessor_proto::Time;

use crate::resource::retry::SOON;

/// A unit that is to be there when a poll comes is recalled so long before.
const HAND_OVER: Duration = Duration::from_millis(100);

/// The last poll of a holder, and what is known of when the next one comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LastPoll {
    at: Time,
    /// The time after which it was told to come back, in milliseconds.
    told_millis: u32,
    /// The time after which it came the last time, if that was much longer than it had been told; in milliseconds.
    own_millis: u32,
}

// === impl LastPoll ===

impl LastPoll {
    /// The poll at `at`, which comes after `before` and is told to come back after `told`.
    pub(super) fn new(at: Time, told: Duration, before: Option<LastPoll>) -> LastPoll {
        let told_millis = millis(told);
        let after = before.map(|before| (millis(at.since(before.at)), before.told_millis));
        let own = after.filter(|&(took, told)| took > told.saturating_add(told / 2));
        LastPoll { at, told_millis, own_millis: own.map_or(0, |(took, _)| took) }
    }

    /// The earliest time of the next one: our clients spread theirs over the last tenth of the time.
    pub(super) fn next(&self) -> Time {
        self.at + self.interval() * 9 / 10
    }

    /// Whether the next one may come in the quantum from `now` on, or while the unit for that is on its way.
    pub(super) fn is_expected(&self, now: Time, quantum: Duration) -> bool {
        self.is_awaited(now) && self.next() < now + quantum + HAND_OVER
    }

    /// Whether a turn still waits for the next one at `now`. Who is later than that begins anew when it comes.
    pub(super) fn is_awaited(&self, now: Time) -> bool {
        now < self.at + self.interval() + self.interval().max(SOON)
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(self.told_millis.max(self.own_millis).into())
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_millis(125);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_poll_is_expected_in_the_quanta_in_which_it_may_come_and_in_none_before() {
        let poll = LastPoll::new(at(500), ms(1_000), None);
        assert_eq!(poll.next(), at(1_400));
        assert!(!poll.is_expected(at(1_000), QUANTUM));
        assert!(poll.is_expected(at(1_250), QUANTUM), "with the time that a unit takes to change hands");
        assert!(poll.is_expected(at(1_500), QUANTUM));
    }

    #[test]
    fn a_turn_waits_for_as_long_again_as_the_poll_was_to_take_and_a_second_at_least() {
        let poll = LastPoll::new(at(0), ms(50), None);
        assert!(poll.is_awaited(at(1_049)) && !poll.is_awaited(at(1_050)));
        let poll = LastPoll::new(at(0), ms(4_000), None);
        assert!(poll.is_awaited(at(7_999)) && !poll.is_awaited(at(8_000)));
        assert!(!poll.is_expected(at(8_000), QUANTUM), "who does not come is not waited for again");
    }

    #[test]
    fn one_that_is_slower_than_it_was_told_is_expected_when_it_came_the_last_time() {
        let first = LastPoll::new(at(0), ms(1_000), None);
        let prompt = LastPoll::new(at(1_200), ms(1_000), Some(first));
        assert_eq!(prompt.next(), at(2_100));
        let slow = LastPoll::new(at(5_000), ms(1_000), Some(first));
        assert_eq!(slow.next(), at(9_500));
        let again = LastPoll::new(at(6_000), ms(1_000), Some(slow));
        assert_eq!(again.next(), at(6_900), "it keeps to what it is told again");
    }
}
