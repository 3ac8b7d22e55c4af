//! The pause before another try: longer each time, and of another length than that of others.
//!
//! Spread without dice: a hash of who tries and which attempt it is, which replays exactly.

use std::time::Duration;

use lessor_proto::BackOff;

/// Failures in a row of one thing that is tried, and how long to wait after the next.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Pace {
    failures: u32,
}

const FIRST: Duration = Duration::from_millis(100);
const BACK_OFF: BackOff = BackOff::new(FIRST, 16, 0.5);

// === impl Pace ===

impl Pace {
    /// Counts a failure, and returns the time to wait after it, at most `longest`.
    pub(crate) fn failed(&mut self, nonce: u64, longest: Duration) -> Duration {
        self.failures = self.failures.saturating_add(1);
        BACK_OFF.wait(self.failures - 1, longest, fraction(nonce, self.failures.into()))
    }

    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// From 0 up to but not including 1.
pub(super) fn fraction(nonce: u64, attempt: u64) -> f64 {
    // The upper 53 bits fill a double exactly.
    (mix(nonce ^ mix(attempt)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// One step of SplitMix64.
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest_and_begin_anew() {
        let (mut pace, longest) = (Pace::default(), Duration::from_secs(5));
        let waits: Vec<Duration> = (0..40).map(|_| pace.failed(7, longest)).collect();
        assert!(waits[0] >= FIRST / 2 && waits[0] < FIRST, "{waits:?}");
        assert!(waits.iter().skip(6).all(|&wait| wait >= longest / 2 && wait <= longest), "{waits:?}");
        pace.succeeded();
        assert_eq!(pace.failed(7, longest), waits[0]);
    }
}
