//! A second limit that is tried beside a limiter: another limiter, of which is asked what this one has granted.

use lessor_proto::Time;

use super::{Denied, Limiter};
use crate::allowance::Allowance;
use crate::second_limit::SecondUsage;

impl Limiter {
    /// Tries a second limit from here on, which allows so much; absent: none. What this one grants is asked of that as well,
    /// [counted](Limiter::usage_beside), and granted whatever it says.
    pub fn try_beside(&self, now: Time, allowance: Option<Allowance>) {
        match allowance {
            Some(allowance) => self.second.begin(|| self.alike(), |second| second.allow(now, allowance)),
            None => self.second.end(|second| second.allow(now, Allowance::NOTHING)),
        }
    }

    /// The units that were asked of the second limit, and that it would have refused.
    #[must_use]
    pub fn usage_beside(&self) -> SecondUsage {
        self.second.usage()
    }

    /// Asks the second limit, if one is tried, for `n` units that were granted.
    #[inline]
    pub(crate) fn pass_on(&self, n: u32, now: impl Fn() -> Time) {
        if let Some(second) = self.second.tried() {
            self.second.count(n, !second.follow(n, now()));
        }
    }

    /// One that saves up as much.
    fn alike(&self) -> Limiter {
        Limiter::saving(self.lock().burst())
    }

    /// Takes `n` units that were granted by another limiter. Returns whether they are there. Of more than can be saved up, what
    /// can be has to be there, and the rest is owed: whoever was granted them has waited for them.
    #[inline(never)]
    fn follow(&self, n: u32, now: Time) -> bool {
        if self.shards.spend(n) {
            return true;
        }
        match self.draw(n, || now) {
            Err(Denied::AboveBurst { burst: burst @ 1.., .. }) => {
                let most = u32::try_from(burst).unwrap_or(u32::MAX).min(n);
                let is_there = self.draw(most, || now).is_ok();
                if is_there {
                    self.charge(n - most, now);
                }
                is_there
            }
            drawn => drawn.is_ok(),
        }
    }
}
