//! A tempo: so many in a second in the long run, and some at once.
//!
//! The next of an endless row is due at equal intervals; whoever comes may be ahead of that by a burst, and no more. One
//! moment is all that is kept.

use std::time::Duration;

use lessor_proto::Time;

/// A tempo that something keeps to. Times that go backwards bring nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tempo {
    /// The time between two in the long run.
    interval: Duration,
    /// The time by which one may be ahead.
    ahead: Duration,
    /// When the next one is due.
    due: Time,
}

// === impl Tempo ===

impl Tempo {
    /// A tempo of `per_second`, with as many at once as come in `burst`, and one at least.
    #[must_use]
    pub fn new(per_second: f64, burst: Duration) -> Tempo {
        // Slower than once in a year is as good as never.
        const SLOWEST: f64 = 365.0 * 86_400.0;
        let interval = Duration::from_secs_f64((1.0 / per_second.max(1.0 / SLOWEST)).min(SLOWEST));
        Tempo { interval, ahead: burst.saturating_sub(interval), due: Time::ZERO }
    }

    /// Whether nothing of what was taken counts any more at `now`.
    #[must_use]
    pub fn is_idle(&self, now: Time) -> bool {
        self.due <= now
    }

    /// Takes one at `now`.
    ///
    /// # Errors
    /// When it is not time yet, with the moment at which it is; nothing was taken.
    pub fn take(&mut self, now: Time) -> Result<(), Time> {
        if self.due > now + self.ahead {
            return Err(self.due.earlier(self.ahead));
        }
        self.due = self.due.max(now) + self.interval;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_burst_passes_and_then_so_many_a_second() {
        let mut tempo = Tempo::new(10.0, Duration::from_millis(500));
        let start = Time::ZERO + Duration::from_secs(9);
        let passed = (0..9).filter(|_| tempo.take(start).is_ok()).count();
        assert_eq!(passed, 5);
        let at = tempo.take(start).unwrap_err();
        assert_eq!(at, start + Duration::from_millis(100));
        assert!(tempo.take(at).is_ok());
        assert!(tempo.take(at).is_err());
    }

    #[test]
    fn one_is_always_let_through() {
        let mut tempo = Tempo::new(0.5, Duration::ZERO);
        assert_eq!(tempo.take(Time::ZERO), Ok(()));
        assert_eq!(tempo.take(Time::ZERO), Err(Time::ZERO + Duration::from_secs(2)));
    }

    proptest! {
        // In no window more pass than the tempo and its burst allow, and whoever waits as told is let through.
        #[test]
        fn the_long_run_is_kept(
            gaps in prop::collection::vec(0u64..400, 1..200),
            per_second in 1.0f64..100.0,
            burst in 0u64..2_000,
        ) {
            let burst = Duration::from_millis(burst);
            let mut tempo = Tempo::new(per_second, burst);
            let (mut now, mut passed) = (Time::ZERO, 0u32);
            for gap in gaps {
                now += Duration::from_millis(gap);
                match tempo.take(now) {
                    Ok(()) => passed += 1,
                    Err(at) => {
                        prop_assert!(at > now);
                        prop_assert_eq!(tempo.clone().take(at), Ok(()));
                    }
                }
                let most = (now.since(Time::ZERO) + burst).as_secs_f64() * per_second + 1.001;
                prop_assert!(f64::from(passed) <= most, "{} of {}", passed, most);
            }
        }
    }
}
