//! The cover of a holding: the amounts that its grantor counts for it, each until its time.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::Kind;

/// The amounts that count, the greatest first, each of which lasts longer than all greater ones.
#[derive(Clone, Default, Debug)]
pub(super) struct Cover(Vec<CountedAmount>);

/// An amount that is counted until `end`, by our clock.
#[derive(Clone, Debug)]
struct CountedAmount {
    amount: Amount,
    end: Time,
    /// The token of the grant that it is counted for.
    token: Arc<[u8]>,
    /// The kind as which it was granted.
    kind: Kind,
}

// === impl Cover ===

impl Cover {
    /// The amounts that count for others who held it before, each until its time.
    pub(super) fn inherited(counted: Vec<(Amount, Time)>, token: &Arc<[u8]>, kind: Kind) -> Cover {
        let part = |(amount, end)| CountedAmount { amount, end, token: Arc::clone(token), kind };
        let mut cover = Cover(counted.into_iter().map(part).collect());
        cover.prune();
        cover
    }

    /// Whether anything counts that has not ended.
    pub(super) fn counts(&self, now: Time) -> bool {
        self.0.iter().any(|part| now < part.end && part.amount > Amount::ZERO)
    }

    /// Whether units of a gauge count that have not ended.
    pub(super) fn counts_units(&self, now: Time) -> bool {
        let counts = |part: &CountedAmount| now < part.end && part.amount > Amount::ZERO;
        self.0.iter().any(|part| part.kind == Kind::Gauge && counts(part))
    }

    /// An amount that is granted as a resource of `kind`, until `end`.
    pub(super) fn add(&mut self, now: Time, (amount, end): (Amount, Time), token: Arc<[u8]>, kind: Kind) {
        self.expire(now);
        // Units that were recalled may be used as long as the lease is renewed, also when it is held as a rate by now.
        let units = self.0.iter_mut().filter(|part| part.kind == Kind::Gauge);
        units.for_each(|before| before.end = before.end.max(end));
        // There is nearly always one, of each of millions of leases.
        self.0.reserve_exact(1);
        self.0.push(CountedAmount { amount, end, token, kind });
        self.prune();
    }

    /// The greatest amount that counts, with the token for it. No more than `promise` counts from here on.
    pub(super) fn promise(&mut self, now: Time, promise: Amount) -> Option<(Amount, Arc<[u8]>)> {
        self.expire(now);
        let first = self.0.first().map(|part| (part.amount, Arc::clone(&part.token)));
        self.0.iter_mut().for_each(|part| part.amount = part.amount.min(promise));
        self.prune();
        first
    }

    /// When the last of it ends.
    pub(super) fn end(&self) -> Option<Time> {
        self.0.iter().map(|part| part.end).max()
    }

    /// The time for which the greatest amount counts.
    pub(super) fn greatest_lasts(&self, now: Time) -> Duration {
        let greatest = self.0.iter().find(|part| now < part.end);
        greatest.map_or(Duration::ZERO, |part| part.end.since(now))
    }

    /// Brings all ends forward by time that passed unseen.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        self.0.iter_mut().for_each(|part| part.end = part.end.earlier(lost));
    }

    fn expire(&mut self, now: Time) {
        self.0.retain(|part| now < part.end);
    }

    /// Forgets what something as large outlasts.
    fn prune(&mut self) {
        let mut larger = None;
        self.0.sort_by_key(|part| Reverse((part.amount, part.end)));
        self.0.retain(|part| {
            let adds = larger.is_none_or(|end| end < part.end);
            larger = larger.max(Some(part.end));
            adds
        });
    }
}
