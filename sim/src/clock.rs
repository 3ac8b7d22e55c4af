//! A process's clock: it shows some date, and runs a little fast or slow.
//!
//! All in integers, so that it shows the same on every machine. What it shows is rounded down and never runs backwards;
//! the moment at which it will show something is rounded up, so that whoever waits for it is never woken too early.

use lessor_proto::Time;

/// A clock that showed `local` at the real moment `real` and has run at one rate since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    real: Time,
    local: Time,
    /// Nanoseconds that it counts in a real second; none while it stands still.
    rate: u64,
}

/// The rate of a perfect clock.
pub const PERFECT: u64 = 1_000_000_000;

// === impl Clock ===

impl Clock {
    /// A clock that shows `local` at `real` and counts `rate` nanoseconds a second.
    #[must_use]
    pub const fn new(real: Time, local: Time, rate: u64) -> Clock {
        Clock { real, local, rate }
    }

    /// The clock that shows the real time.
    pub const REAL: Clock = Clock::new(Time::ZERO, Time::ZERO, PERFECT);

    /// The time that it shows at `real`, which is not before its rate was last changed.
    #[must_use]
    pub fn at(&self, real: Time) -> Time {
        let passed = real.as_nanos().saturating_sub(self.real.as_nanos());
        let counted = match self.rate {
            PERFECT => passed,
            rate => narrow(u128::from(passed) * u128::from(rate) / u128::from(PERFECT)),
        };
        Time::from_nanos(self.local.as_nanos().saturating_add(counted))
    }

    /// The first moment at which it shows `local` or later.
    #[must_use]
    pub fn when(&self, local: Time) -> Time {
        let counted = local.as_nanos().saturating_sub(self.local.as_nanos());
        let passed = match self.rate {
            PERFECT => counted,
            0 if counted > 0 => return Time::MAX,
            0 => 0,
            rate => narrow((u128::from(counted) * u128::from(PERFECT)).div_ceil(u128::from(rate))),
        };
        if local == Time::MAX {
            return Time::MAX;
        }
        Time::from_nanos(self.real.as_nanos().saturating_add(passed))
    }

    /// Nanoseconds that it counts in a real second.
    #[must_use]
    pub const fn rate(&self) -> u64 {
        self.rate
    }

    /// Runs at `rate` from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: u64) {
        *self = Clock { real: now, local: self.at(now), rate };
    }
}

fn narrow(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_woken_too_early_or_never() {
        let mut clock = Clock::new(Time::ZERO, Time::from_nanos(1_000_000_000_000_000_000), PERFECT);
        for (step, rate) in [(7, 950_000_001), (1_000_003, 1_049_999_999), (123_456_789, PERFECT)] {
            clock.set_rate(Time::from_nanos(step), rate);
            for ahead in [0, 1, 2, 17, 999_999_937] {
                let local = Time::from_nanos(clock.at(Time::from_nanos(step)).as_nanos() + ahead);
                let when = clock.when(local);
                assert!(clock.at(when) >= local, "{rate} {ahead}");
                let before = Time::from_nanos(when.as_nanos() - 1);
                assert!(before < Time::from_nanos(step) || clock.at(before) < local, "{rate} {ahead}");
            }
        }
    }

    #[test]
    fn the_end_of_time_never_comes() {
        assert_eq!(Clock::REAL.when(Time::MAX), Time::MAX);
        assert_eq!(Clock::new(Time::ZERO, Time::ZERO, 950_000_000).when(Time::MAX), Time::MAX);
    }
}
