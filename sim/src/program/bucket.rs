//! A bucket that is too simple to be wrong: what came in, and what was taken.

use std::time::Duration;

use lessor_proto::{Amount, Time};

/// A bucket of what has come in and was not taken.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Bucket {
    /// In millionths of a unit times nanoseconds of a second, so that nothing is rounded.
    level: u128,
    /// Until when everything has come in.
    since: Time,
}

const SECOND: u128 = 1_000_000_000;
/// The amount that the enforcers may round, for each hit: a millionth.
const GRAIN: u128 = SECOND;

// === impl Bucket ===

impl Bucket {
    /// It is `now`, and `rate` millionths a second came in until then, or until `end` if that was before.
    pub(crate) fn fill(&mut self, now: Time, end: Time, rate: u64) {
        let passed = now.min(end).since(self.since).as_nanos();
        self.level = self.level.saturating_add(passed.saturating_mul(rate.into()));
        self.since = self.since.max(now);
    }

    /// No more than `most` millionths are kept.
    pub(crate) fn limit(&mut self, most: u128) {
        self.level = self.level.min(most.saturating_mul(SECOND));
    }

    /// Takes so many units; nothing is left if there were fewer, which it says.
    pub(crate) fn take(&mut self, units: u64) -> bool {
        let cost = u128::from(units) * u128::from(Amount::MICROS_PER_UNIT) * SECOND;
        let enough = self.level + GRAIN >= cost;
        self.level = self.level.saturating_sub(cost);
        enough
    }
}

/// The amount that `rate` millionths a second bring in `time`, in millionths, rounded up.
pub(crate) fn brought(rate: u64, time: Duration) -> u128 {
    u128::from(rate).saturating_mul(time.as_nanos()).div_ceil(SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_can_be_taken_than_came_in_and_was_kept() {
        let mut bucket = Bucket::default();
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        bucket.fill(at(3), at(9), 1_500_000);
        bucket.limit(2_500_000);
        assert!(bucket.take(2) && !bucket.take(1), "a half is no unit");
        bucket.fill(at(4), at(9), 1_500_000);
        assert!(bucket.take(1) && !bucket.take(1));
        bucket.fill(at(9), at(4), 1_500_000);
        assert!(!bucket.take(1), "the lease had ended");
    }
}
