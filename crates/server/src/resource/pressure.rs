//! The pressure on a resource: how far what there is of it suffices for what is wanted, and for how long it has not.

use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::Resource;

/// The pressure on a resource at one moment.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct Pressure {
    /// The amount that holders miss of their shares, in units a second or units: at least so much.
    pub short: f64,
    /// The amount that is free to be handed out; absent where there is no limit.
    pub headroom: Option<f64>,
    /// The share of one client of the greatest priority that occurs, if it wants so much; without limit where all have what
    /// they want, and absent where shares do not follow from a level.
    pub level_top: Option<f64>,
    /// The same of the least priority.
    pub level_bottom: Option<f64>,
    /// The time for which nothing was free and more was wanted, in seconds, as was seen about once a second; less often where
    /// there are more than 10,000 resources.
    pub saturated_seconds: f64,
}

/// The time for which a resource was saturated.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Saturation {
    /// When it was seen to be so last; absent: it is not.
    seen: Option<Time>,
    /// All of that time.
    time: Duration,
}

/// The place of a resource among those that are shown where not all are: a greater one is shown first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Prominence {
    /// More is out than may be.
    is_alarming: bool,
    /// It is no lease of a domain.
    is_whole: bool,
    holders: usize,
    /// The amount charged to them, in millionths.
    lent: u128,
}

// === impl Saturation ===

impl Saturation {
    /// At `now` the resource is seen to be saturated, or not.
    fn see(&mut self, now: Time, is_saturated: bool) {
        self.time += self.seen.map_or(Duration::ZERO, |seen| now.since(seen));
        self.seen = is_saturated.then_some(now);
    }
}

// === impl Resource ===

impl Resource {
    /// The pressure on it.
    pub(crate) fn pressure(&self) -> Pressure {
        let level = |priority: Option<i64>| priority.and_then(|priority| self.level(priority));
        Pressure {
            short: self.short().as_f64(),
            headroom: self.ledger.limit().map(|_| self.ledger.headroom().as_f64()),
            level_top: level(self.holders.shares().priorities().max()),
            level_bottom: level(self.holders.shares().priorities().min()),
            saturated_seconds: self.saturation.time.as_secs_f64(),
        }
    }

    /// Looks whether it is saturated.
    pub(crate) fn look_at_pressure(&mut self, now: Time) {
        let is_full = self.ledger.limit().is_some() && self.ledger.headroom() < self.terms.grain();
        let lent = Amount::from_f64(self.ledger.lent() as f64 / Amount::MICROS_PER_UNIT as f64);
        let wants = Amount::from_f64(self.holders.shares().wants());
        self.saturation.see(now, is_full && wants.saturating_sub(lent) >= self.terms.grain());
    }

    /// The amount that holders miss of their shares. Of those who listen each is known who is short; of all together, that
    /// what is due to them is more than they have. Both may be less than what is missing, and neither is more.
    fn short(&self) -> Amount {
        let listed = self.pusher.shortage().sum() as f64 / Amount::MICROS_PER_UNIT as f64;
        let due = self.ledger.limit().map_or(0.0, |limit| limit.as_f64().min(self.holders.shares().wants()));
        let missing = due - self.ledger.lent() as f64 / Amount::MICROS_PER_UNIT as f64;
        let missing = if self.terms.is_whole() { missing.floor() } else { missing };
        let missing = Amount::from_f64(listed.max(missing).max(0.0));
        if missing >= self.terms.grain() { missing } else { Amount::ZERO }
    }

    /// The number of its holders.
    pub(crate) fn holders_in_all(&self) -> usize {
        self.holders.children().len()
    }

    /// Its place among those that are shown.
    pub(crate) fn prominence(&self) -> Prominence {
        Prominence {
            is_alarming: self.ledger.overcommitment() > Amount::ZERO,
            is_whole: self.terms.part.is_none(),
            holders: self.holders.children().len(),
            lent: self.ledger.lent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_one_look_that_finds_it_saturated_to_the_next() {
        let (mut saturation, at) =
            (Saturation::default(), |seconds| Time::ZERO + Duration::from_secs(seconds));
        for (second, is_saturated) in [(1, false), (2, true), (3, true), (5, false), (9, false), (10, true)] {
            saturation.see(at(second), is_saturated);
        }
        assert_eq!(saturation.time, Duration::from_secs(3));
    }
}
