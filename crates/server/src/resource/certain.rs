//! Certain claims: what those below a node have shown to have from earlier leaders of it, and for how long the node above
//! counts that for certain.
//!
//! A leader of a node that has just begun shows this to a successor of the node above. What it may show is less than what
//! may be in use below, which it counts carefully, until the ghost ends: a lease that has ended in the books of the node
//! above has been granted to others, and a claim for it would be taken out of what those have.
//!
//! A lease below ends before that of its node, so what a holder may still use is counted above. It says how long that is;
//! it said so after it heard of this leader, so the time counts from the beginning of the epoch at the latest.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::message::Has;
use lessor_proto::{Amount, Time};

use super::{CallContext, Resource};

/// Ends are told apart as finely as in so many parts of a lease: few parts are inherited, however many claim.
const PARTS: u32 = 16;
/// The shortest part, in nanoseconds.
const SHORTEST: u64 = 1_000_000;

/// Amounts that are counted above, by when that ends.
#[derive(Clone, Default, Debug)]
pub(super) struct Certain {
    ends: BTreeMap<Time, Amount>,
}

// === impl Certain ===

impl Certain {
    pub(super) fn add(&mut self, end: Time, amount: Amount, grain: Duration) {
        let grain = u64::try_from(grain.as_nanos()).unwrap_or(u64::MAX).max(SHORTEST);
        let end = Time::from_nanos(end.as_nanos() / grain * grain);
        let sum = self.ends.entry(end).or_default();
        *sum = sum.saturating_add(amount);
    }

    /// The amounts, `most` at the most, of which each counts until its time: the larger, the sooner.
    pub(super) fn parts(&self, now: Time, most: Amount) -> Vec<(Amount, Time)> {
        let lasting = self.ends.range(now..).rev();
        let summed = lasting.scan(Amount::ZERO, |sum, (&end, &amount)| {
            *sum = sum.saturating_add(amount);
            Some(((*sum).min(most), end))
        });
        summed.collect()
    }
}

// === impl Resource ===

impl Resource {
    /// A holder has claimed `amount` by what it shows.
    pub(super) fn note_certain(&mut self, amount: Amount, has: &Has, cx: CallContext<'_>) {
        let Some(lasts) = has.lasts else { return };
        let longest = self.terms.lease_length.saturating_mul(2);
        let end = cx.config.drift.least_end(cx.since, lasts.counts.min(longest));
        self.claims.count_above(end, amount, self.terms.lease_length / PARTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_larger_an_amount_the_sooner_it_ends() {
        let mut certain = Certain::default();
        let grain = Duration::from_secs(1);
        let units = Amount::from_units;
        certain.add(at(9), units(1), grain);
        certain.add(at(5) + Duration::from_millis(999), units(10), grain);
        certain.add(at(5), units(5), grain);
        certain.add(at(7), units(100), grain);
        let all = certain.parts(at(0), units(1_000));
        assert_eq!(all, [(units(1), at(9)), (units(101), at(7)), (units(116), at(5))]);
        let later = certain.parts(at(6), units(50));
        assert_eq!(later, [(units(1), at(9)), (units(50), at(7))]);
        assert!(certain.parts(at(10), units(50)).is_empty());
    }
}
