//! The least lease that would have let the last attempts through.
//!
//! A mean says nothing about twenty attempts at once: what they need is a bucket that holds twenty, and its depth is the
//! lease times the *burst*. So attempts are counted in windows of 1, 10, 100 and 1,000 ms. With at most N of them in a window
//! w, a lease of `N / (w + burst)` lets them through if the bucket was full, and one of `(N - 1) / w` however
//! full it was; the smaller of the two is enough, and the greatest over all windows is the peak. The most of each window is
//! kept for two to four seconds.
//!
//! ```
//! use lessor_client::internals::demand::{Attempts, Peak};
//! use lessor_proto::{Amount, Time};
//! use std::time::Duration;
//!
//! let mut peak = Peak::new(Duration::from_millis(50));
//! peak.count(Attempts { at: Time::ZERO, units: 20 });
//! let need = peak.need(Time::ZERO).as_f64();
//! assert!((390.0..393.0).contains(&need)); // 20 units in a millisecond and the burst
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::{Amount, Time};

/// The windows, shortest first.
const WINDOWS: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_millis(1000),
];
/// The most of a window is kept for once to twice as long.
const KEPT: Duration = Duration::from_secs(2);
/// The longest interval within the activity of a program: what comes after a longer one begins anew.
pub(super) const LONGEST_QUIET: Duration = Duration::from_millis(500);

/// Units that were attempted at about the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempts {
    /// When.
    pub at: Time,
    /// The number of units, granted or not.
    pub units: u64,
}

/// Counts attempts in windows.
#[derive(Clone, Debug)]
pub struct Peak {
    burst: Duration,
    /// The attempts of the longest window, oldest first.
    attempts: VecDeque<Attempts>,
    /// For each window, the number of attempts, counted from the oldest, that lie before it, and the units in it.
    windows: [Window; WINDOWS.len()],
    /// The maxima that are kept, of the present stretch of time and of the one before it.
    kept: [Most; 2],
    /// When the present stretch began.
    since: Time,
    /// When something was attempted last.
    last: Time,
}

#[derive(Clone, Copy, Default, Debug)]
struct Window {
    before: usize,
    units: u64,
}

/// The most of each window, what was claimed at least, and the longest interval between two attempts before it is quiet.
#[derive(Clone, Copy, Default, Debug)]
struct Most {
    units: [u64; WINDOWS.len()],
    claimed: Amount,
    interval: Duration,
}

// === impl Peak ===

impl Peak {
    /// Counts for a bucket that holds what comes in during `burst`.
    #[must_use]
    pub fn new(burst: Duration) -> Peak {
        Peak {
            burst,
            attempts: VecDeque::new(),
            windows: [Window::default(); WINDOWS.len()],
            kept: [Most::default(); 2],
            since: Time::ZERO,
            last: Time::ZERO,
        }
    }

    /// The bucket holds what comes in during `burst` from here on.
    pub fn set_burst(&mut self, burst: Duration) {
        self.burst = burst;
    }

    /// Learns of attempts, which come in the order of their times.
    pub fn count(&mut self, attempts: Attempts) {
        self.age(attempts.at);
        let interval = attempts.at.since(std::mem::replace(&mut self.last, attempts.at));
        if interval < LONGEST_QUIET {
            self.kept[0].interval = self.kept[0].interval.max(interval);
        }
        self.attempts.push_back(attempts);
        for (window, most) in self.windows.iter_mut().zip(&mut self.kept[0].units) {
            window.units = window.units.saturating_add(attempts.units);
            *most = (*most).max(window.units);
        }
    }

    /// At least so much is claimed, and that is kept as long as a peak is.
    pub fn claim(&mut self, now: Time, least: Amount) {
        self.age(now);
        self.kept[0].claimed = self.kept[0].claimed.max(least);
    }

    /// The least lease that would have let through all that is kept, or what was claimed.
    pub fn need(&mut self, now: Time) -> Amount {
        self.age(now);
        let claimed = self.kept.iter().map(|most| most.claimed).max().unwrap_or_default();
        let needs = WINDOWS.iter().enumerate().map(|(index, &window)| {
            let most = self.kept.iter().map(|most| most.units[index]).max().unwrap_or(0);
            self.needed(most, window)
        });
        Amount::from_f64(needs.fold(0.0, f64::max)).max(claimed)
    }

