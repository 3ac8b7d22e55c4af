//! A second limit that is tried beside a gauge: another gauge, of which is asked what this one has granted, for as long.

use lessor_proto::Time;

use super::{Permit, Semaphore};
use crate::allowance::Allowance;
use crate::second_limit::SecondUsage;

impl Semaphore {
    /// Tries a second limit from here on, which allows so much; absent: none. What this one grants is asked of that as well,
    /// [counted](Semaphore::usage_beside), and granted whatever it says.
    pub fn try_beside(&self, now: Time, allowance: Option<Allowance>) {
        match allowance {
            Some(allowance) => {
                self.inner.second.begin(Semaphore::default, |second| second.allow(now, allowance));
            }
            None => self.inner.second.end(|second| second.allow(now, Allowance::NOTHING)),
        }
    }

    /// The units that were asked of the second limit, and that it would have refused.
    #[must_use]
    pub fn usage_beside(&self) -> SecondUsage {
        self.inner.second.usage()
    }

    /// Units of the second limit that are out.
    #[must_use]
    pub fn in_use_beside(&self) -> u32 {
        self.inner.second.last().map_or(0, Semaphore::in_use)
    }

    /// A permit for `n` units that were granted by another gauge, if they are there.
    #[inline(never)]
    fn follow(&self, n: u32, now: Time) -> Option<Box<Permit>> {
        self.inner.take(n, n, now).ok().map(|taken| Box::new(self.permit(taken)))
    }
}

impl Permit {
    /// Asks the second limit, if one is tried, for these units.
    #[inline]
    pub(crate) fn pass_on(&mut self, now: impl Fn() -> Time) {
        let units = self.units();
        if let Some(second) = self.inner.second.tried()
            && units > 0
        {
            self.beside = second.follow(units, now());
            self.inner.second.count(units, self.beside.is_none());
        }
    }
}
