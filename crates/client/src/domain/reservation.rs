//! The one decision on the hits of a domain: reserved, then leased, then committed once; or nothing has changed.
//!
//! A request of one domain and one of several things take the same steps, under the same locks in the same order:
//! 1. [`Domains::locked`] locks the shard of the domain.
//! 2. [`LockedDomain::reserve`] asks the policies, and the lease that the domain has for itself, what they allow.
//! 3. Whoever asks takes so much of the lease of the resource, and of all else that was asked for together.
//! 4. [`Reservation::take`] takes it of the lease of the domain, and [`Reservation::commit`] makes the hits. If any of that
//!    cannot be had, [`Reservation::deny`] says why.

use std::sync::MutexGuard;

use lessor_algorithms::tiers::{self, Ask, Plan};
use lessor_proto::Time;

use super::counts::DomainCounts;
use super::lookup::Lookup;
use super::record::Record;
use super::rules::Scope;
use super::second::All;
use super::shard::Shard;
use super::store::{Degraded, Domains};
use super::strict::Gate;
use crate::decision::{Bound, Decision, Ground};
use crate::denied::Denied;

/// The shard of a domain, under its lock.
///
/// Whoever asks several domains locks them, and then makes their reservations, in the order of the
/// [addresses](Domains::address) of their resources, and locks limiters after all of them. Who asks one takes the same
/// locks in the same order, so nobody waits for one who waits for him.
#[derive(Debug)]
pub(crate) struct LockedDomain<'a> {
    domains: &'a Domains,
    domain: &'a str,
    hash: u64,
    shard: MutexGuard<'a, Shard>,
}

/// The hits that a domain may have, before anything is done. If it is dropped nothing has changed.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    domains: &'a Domains,
    ask: Ask,
    now: Time,
    counts: &'a mut DomainCounts,
    authority: Authority<'a>,
}

/// The authority that answers for a domain.
#[derive(Debug)]
enum Authority<'a> {
    /// Policies, and the lease.
    Policies { record: &'a mut Record, all: All<'a>, planned: Planned },
    /// The lease alone.
    Lease(Ground),
    /// Nobody: it is refused.
    Nobody(Decision),
}

/// The answer of policies.
#[derive(Debug)]
struct Planned {
    plan: Plan,
    /// Hits that are to be had if leases have them; 0 if policies refuse.
    wanted: u32,
    /// The answer of the lease of the domain, if it has one.
    gate: Gate,
    /// Hits that it has of those that are wanted.
    most: u32,
    ground: Ground,
}

/// The hits that are made of a reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    /// No more than are reserved.
    pub(crate) hits: u32,
    /// Why they are no more.
    pub(crate) cut: Cut,
    /// They are made although there is no lease.
    pub(crate) is_degraded: bool,
}

/// Why no more hits are made of a domain than are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// Something else has no more.
    Elsewhere,
    /// Policies allow no more, or the lease of the domain has no more.
    Policies,
    /// The lease has no more.
    Lease,
}

// === impl Domains ===

impl Domains {
    /// Locks the shard of a domain.
    pub(crate) fn locked<'a>(&'a self, domain: &'a str) -> LockedDomain<'a> {
        let hash = self.hash(domain);
        LockedDomain { domains: self, domain, hash, shard: self.shard(hash) }
    }

