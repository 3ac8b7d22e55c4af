//! The hits of all domains of a resource in the last second.

use super::pool::Pool;
use super::window::Measure;

/// The hits of the last second by all domains, for the global limit and for the answers.
///
/// One for each resource, whatever the number of domains.
#[derive(Clone, Debug)]
pub struct Global {
    pool: Pool,
    measure: Measure,
    last: u64,
}

// === impl Global ===

impl Global {
    /// Counts exactly: remembers every time of the last second at which there was a hit.
    #[must_use]
    pub const fn exact() -> Global {
        Global { pool: Pool::new(), measure: Measure::SECOND, last: 0 }
    }

    /// Divides the second into so many slices, of which there is at least one; a hit is forgotten up to one slice too early.
    #[must_use]
    pub fn sliced(slices: u16) -> Global {
        let measure = Measure::slices_of_a_second(u64::from(slices.max(1)));
        Global { pool: Pool::new(), measure, last: 0 }
    }

    /// Hits of the last second.
    #[must_use]
    #[inline]
    pub fn hits(&self, now: u64) -> u32 {
        self.measure.used(&self.pool, 0, now.max(self.last))
    }

    /// Counts hits of `now`.
    pub fn record(&mut self, now: u64, hits: u32) {
        self.last = self.last.max(now);
        if hits > 0 {
            self.pool.open(1);
            self.measure.record(&mut self.pool, 0, 0, self.last, hits);
        }
    }

    /// The first time, not before `from`, at which `hits` fit under `limit`; `None` if they never do.
    pub(super) fn grants_at(&self, limit: Option<u32>, from: u64, hits: u32) -> Option<u64> {
        let Some(limit) = limit else { return Some(from) };
        Some(self.measure.falls_to(&self.pool, 0, from, limit.checked_sub(hits)?))
    }
}

impl Default for Global {
    /// In a hundred slices.
    fn default() -> Global {
        Global::sliced(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn hits_count_for_a_second_and_not_longer() {
        let mut global = Global::exact();
        global.record(SECOND, 2);
        global.record(SECOND + 5, 3);
        assert_eq!([0, 1, 5, 6].map(|nanos| global.hits(2 * SECOND + nanos)), [5, 3, 3, 0]);
    }

    #[test]
    fn times_that_go_backwards_count_as_the_last() {
        let mut global = Global::exact();
        global.record(5 * SECOND, 1);
        global.record(2 * SECOND, 1);
        assert_eq!([5, 6, 7].map(|second| global.hits(second * SECOND)), [2, 2, 0]);
    }

    #[test]
    fn slices_forget_up_to_a_slice_too_early() {
        let mut global = Global::sliced(10);
        global.record(SECOND + 99_999_999, 1);
        assert_eq!([0, 1].map(|nanos| global.hits(2 * SECOND + nanos)), [1, 0]);
    }
}