    /// Units attempted in the last `span`, of a second at most.
    #[must_use]
    pub fn last(&self, now: Time, span: Duration) -> u64 {
        let lately = self.attempts.iter().rev().take_while(|attempts| now.since(attempts.at) < span);
        lately.map(|attempts| attempts.units).sum()
    }

    /// The longest interval between two attempts of what is kept. Half a second without any is not one.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.kept.iter().map(|most| most.interval).max().unwrap_or_default()
    }

    /// Forgets what is kept.
    pub fn forget(&mut self) {
        self.kept = [Most::default(); 2];
    }

    fn needed(&self, units: u64, window: Duration) -> f64 {
        let (units, window, burst) = (units as f64, window.as_secs_f64(), self.burst.as_secs_f64());
        (units / (window + burst)).min((units - 1.0) / window).max(0.0)
    }

    /// Lets go of what lies before each window.
    fn age(&mut self, now: Time) {
        if now.since(self.since) >= KEPT {
            let (elapsed, stretch) = (now.since(self.since).as_nanos(), KEPT.as_nanos());
            let is_next = elapsed < stretch * 2;
            self.kept = [Most::default(), if is_next { self.kept[0] } else { Most::default() }];
            let begun = u64::try_from(elapsed % stretch).unwrap_or_default();
            self.since = Time::from_nanos(now.as_nanos() - begun);
        }
        for (window, &length) in self.windows.iter_mut().zip(&WINDOWS) {
            while let Some(attempts) = self.attempts.get(window.before)
                && now.since(attempts.at) >= length
            {
                window.units -= attempts.units;
                window.before += 1;
            }
        }
        let gone = self.windows[WINDOWS.len() - 1].before;
        self.attempts.drain(..gone);
        self.windows.iter_mut().for_each(|window| window.before -= gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn need(peak: &mut Peak, millis: u64) -> f64 {
        peak.need(at(millis)).as_f64()
    }

    fn close(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < wanted * 1e-3 + 1e-3, "{found}, and not {wanted}");
    }

    #[test]
    fn one_attempt_now_and_then_needs_nothing() {
        let mut peak = Peak::new(BURST);
        peak.count(Attempts { at: at(7), units: 1 });
        close(need(&mut peak, 8), 0.0);
    }

    #[test]
    fn what_comes_at_once_needs_a_deep_bucket() {
        let mut peak = Peak::new(BURST);
        peak.count(Attempts { at: at(3), units: 20 });
        close(need(&mut peak, 3), 20.0 / 0.051);
    }

    #[test]
    fn a_steady_load_needs_what_it_is() {
        let mut peak = Peak::new(BURST);
        (0..2_000).step_by(5).for_each(|millis| peak.count(Attempts { at: at(millis), units: 1 }));
        // 20 in 100 ms are 19 intervals, or a bucket that was full.
        close(need(&mut peak, 2_000), 200.0 / 1.05);
        assert_eq!(peak.last(at(1_995), Duration::from_millis(100)), 20);
    }

    #[test]
    fn a_peak_is_kept_for_two_to_four_seconds() {
        let mut peak = Peak::new(BURST);
        peak.count(Attempts { at: at(1_999), units: 20 });
        assert!(need(&mut peak, 3_998) > 390.0);
        close(need(&mut peak, 4_001), 0.0);
        peak.count(Attempts { at: at(4_002), units: 20 });
        assert!(need(&mut peak, 7_990) > 390.0);
        close(need(&mut peak, 8_002), 0.0);
    }

    #[test]
    fn what_is_claimed_is_kept_as_long() {
        let mut peak = Peak::new(BURST);
        peak.claim(at(10), Amount::from_units(500));
        close(need(&mut peak, 1_500), 500.0);
        close(need(&mut peak, 9_000), 0.0);
    }

    #[test]
    fn windows_are_counted_as_one_would_count_them() {
        let mut peak = Peak::new(BURST);
        let times: Vec<u64> = (0..400).map(|n| n * n % 997 + n * 3).collect();
        let mut sorted = times.clone();
        sorted.sort_unstable();
        for (index, &millis) in sorted.iter().enumerate() {
            peak.count(Attempts { at: at(millis), units: 1 });
            for (window, length) in peak.windows.iter().zip(WINDOWS) {
                let in_it = |&&other: &&u64| at(millis).since(at(other)) < length;
                assert_eq!(window.units, sorted[..=index].iter().filter(in_it).count() as u64);
            }
        }
    }
}
