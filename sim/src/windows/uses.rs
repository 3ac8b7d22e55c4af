//! The uses that were made in a measurement of windows, counted in every way that its report needs.

use std::time::Duration;

use lessor_proto::Time;

use super::judge::WindowJudge;

/// All uses so far.
pub(super) struct UseCounts {
    judge: WindowJudge,
    /// The uses in each window one behind the other.
    full: Vec<u64>,
    /// The uses of the last windows, in order.
    last: Vec<(Time, u64)>,
}

// === impl UseCounts ===

impl UseCounts {
    /// None, where so many windows of that length are counted.
    pub(super) fn new(window: Duration, windows: usize) -> UseCounts {
        UseCounts { judge: WindowJudge::new(window), full: vec![0; windows], last: Vec::new() }
    }

    /// `granted` more at `now`, among the last if `is_last`. Returns those in the window that ends now.
    pub(super) fn hear(&mut self, now: Time, granted: u64, is_last: bool) -> u64 {
        if is_last {
            self.last.push((now, granted));
        }
        self.judge.hear(now, granted)
    }

    /// Counts `granted` in the window `place`.
    pub(super) fn count(&mut self, place: u128, granted: u64) {
        if let Some(full) = usize::try_from(place).ok().and_then(|place| self.full.get_mut(place)) {
            *full += granted;
        }
    }

    /// The most in any window.
    pub(super) fn most(&self) -> u64 {
        self.judge.most()
    }

    /// The part of `limit` that was used, in the mean of all windows.
    pub(super) fn share(&self, limit: u32) -> f64 {
        let uses: u64 = self.full.iter().sum();
        uses as f64 / (f64::from(limit) * self.full.len().max(1) as f64)
    }

    /// The least in any of the windows one behind the other.
    pub(super) fn least(&self) -> u64 {
        self.full.iter().copied().min().unwrap_or_default()
    }

    /// The least of the last uses in any time of that length before `end`.
    pub(super) fn least_of_last(&self, length: Duration, end: Time) -> u64 {
        least_in(&self.last, length, end)
    }
}

/// The least uses in any time of that length before `end`, from the first of them on.
fn least_in(uses: &[(Time, u64)], length: Duration, end: Time) -> u64 {
    // The least begins just after a use.
    let begun = (1..uses.len()).take_while(|&first| uses[first - 1].0 + length < end);
    let count = |first: usize| {
        let until = uses[first - 1].0 + length;
        uses[first..].iter().take_while(|&&(at, _)| at <= until).map(|&(_, count)| count).sum()
    };
    begun.map(count).min().unwrap_or_default()
}