    /// By which several are put in order.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The answer of policies; nothing is done.
    #[inline]
    fn plan(&self, all: &All<'_>, domain: &str, record: &Record, ask: Ask, now: Time) -> Planned {
        let plan = record.history.plan(record.contract(), all.global(), now.as_nanos(), ask);
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
            false => self.subleases().gate(domain, record.contract(), wanted, now),
        };
        let most = gate.most(wanted);
        Planned { plan, wanted, gate, most, ground }
    }

    /// Makes hits in the history of a domain. Returns the answer of policies to them.
    #[inline]
    fn make(&self, all: &mut All<'_>, record: &mut Record, planned: &Planned, hits: u32) -> Decision {
        let plan = planned.plan;
        if planned.ground == Ground::Unheard {
            record.commit_without_room(&plan, hits, &self.sync);
            return Decision::of(plan.decision());
        }
        if hits < plan.decision().granted {
            let fewer = record.history.plan(record.contract(), all.global(), plan.now(), Ask::exactly(hits));
            return self.record_plan(all, record, &fewer);
        }
        // What policies did not allow is no part of the history, and others are not refused for it.
        self.record_plan(all, record, &plan)
    }

    /// Enters a plan into the history of its domain, and into that of all. Of a plan that grants nothing that is what it pays of a
    /// debt.
    #[inline]
    fn record_plan(&self, all: &mut All<'_>, record: &mut Record, plan: &Plan) -> Decision {
        record.commit(plan, &self.sync);
        all.record(plan);
        Decision::of(plan.decision())
    }

    /// Whether the least that was asked for is granted to a domain that others use too, where policies refuse it as far as is
    /// known here and the others are unreachable: unless that is to be refused.
    fn goes_unheard(&self, record: &Record, ask: Ask, plan: &Plan) -> bool {
        let by_hits = matches!(plan.decision().bound, Some(tiers::Bound::Tiers | tiers::Bound::Hard));
        ask.copies() > 0
            && by_hits
            && record.others() > 0
            && self.sync.is_unreachable(Time::from_nanos(plan.now()))
            // What others used is remembered under other policies as well, and means nothing there.
            && self.policies().is_some_and(|policies| {
                policies.scope() == Scope::Shared && !policies.refuses_unheard()
            })
    }
}

// === impl LockedDomain ===

impl LockedDomain<'_> {
    /// Asks policies for hits.
    #[inline]
    pub(crate) fn reserve(&mut self, ask: Ask, now: Time) -> Reservation<'_> {
        let (domains, domain) = (self.domains, self.domain);
        let (found, counts) = domains.look_up(&mut self.shard, now, self.hash, domain);
        let authority = match found {
            Lookup::Tracked(record) => {
                let all = domains.all();
                let planned = domains.plan(&all, domain, record, ask, now);
                Authority::Policies { record, all, planned }
            }
            Lookup::Ungoverned(ground) => Authority::Lease(ground),
            Lookup::Full if domains.subleases().is_on() => Authority::Nobody(Decision::crowded()),
            Lookup::Full => Authority::Lease(Ground::Untracked),
            Lookup::Refused if domains.is_killed() => Authority::Lease(Ground::KillSwitch),
            Lookup::Refused => Authority::Nobody(Decision::unconfigured()),
        };
        Reservation { domains, ask, now, counts, authority }
    }
}

// === impl Reservation ===

