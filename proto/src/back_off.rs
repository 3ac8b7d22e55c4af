//! Waits between tries of what failed: each twice as long as the one before, and at another moment than others wait for.
//!
//! The draw that spreads them comes from the caller, and so a simulation replays.
//!
//! ```
//! use lessor_proto::BackOff;
//! use std::time::Duration;
//!
//! let back_off = BackOff::new(Duration::from_millis(250), 16, 0.5);
//! let longest = Duration::from_secs(5);
//! assert_eq!(back_off.wait(0, longest, 1.0), Duration::from_millis(250));
//! assert_eq!(back_off.wait(2, longest, 0.0), Duration::from_millis(500)); // half of a second
//! assert_eq!(back_off.wait(9, longest, 1.0), longest);
//! ```

use std::time::Duration;

/// The length of waits after failures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BackOff {
    first: Duration,
    most_doublings: u32,
    spread: f64,
}

// === impl BackOff ===

impl BackOff {
    /// Waits of `first`, then of twice that and so on, up to `most_doublings` times, of which each is less by up to the part
    /// `spread`, from 0 to 1.
    #[must_use]
    pub const fn new(first: Duration, most_doublings: u32, spread: f64) -> BackOff {
        BackOff { first, most_doublings, spread }
    }

    /// The wait after so many doublings, at most `longest`; `draw`, from 0 to 1, is its place in the part over which it is spread,
    /// and 1 the end.
    #[must_use]
    pub fn wait(&self, doublings: u32, longest: Duration, draw: f64) -> Duration {
        let doublings = doublings.min(self.most_doublings).min(31);
        let whole = self.first.saturating_mul(1 << doublings).min(longest);
        whole.mul_f64(1.0 - self.spread + self.spread * draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_or_the_last_doubling() {
        let wait = |doublings, longest| {
            BackOff::new(Duration::from_secs(1), 4, 0.25).wait(doublings, Duration::from_secs(longest), 1.0)
        };
        let waits = |longest| (0..7).map(|doublings| wait(doublings, longest).as_secs()).collect::<Vec<_>>();
        assert_eq!(waits(5), [1, 2, 4, 5, 5, 5, 5]);
        assert_eq!(waits(1_000), [1, 2, 4, 8, 16, 16, 16]);
    }

    #[test]
    fn a_draw_places_a_wait_in_its_last_part() {
        let back_off = BackOff::new(Duration::from_secs(8), 0, 0.25);
        let waits = [0.0, 0.5, 1.0].map(|draw| back_off.wait(9, Duration::MAX, draw).as_secs());
        assert_eq!(waits, [6, 7, 8]);
    }
}
