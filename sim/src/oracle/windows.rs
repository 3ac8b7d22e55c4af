//! The uses of limits on windows, of all holders together and also of those that are gone: in no window, whenever it began, more than
//! the limit.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::{Facts, Oracle};

/// The uses of a resource that count.
#[derive(Clone, Default, Debug)]
pub(super) struct UsesMade {
    made: VecDeque<(Time, u64)>,
    /// The sum of them.
    uses: u64,
}

// === impl Oracle ===

impl Oracle {
    /// Checks that the window which ends now has no more uses than the limit, when `made` more are made at this moment. Each is
    /// counted for the window in real time, whatever becomes of the process that made it and whatever its clock shows.
    pub(crate) fn watch_window(&mut self, facts: &Facts<'_>, resource: u16, made: u64) {
        let (index, now) = (usize::from(resource), facts.now);
        let found = &facts.resources[index];
        let Some(window) = found.window.filter(|_| found.policy.is_bounded()) else { return };
        let limit = self.limits[index].at(now);
        let uses = self.windows[index].count(now, made, window);
        if uses.saturating_mul(Amount::MICROS_PER_UNIT) > limit {
            let limit = Amount::from_micros(limit);
            self.fail(37, || format!("{uses} uses of r{resource} in the {window:?} to now, of {limit}"));
        }
    }
}

// === impl UsesMade ===

impl UsesMade {
    /// Adds `made` uses of `now`, and returns the uses in the window that ends with them.
    fn count(&mut self, now: Time, made: u64, window: Duration) -> u64 {
        self.made.push_back((now, made));
        self.uses += made;
        while let Some(&(at, uses)) = self.made.front()
            && now.since(at) >= window
        {
            self.uses -= uses;
            self.made.pop_front();
        }
        self.uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_count_until_the_window_has_passed() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let mut made = UsesMade::default();
        let counted = [(0, 2), (999, 3), (1_000, 1), (1_500, 1), (1_999, 1), (5_000, 4)]
            .map(|(millis, uses)| made.count(at(millis), uses, Duration::from_secs(1)));
        assert_eq!(counted, [2, 5, 4, 5, 3, 4]);
    }
}
