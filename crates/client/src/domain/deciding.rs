//! What a domain is answered: policies are asked first, then the leases, and then all are told, or nothing has changed.

use std::cell::Cell;

use lessor_algorithms::tiers::{Ask, Plan};
use lessor_proto::Time;

use super::decision::{Bound, Decision, Ground};
use super::second::All;
use super::shard::Record;
use super::store::{Degraded, Domains};
use super::strict::Gate;
use crate::limiter::{Denied, Limiter};

/// The answer of policies to a request, before anything is done.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// Hits that are to be had if leases have them; 0 if policies refuse.
    pub(super) wanted: u32,
    /// The answer of the lease of the domain, if it has one.
    pub(super) gate: Gate,
    /// Hits that it has of those that are wanted.
    pub(super) most: u32,
    pub(super) ground: Ground,
}

/// The lease that hits are taken of, and what was taken of it for them already, by waiting in its queue.
#[derive(Debug)]
pub(super) struct Purse<'a> {
    lease: &'a Limiter,
    paid: Cell<u32>,
}

// === impl Purse ===

impl<'a> Purse<'a> {
    pub(super) const fn new(lease: &'a Limiter, paid: u32) -> Purse<'a> {
        Purse { lease, paid: Cell::new(paid) }
    }

    /// Takes what was paid for already if that is enough, and else as [`Limiter::try_acquire_between`].
    fn take_between(&self, least: u32, most: u32, now: Time) -> Result<u32, Denied> {
        let paid = self.paid.get().min(most);
        if paid > 0 && paid >= least {
            self.paid.set(self.paid.get() - paid);
            return Ok(paid);
        }
        self.lease.try_acquire_between(least, most, || now)
    }

    /// Gives back what was paid for and not needed, to who waits next.
    pub(super) fn settle(self) {
        if self.paid.get() > 0 {
            self.lease.give_back(self.paid.get());
        }
    }
}

// === impl Domains ===

impl Domains {
    /// All or nothing: policies are asked first, then the lease, then both are told.
    pub(super) fn decide(&self, lease: &Purse<'_>, record: &mut Record, ask: Ask, now: Time) -> Decision {
        let mut all = self.all();
        let decision = self.decide_beside(&mut all, lease, record, ask, now);
        Decision { hits_in_second_by_all: all.hits(now), others: record.others(), ..decision }
    }

    fn decide_beside(
        &self,
        all: &mut All<'_>,
        lease: &Purse<'_>,
        record: &mut Record,
        ask: Ask,
        now: Time,
    ) -> Decision {
        let planned = self.plan(all, record, ask, now);
        if planned.wanted == 0 {
            return self.refuse(all, record, &planned);
        }
        let least = ask.min().max(1);
        if planned.most < least {
            return planned.gated(least, now);
        }
        let (granted, ground) = match lease.take_between(least, planned.most, now) {
            Ok(granted) => (granted, planned.ground),
            Err(_) if planned.ground == Ground::Unheard => return self.refuse(all, record, &planned),
            Err(denied) if self.is_degraded(denied) => (least, Ground::Degraded),
            Err(denied) => return planned.refused(denied, now),
        };
        match planned.gate.take(granted, planned.wanted, now) {
            true => self.make(all, record, &planned, granted, ground),
            false => planned.gated(least, now),
        }
    }

    /// The answer of policies; nothing is done.
    pub(super) fn plan(&self, all: &All<'_>, record: &Record, ask: Ask, now: Time) -> Planned {
        let plan = record.history.plan(&record.contract, all.global(), now.as_nanos(), ask);
        let allowed = plan.decision().granted;
        let is_overruled = self.is_killed() && allowed < ask.copies();
        if allowed == 0 && !is_overruled && self.goes_unheard(record, ask, &plan) {
            let least = ask.min().max(1);
            return Planned { plan, wanted: least, gate: Gate::Open, most: least, ground: Ground::Unheard };
        }
        let (wanted, ground) = match is_overruled {
            true => (ask.copies(), Ground::KillSwitch),
            false => (allowed, Ground::Policies),
        };
        let gate = match wanted == 0 || self.is_killed() {
            true => Gate::Open,
            false => self.subleases().gate(record.name.as_str(), &record.contract, wanted, now),
        };
        let most = gate.most(wanted);
        Planned { plan, wanted, gate, most, ground }
    }

