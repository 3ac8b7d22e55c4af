//! The clocks of this process, read here and nowhere else.
//!
//! Leases are counted on the clock that goes on while the machine is suspended (`CLOCK_BOOTTIME` on Linux;
//! [`std::time::Instant`] may stop, rust-lang/rust#87906). The date is read only for peers that write the end of a lease as
//! a date, and to notice time that the first clock did not show.

use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::WallClock;

use crate::suspend;

/// The longest sleep between two looks at the clock: timers stop during suspend.
const SLICE: Duration = Duration::from_secs(1);
/// The guard of suspend on the clocks of this process.
#[derive(Clone, Copy, Debug)]
pub struct ClockWatch(suspend::SuspendWatch);

/// The time of this process.
#[must_use]
pub fn now() -> Time {
    read()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn read() -> Time {
    let read = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(read.tv_sec), u64::try_from(read.tv_nsec));
    Time::from_nanos(seconds.unwrap_or(0).saturating_mul(1_000_000_000) + nanos.unwrap_or(0))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn read() -> Time {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ZERO: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "the best clock there is on this system")]
    let now = Instant::now();
    Time::ZERO + now.saturating_duration_since(*ZERO.get_or_init(|| now))
}

/// The date.
#[must_use]
pub fn wall() -> WallClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the wall clock is read")]
    let now = std::time::SystemTime::now();
    WallClock { since_epoch: now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default() }
}

/// Returns at `at` or up to a millisecond later, or up to a second after the machine wakes from suspend.
pub async fn sleep_until(at: Time) {
    loop {
        let left = at.since(now());
        if left.is_zero() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "this is where the shell waits")]
        tokio::time::sleep(left.min(SLICE)).await;
    }
}

// === impl ClockWatch ===

impl ClockWatch {
    /// Compares from here on.
    #[must_use]
    pub fn start() -> ClockWatch {
        ClockWatch(suspend::SuspendWatch::new(now(), wall()))
    }

    /// The time that passed since the last look and that [`now`] did not show.
    pub fn lost(&mut self) -> Duration {
        self.lost_by(now())
    }

    /// The same at `time`, which has just been read.
    pub fn lost_by(&mut self, time: Time) -> Duration {
        self.0.lost(time, wall())
    }

    /// The date at the last look.
    #[must_use]
    pub fn wall(&self) -> WallClock {
        self.0.wall()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward() {
        let first = now();
        assert!(now() >= first);
    }
}
