//! Time that the clock of a process did not show, told by a second clock.

use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::WallClock;

/// Compares the wall clock with the clock of leases: a virtual machine that was stopped may show on neither until the date is
/// corrected. What a process may do until some moment ends earlier by the time lost: leases that it holds, and authority
/// that it leads by. What others may still do by its leave does not: a grantor counts what it has granted as long as it was
/// to, and waits out its predecessors in full. So a wall clock that is set forward costs capacity for a while, and nothing
/// else. Between the moment at which a machine goes on and the one at which its date is corrected nothing shows the loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SuspendWatch {
    time: Time,
    wall: WallClock,
}

/// The time by which the wall clock must have run ahead between two looks to be believed: adjustments of 0.05 % stay far below. A
/// pause that is shorter is not seen, and is an error of the clock like others: one per cent of a lease of ten seconds.
pub const BELIEVED: Duration = Duration::from_millis(100);

// === impl SuspendWatch ===

impl SuspendWatch {
    /// Compares from here on, where the clocks show this.
    #[must_use]
    pub const fn new(time: Time, wall: WallClock) -> SuspendWatch {
        SuspendWatch { time, wall }
    }

    /// The date at the last look.
    #[must_use]
    pub const fn wall(&self) -> WallClock {
        self.wall
    }

    /// The time that passed since the last look and that the clock of leases, which shows `time`, did not show.
    pub fn lost(&mut self, time: Time, wall: WallClock) -> Duration {
        let shown = time.since(self.time);
        let passed = wall.since_epoch.saturating_sub(self.wall.since_epoch);
        *self = SuspendWatch { time, wall };
        let lost = passed.saturating_sub(shown);
        if lost > BELIEVED { lost } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wall_clock_that_runs_ahead_shows_lost_time() {
        let wall = |millis| WallClock { since_epoch: Duration::from_millis(millis) };
        let time = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let mut watch = SuspendWatch::new(time(0), wall(50_000));
        assert_eq!(watch.lost(time(1_000), wall(51_000)), Duration::ZERO);
        assert_eq!(watch.lost(time(2_000), wall(52_050)), Duration::ZERO, "within an adjustment");
        assert_eq!(watch.lost(time(3_000), wall(113_050)), Duration::from_secs(60));
        assert_eq!(watch.lost(time(4_000), wall(10)), Duration::ZERO, "set back");
        assert_eq!(watch.lost(time(5_000), wall(1_010)), Duration::ZERO);
    }
}
