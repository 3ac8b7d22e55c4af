//! The judge of a window: it knows when each use was made, in real time, and counts those in every window.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::Time;

/// The uses of a window that passes, by all holders in all their lives.
#[derive(Clone, Debug)]
pub struct WindowJudge {
    window: Duration,
    /// Those of the window that ends now, oldest first.
    uses: VecDeque<(Time, u64)>,
    count: u64,
    /// The most that there were.
    most: u64,
}

// === impl WindowJudge ===

impl WindowJudge {
    /// One of a window, in which nothing was used.
    #[must_use]
    pub fn new(window: Duration) -> WindowJudge {
        WindowJudge { window, uses: VecDeque::new(), count: 0, most: 0 }
    }

    /// `uses` were made at `now`. Returns how many there were in the window that ends with these.
    pub fn hear(&mut self, now: Time, uses: u64) -> u64 {
        self.uses.push_back((now, uses));
        self.count += uses;
        // Those of just a window ago are in no window with these.
        while let Some(&(at, gone)) = self.uses.front()
            && now >= at + self.window
        {
            self.count -= gone;
            self.uses.pop_front();
        }
        self.most = self.most.max(self.count);
        self.count
    }

    /// The most in any window so far.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_count_in_every_window_and_not_at_both_of_its_ends() {
        let mut judge = WindowJudge::new(Duration::from_secs(10));
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let counts = [(0, 2), (4, 3), (9, 1), (10, 1), (13, 1), (14, 1)];
        assert_eq!(counts.map(|(second, uses)| judge.hear(at(second), uses)), [2, 5, 6, 5, 6, 4]);
        assert_eq!(judge.most(), 6);
    }
}