    /// Whether the least is granted although the lease says so.
    pub(super) fn is_degraded(&self, denied: Denied) -> bool {
        denied == Denied::NothingLeased && self.options().degraded == Degraded::GrantLeast
    }

    /// Makes the hits of a request of which `granted` were to be had: the one place where they are made.
    pub(super) fn make(
        &self,
        all: &mut All<'_>,
        record: &mut Record,
        planned: &Planned,
        granted: u32,
        ground: Ground,
    ) -> Decision {
        let mut plan = planned.plan;
        if ground == Ground::Unheard {
            self.make_unheard(record, &plan, granted);
            let decision = Decision::of(plan.decision());
            return Decision { granted, ground, retry_at: None, ..decision };
        }
        if granted < plan.decision().granted {
            plan = record.history.plan(&record.contract, all.global(), plan.now(), Ask::exactly(granted));
        }
        self.commit(record, &plan);
        // What policies did not allow is no part of the history, and others are not refused for it.
        all.record(&plan);
        let decision = Decision::of(plan.decision());
        let bound = match granted < planned.wanted {
            true if granted == planned.most => Some(Bound::Sublease),
            true => Some(Bound::Lease),
            false => decision.bound,
        };
        Decision { granted, ground, bound, retry_at: None, ..decision }
    }

    /// Policies grant nothing: what is owed is paid as far as they allow, and nothing else changes. The one place where they
    /// refuse.
    pub(super) fn refuse(&self, all: &mut All<'_>, record: &mut Record, planned: &Planned) -> Decision {
        self.commit(record, &planned.plan);
        all.record(&planned.plan);
        Decision::of(planned.plan.decision())
    }

    /// No policies: the lease alone decides.
    pub(super) fn free(&self, lease: &Purse<'_>, ground: Ground, ask: Ask, now: Time) -> Decision {
        let decision = Decision::free(ground);
        if ask.copies() == 0 {
            return decision;
        }
        match lease.take_between(ask.min().max(1), ask.copies(), now) {
            Ok(granted) => {
                let bound = (granted < ask.copies()).then_some(Bound::Lease);
                Decision { granted, bound, ..decision }
            }
            Err(denied) if self.is_degraded(denied) => {
                let granted = ask.min().max(1);
                let bound = (granted < ask.copies()).then_some(Bound::Lease);
                Decision { granted, bound, ground: Ground::Degraded, ..decision }
            }
            Err(denied) => refused(decision, denied, now),
        }
    }
}

// === impl Planned ===

impl Planned {
    /// The lease of the domain has less than the `least` that is of use, and nothing has changed.
    pub(super) fn gated(&self, least: u32, now: Time) -> Decision {
        self.gate.refused(Decision::of(self.plan.decision()), least, self.wanted, now)
    }

    /// The lease of the resource is too little, and nothing has changed.
    pub(super) fn refused(&self, denied: Denied, now: Time) -> Decision {
        self.gate.give_up(self.wanted);
        refused(Decision::of(self.plan.decision()), denied, now)
    }
}

/// The lease is too little, and nothing has changed.
pub(super) fn refused(decision: Decision, denied: Denied, now: Time) -> Decision {
    let retry_at = denied.retry_after().map(|after| now + after);
    let bound = match denied {
        Denied::AboveBurst { burst, .. } => Bound::Burst { most: burst },
        Denied::NothingLeased | Denied::Spent { .. } => Bound::Lease,
    };
    Decision { granted: 0, burst: false, bound: Some(bound), retry_at, ..decision }
}
