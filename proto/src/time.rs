//! Time on one process's clock, and how long a lease lasts on two clocks that agree about neither date nor rate.
//!
//! Only durations travel. A lease is anchored at a report of the holder: the holder counts from the moment it *sent* the
//! report, the grantor from the moment it *received* it and a little longer, because either clock may run fast or slow by
//! a known fraction. So the grantor never stops counting before the holder has stopped using, whatever happens to the
//! messages between them.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A moment on one process's clock, in nanoseconds since some zero of that process.
///
/// Moments of different processes cannot be compared. The clock must go on during suspend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// The largest fraction by which a clock may run fast or slow, in parts per million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drift {
    parts_per_million: u32,
}

// === impl Time ===

impl Time {
    /// The zero of the clock.
    pub const ZERO: Time = Time(0);
    /// Later than any moment that will come (584 years).
    pub const MAX: Time = Time(u64::MAX);

    /// The moment that many nanoseconds after zero.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since zero.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment that much before; no earlier than the zero of the clock.
    #[must_use]
    pub fn earlier(self, by: Duration) -> Time {
        Time(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The moment that much before; absent if that is before the zero of the clock.
    #[must_use]
    pub fn checked_earlier(self, by: Duration) -> Option<Time> {
        self.0.checked_sub(u64::try_from(by.as_nanos()).ok()?).map(Time)
    }

    /// The time since `earlier`; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Stops at [`Time::MAX`].
impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Seconds since zero, as `12.345s`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0 / 1_000_000_000, self.0 / 1_000_000 % 1_000)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl Drift ===

impl Drift {
    /// The default bound of one per cent: NTP slews by 0.05 %, bad crystals err by 0.02 %, virtual clocks can be sloppy.
    pub const DEFAULT: Drift = Drift { parts_per_million: 10_000 };
    /// Perfect clocks.
    pub const NONE: Drift = Drift { parts_per_million: 0 };

    /// A bound in parts per million, below half.
    #[must_use]
    pub const fn from_parts_per_million(parts_per_million: u32) -> Drift {
        assert!(parts_per_million < 500_000, "a clock that errs by half is no clock");
        Drift { parts_per_million }
    }

    /// Until when a holder may use a lease of `length` whose basis it sent at `sent`.
    #[must_use]
    pub fn holder_end(self, sent: Time, length: Duration) -> Time {
        sent + length
    }

    /// Until when a grantor counts a lease of `length` whose basis it received at `received`: longer by
    /// (1 + drift) / (1 - drift), rounded up.
    #[must_use]
    pub fn grantor_end(self, received: Time, length: Duration) -> Time {
        received + self.stretch(length)
    }

    /// The length of a lease that the grantor counts until `end`, for the basis it received at `received`: the inverse of
    /// [`Drift::grantor_end`], rounded down.
    #[must_use]
    pub fn length_until(self, received: Time, end: Time) -> Duration {
        let counted = end.since(received).as_nanos();
        from_nanos(counted * self.slow() / self.fast())
    }

    /// Until when at the least something lasts that lasts for `length` on another clock, from `since` on: the inverse of
    /// [`Drift::grantor_end`], rounded down.
    #[must_use]
    pub fn least_end(self, since: Time, length: Duration) -> Time {
        since + from_nanos(length.as_nanos() * self.slow() / self.fast())
    }

    /// `length` on the slowest clock for one who counts on the fastest, rounded up.
    #[must_use]
    pub fn stretch(self, length: Duration) -> Duration {
        from_nanos((length.as_nanos() * self.fast()).div_ceil(self.slow()))
    }

    /// As long on the clock of whoever counts that at least `length` has passed, however fast that clock runs; rounded up.
    #[must_use]
    pub fn outlasting(self, length: Duration) -> Duration {
        from_nanos((length.as_nanos() * self.fast()).div_ceil(1_000_000))
    }

    fn fast(self) -> u128 {
        1_000_000 + u128::from(self.parts_per_million)
    }

    fn slow(self) -> u128 {
        1_000_000 - u128::from(self.parts_per_million)
    }
}

impl Default for Drift {
    fn default() -> Drift {
        Drift::DEFAULT
    }
}

fn from_nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn grantor_counts_two_drifts_longer() {
        let end = Drift::DEFAULT.grantor_end(Time::ZERO, Duration::from_secs(99));
        assert_eq!(end, Time::from_nanos(101_000_000_000));
    }

    #[test]
    fn a_fast_clock_shows_more_than_has_passed() {
        assert_eq!(Drift::DEFAULT.outlasting(Duration::from_secs(60)), Duration::from_millis(60_600));
        assert_eq!(Drift::DEFAULT.outlasting(Duration::from_nanos(1)), Duration::from_nanos(2));
        assert_eq!(Drift::NONE.outlasting(Duration::from_secs(60)), Duration::from_secs(60));
    }

    #[test]
    fn addition_stops_at_the_end_of_time() {
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO + Duration::MAX, Time::MAX);
    }

    #[test]
    fn reads_as_seconds() {
        assert_eq!(Time::from_nanos(1_234_567_890).to_string(), "1.234s");
    }

    proptest! {
        // Lemma 1 of the lease rules, with the holder's clock slow and the grantor's fast by the whole bound.
        #[test]
        fn grantor_never_ends_before_the_holder(
            ppm in 0u32..200_000,
            length_nanos in 0u64..1 << 50,
            delay_nanos in 0u64..1 << 40,
        ) {
            let drift = Drift::from_parts_per_million(ppm);
            let length = Duration::from_nanos(length_nanos);
            let holder_counts = drift.holder_end(Time::ZERO, length).as_nanos();
            let grantor_counts = drift.grantor_end(Time::ZERO, length).as_nanos();
            // Real time passed when each has counted so far, times (1 + rate)(1 - rate) to stay among integers.
            let holder_real = u128::from(holder_counts) * drift.fast();
            let grantor_real = u128::from(grantor_counts) * drift.slow() + u128::from(delay_nanos) * drift.fast();
            prop_assert!(grantor_real >= holder_real);
        }

        #[test]
        fn length_until_never_promises_more_than_is_counted(
            ppm in 0u32..200_000,
            received in 0u64..1 << 50,
            counted in 0u64..1 << 50,
        ) {
            let drift = Drift::from_parts_per_million(ppm);
            let (received, end) = (Time::from_nanos(received), Time::from_nanos(received + counted));
            let length = drift.length_until(received, end);
            prop_assert!(drift.grantor_end(received, length) <= end);
            prop_assert!(drift.grantor_end(received, length + Duration::from_nanos(1)) > end
                || counted == 0 || drift.grantor_end(received, length) == end);
        }
    }
}
