//! Units that are missing in a window: those that were refused lately, and since when some are.

use std::time::Duration;

use lessor_proto::Time;

/// The time for which refused units are remembered.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The units that are missing.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// The units that were refused lately, to those who did not wait.
    refused: u32,
    /// Since when something is missing.
    pub(super) since: Option<Time>,
    /// When something was last refused.
    last: Time,
}

// === impl Missing ===

impl Missing {
    /// `n` units were refused.
    pub(super) fn refuse(&mut self, now: Time, n: u32) {
        self.refused = self.refused.saturating_add(n);
        self.begin(now);
        self.last = now;
    }

    /// Something is missing, if it was not before.
    pub(super) fn begin(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// `n` units were granted, while some are waited for or not.
    pub(super) fn grant(&mut self, n: u32, is_awaited: bool) {
        self.refused = self.refused.saturating_sub(n);
        if self.refused == 0 && !is_awaited {
            self.since = None;
        }
    }

    /// The units that were refused lately.
    pub(super) fn units(&self) -> u32 {
        self.refused
    }

    /// Forgets those that were refused too long ago; `is_awaited` are some that are not.
    pub(super) fn forget_old(&mut self, now: Time, is_awaited: bool) {
        if now.since(self.last) >= REMEMBERED {
            self.refused = 0;
        }
        if !is_awaited && self.refused == 0 {
            self.since = None;
        }
    }

    /// When those that were refused are forgotten.
    pub(super) fn forget_at(&self) -> Time {
        if self.refused > 0 { self.last + REMEMBERED } else { Time::MAX }
    }
}
