//! A request of one domain: what policies allow is taken of the lease, all that is of use or nothing.

use std::cell::Cell;

use lessor_algorithms::tiers::{Ask, Domain};
use lessor_proto::Time;

use super::policies::Rule;
use super::reservation::{Cut, Grant, Reservation};
use super::store::Domains;
use crate::decision::{Decision, Ground};
use crate::denied::Denied;
use crate::limiter::Limiter;

/// The lease that hits are taken of, and what was taken of it for them already, by waiting in its queue.
#[derive(Debug)]
struct Purse<'a> {
    lease: &'a Limiter,
    paid: Cell<u32>,
}

// === impl Domains ===

impl Domains {
    /// Asks for `copies` hits of `domain`, and no fewer than `min`, which is taken for `copies` if it is more; makes those
    /// that are granted, and takes as much of `lease`. If nothing is granted, nothing has changed.
    pub fn request(&self, lease: &Limiter, domain: &str, copies: u32, min: u32, now: Time) -> Decision {
        self.request_paid(lease, 0, domain, Ask::between(min.min(copies), copies), now)
    }

    /// The same, where so many hits were taken of the lease already. What is not needed of them goes to who waits next.
    pub(super) fn request_paid(
        &self,
        lease: &Limiter,
        paid: u32,
        domain: &str,
        ask: Ask,
        now: Time,
    ) -> Decision {
        let purse = Purse { lease, paid: Cell::new(paid) };
        // The shard is locked until the end of this statement.
        let decision = decide(self.locked(domain).reserve(ask, now), &purse, now);
        purse.settle();
        decision
    }

    /// The answer that policies would give; the lease is not asked, and nothing changes.
    #[must_use]
    pub fn peek(&self, domain: &str, copies: u32, min: u32, now: Time) -> Decision {
        let ask = Ask::between(min.min(copies), copies);
        let all = |ground| Decision { granted: copies, ..Decision::free(ground) };
        let contract = match self.policies().map(|policies| policies.rule(domain)) {
            Some(Rule::Contract(contract)) => contract,
            Some(Rule::Unconfigured) => return all(Ground::Unconfigured),
            Some(Rule::Ignored) => return all(Ground::Ignored),
            Some(Rule::Refused) => return Decision::unconfigured(),
            None => return all(Ground::NoPolicies),
        };
        let hash = self.hash(domain);
        let mut shard = self.shard(hash);
        let all = self.all();
        let of = |history: &Domain| {
            let decision = Decision::of(&history.peek(&contract, all.global(), now.as_nanos(), ask));
            Decision { hits_in_second_by_all: all.hits(now).saturating_add(decision.granted), ..decision }
        };
        match shard.find(hash, domain) {
            None => of(&Domain::new()),
            Some(record) if *record.contract() == contract => of(&record.history),
            Some(record) => {
                let mut history = record.history.clone();
                history.swap(record.contract(), &contract, now.as_nanos());
                of(&history)
            }
        }
    }

    /// Settles a grant that turned out to cost `actual` hits instead of `granted`.
    ///
    /// More are a debt: later requests of the domain pay for it first, and are refused as long as something is
    /// owed; and the lease is [charged](Limiter::charge), which all domains feel until as much has come in. Fewer
    /// come back to the tiers, but not to the lease. Of a domain without policies nothing is remembered.
    pub fn settle(&self, lease: &Limiter, domain: &str, granted: u32, actual: u32, now: Time) {
        let hash = self.hash(domain);
        let mut shard = self.shard(hash);
        if let Some(record) = shard.find(hash, domain) {
            record.settle(now, granted, actual, &self.sync);
        }
        drop(shard);
        if actual > granted {
            lease.charge(actual - granted, now);
            self.subleases().charge(domain, actual - granted, now);
        }
    }
}

#[inline]
fn decide(reservation: Reservation<'_>, purse: &Purse<'_>, now: Time) -> Decision {
    let (least, wanted) = (reservation.least(), reservation.wanted());
    if wanted == 0 {
        return reservation.deny(None);
    }
    let (hits, is_degraded) = match purse.take_between(least, wanted, now) {
        Ok(hits) => (hits, false),
        Err(denied) if reservation.is_degraded(&denied) => (least, true),
        Err(denied) => return reservation.deny(Some(denied)),
    };
    if !reservation.take(hits) {
        return reservation.deny(None);
    }
    let cut = if hits < wanted { Cut::Lease } else { Cut::Policies };
    reservation.commit(Grant { hits, cut, is_degraded })
}

// === impl Purse ===

impl Purse<'_> {
    /// Takes what was paid for already if that is enough, and else as [`Limiter::try_acquire_between`].
    #[inline]
    fn take_between(&self, least: u32, most: u32, now: Time) -> Result<u32, Denied> {
        let paid = self.paid.get().min(most);
        if paid > 0 && paid >= least {
            self.paid.set(self.paid.get() - paid);
            self.lease.pass_on(paid, || now);
            return Ok(paid);
        }
        self.lease.try_acquire_between(least, most, || now)
    }

    /// Gives back what was paid for and not needed, to who waits next.
    fn settle(self) {
        if self.paid.get() > 0 {
            self.lease.give_back(self.paid.get());
        }
    }
}
