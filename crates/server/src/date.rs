//! The date, which holders that poll as Doorman's clients go by: it is told to the mind together with its clock.

use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::WallClock;

/// The reading of the wall clock at a moment of the process's own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Date {
    at: Time,
    wall: WallClock,
}

// === impl Date ===

impl Date {
    pub(crate) const fn new(at: Time, wall: WallClock) -> Date {
        Date { at, wall }
    }

    /// The Unix time, in whole seconds, at which a lease ends that is granted at `now` for `length`: rounded down, as on the
    /// wire.
    pub(crate) fn expiry(self, now: Time, length: Duration) -> u64 {
        self.wall_at(now).saturating_add(length).as_secs()
    }

    /// The time from `now` until the Unix time `expiry`.
    pub(crate) fn until(self, now: Time, expiry: u64) -> Duration {
        Duration::from_secs(expiry).saturating_sub(self.wall_at(now))
    }

    fn wall_at(self, now: Time) -> Duration {
        let wall = self.wall.since_epoch;
        wall.saturating_add(now.since(self.at)).saturating_sub(self.at.since(now))
    }
}

// === impl Default for Date ===

impl Default for Date {
    /// A process that was told no date takes its own clock for it.
    fn default() -> Date {
        Date::new(Time::ZERO, WallClock { since_epoch: Duration::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_goes_on_with_the_clock() {
        let noon = Time::from_nanos(7_000_000_000);
        let date = Date::new(noon, WallClock { since_epoch: Duration::from_millis(1_000_900) });
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(date.expiry(noon, minute), 1_060);
        assert_eq!(date.expiry(noon + second, minute), 1_061);
        assert_eq!(date.until(noon, 1_060), Duration::from_millis(59_100));
        assert_eq!(date.until(Time::from_nanos(6_000_000_000), 1_060), Duration::from_millis(60_100));
        assert_eq!(date.until(noon + minute, 1_060), Duration::ZERO);
    }
}