impl Reservation<'_> {
    /// The most hits that the lease is to be asked for: 0 if policies refuse, or the lease of the domain has too few.
    #[inline]
    pub(crate) fn wanted(&self) -> u32 {
        match &self.authority {
            Authority::Policies { planned, .. } if planned.most < self.least() => 0,
            Authority::Policies { planned, .. } => planned.most,
            Authority::Lease(_) => self.ask.copies(),
            Authority::Nobody(_) => 0,
        }
    }

    /// The least that is of use, one at least.
    #[inline]
    pub(crate) fn least(&self) -> u32 {
        self.ask.min().max(1)
    }

    /// Takes hits of the lease of the domain, if it has one. Whether they were there: not if it was cut just now.
    #[inline]
    pub(crate) fn take(&self, hits: u32) -> bool {
        match &self.authority {
            Authority::Policies { planned, .. } => planned.gate.take(hits, planned.wanted, self.now),
            Authority::Lease(_) | Authority::Nobody(_) => true,
        }
    }

    /// Whether the least is granted although the lease says so.
    pub(crate) fn is_degraded(&self, denied: &Denied) -> bool {
        let is_chosen = self.domains.options().degraded == Degraded::GrantLeast;
        *denied == Denied::NothingLeased && is_chosen && !self.is_unheard()
    }

    /// Whether policies refuse, as far as is known here, and the least is granted all the same.
    fn is_unheard(&self) -> bool {
        matches!(&self.authority, Authority::Policies { planned, .. } if planned.ground == Ground::Unheard)
    }

    /// Makes hits: the one place where they are made.
    #[inline]
    pub(crate) fn commit(self, grant: Grant) -> Decision {
        let Grant { hits, cut, is_degraded } = grant;
        let by = |ground| if is_degraded { Ground::Degraded } else { ground };
        let by_lease = (cut == Cut::Lease).then_some(Bound::Lease);
        let decision = match self.authority {
            Authority::Policies { record, mut all, planned } => {
                let ground = by(planned.ground);
                let made = self.domains.make(&mut all, record, &planned, hits);
                record.count_granted(hits);
                let bound = match cut {
                    _ if hits == planned.wanted => made.bound,
                    Cut::Policies if planned.most < planned.wanted => Some(Bound::Sublease),
                    Cut::Policies => planned.plan.decision().bound.map(Bound::from),
                    Cut::Elsewhere | Cut::Lease => by_lease,
                };
                let (others, by_all) = (record.others(), all.hits(self.now));
                let made = Decision { others, hits_in_second_by_all: by_all, ..made };
                Decision { granted: hits, ground, bound, retry_at: None, ..made }
            }
            Authority::Lease(ground) => {
                let bound = by_lease.filter(|_| hits < self.ask.copies());
                Decision { granted: hits, bound, ..Decision::free(by(ground)) }
            }
            Authority::Nobody(_) => unreachable!("nothing is wanted of a domain that is refused"),
        };
        self.counts.count(&decision);
        decision
    }

    /// Makes no hits, as policies or the lease of the domain have too few, or else as the lease has `denied` them. If policies
    /// refuse, what is owed is paid as far as they allow; else nothing has changed.
    pub(crate) fn deny(self, denied: Option<Denied>) -> Decision {
        let (now, least, denied) = (self.now, self.least(), denied.filter(|_| !self.is_unheard()));
        let decision = match (self.authority, denied) {
            (Authority::Policies { record, mut all, planned }, denied) => {
                record.count_refused();
                let decision = match denied {
                    Some(denied) => planned.refused(&denied, now),
                    None if planned.is_refusal() => self.domains.record_plan(&mut all, record, &planned.plan),
                    None => planned.gated(least, now),
                };
                Decision { hits_in_second_by_all: all.hits(now), others: record.others(), ..decision }
            }
            (Authority::Lease(ground), Some(denied)) => refused(Decision::free(ground), &denied, now),
            (Authority::Lease(ground), None) => Decision::free(ground),
            (Authority::Nobody(decision), _) => decision,
        };
        if self.ask.copies() > 0 {
            self.counts.count(&decision);
        }
        decision
    }
}

// === impl Planned ===

impl Planned {
    /// Whether policies refuse, as far as is known here.
    fn is_refusal(&self) -> bool {
        self.wanted == 0 || self.ground == Ground::Unheard
    }

    /// The lease of the domain has less than the `least` that is of use, and nothing has changed.
    fn gated(&self, least: u32, now: Time) -> Decision {
        self.gate.refused(Decision::of(self.plan.decision()), least, self.wanted, now)
    }

    /// The lease of the resource is too little, and nothing has changed.
    fn refused(&self, denied: &Denied, now: Time) -> Decision {
        self.gate.give_up(self.wanted);
        refused(Decision::of(self.plan.decision()), denied, now)
    }
}

/// The lease is too little, and nothing has changed.
fn refused(decision: Decision, denied: &Denied, now: Time) -> Decision {
    let retry_at = denied.exact_retry_after().map(|after| now + after);
    let bound = match denied {
        Denied::AboveBurst { burst, .. } => Bound::Burst { most: *burst },
        _ => Bound::Lease,
    };
    Decision { granted: 0, burst: false, bound: Some(bound), retry_at, ..decision }
}
