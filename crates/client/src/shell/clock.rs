//! The clocks of this process, read here and nowhere else.
//!
//! Leases are counted on the clock that goes on while the machine is suspended (`CLOCK_BOOTTIME` on Linux;
//! [`std::time::Instant`] may stop, rust-lang/rust#87906). The date is read only for peers that write the end of a lease as
//! a date, and to notice time that the first clock did not show.

use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::WallClock;

/// The longest sleep between two looks at the clock: timers stop during suspend.
const SLICE: Duration = Duration::from_secs(1);
/// How far the wall clock may run ahead between two looks before it is believed: adjustments of 0.05 % stay far below.
const BELIEVED: Duration = Duration::from_millis(100);

/// Compares the wall clock with the clock of leases: a virtual machine that was stopped may show on neither until the date is
/// corrected. What a process may do until some moment ends earlier by the time lost: leases that it holds, and authority
/// that it leads by. What others may still do by its leave does not: a grantor counts what it has granted as long as it was
/// to, and waits out its predecessors in full. So a wall clock that is set forward costs capacity for a while, and nothing
/// else. Between the moment at which a machine goes on and the one at which its date is corrected nothing shows the loss.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    time: Time,
    wall: WallClock,
}

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

// === impl Watch ===

impl Watch {
    /// Compares from here on.
    #[must_use]
    pub fn start() -> Watch {
        Watch { time: now(), wall: wall() }
    }

    /// The time that passed since the last look and that [`now`] did not show.
    pub fn lost(&mut self) -> Duration {
        self.lost_by(now())
    }

    /// The same at `time`, which has just been read.
    pub fn lost_by(&mut self, time: Time) -> Duration {
        self.lost_between(time, wall())
    }

    fn lost_between(&mut self, time: Time, wall: WallClock) -> Duration {
        let shown = time.since(self.time);
        let passed = wall.since_epoch.saturating_sub(self.wall.since_epoch);
        *self = Watch { time, wall };
        let lost = passed.saturating_sub(shown);
        if lost > BELIEVED { lost } else { Duration::ZERO }
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

    #[test]
    fn only_a_wall_clock_that_runs_ahead_shows_lost_time() {
        let wall = |millis| WallClock { since_epoch: Duration::from_millis(millis) };
        let time = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let mut watch = Watch { time: time(0), wall: wall(50_000) };
        assert_eq!(watch.lost_between(time(1_000), wall(51_000)), Duration::ZERO);
        assert_eq!(watch.lost_between(time(2_000), wall(52_050)), Duration::ZERO, "within an adjustment");
        assert_eq!(watch.lost_between(time(3_000), wall(113_050)), Duration::from_secs(60));
        assert_eq!(watch.lost_between(time(4_000), wall(10)), Duration::ZERO, "set back");
        assert_eq!(watch.lost_between(time(5_000), wall(1_010)), Duration::ZERO);
    }
}
