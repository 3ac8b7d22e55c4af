//! A domain that is asked together with other things: its locks are held from the question to the answer.

use std::sync::MutexGuard;

use lessor_algorithms::tiers::Ask;
use lessor_proto::Time;

use super::counts::Counts;
use super::decision::{Bound, Decision, Ground};
use super::second::All;
use super::shard::{Record, Shard};
use super::store::{Domains, Planned, refused};
use super::strict::Gate;
use crate::limiter::Denied;

/// The shard of a domain, under its lock.
///
/// Whoever asks several domains takes their seats, and then their turns, in the order of the
/// [addresses](Domains::address) of their resources, and the locks of limiters after all of them. Who asks one takes the same
/// locks in the same order, so nobody waits for one who waits for him.
#[derive(Debug)]
pub(crate) struct Seat<'a> {
    domains: &'a Domains,
    domain: &'a str,
    hash: u64,
    shard: MutexGuard<'a, Shard>,
}

/// What policies have said, before anything is done. If it is dropped nothing has changed.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    domains: &'a Domains,
    ask: Ask,
    now: Time,
    counts: &'a mut Counts,
    matter: Matter<'a>,
}

/// What answers for a domain.
#[derive(Debug)]
enum Matter<'a> {
    /// Policies, and the lease.
    Policies { record: &'a mut Record, all: All<'a>, planned: Planned, gate: Gate },
    /// The lease alone.
    Lease(Ground),
    /// Nothing is configured for it, which is refused.
    Unconfigured,
}

/// Why no more hits are made of a domain than are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// All that were asked for are made, or something else has no more.
    Elsewhere,
    /// Policies allow no more.
    Policies,
    /// The lease has no more.
    Lease,
    /// There is no lease, and the least is made all the same.
    NoLease,
}

// === impl Domains ===

impl Domains {
    /// Locks the shard of a domain.
    pub(crate) fn seat<'a>(&'a self, domain: &'a str) -> Seat<'a> {
        let hash = self.hash(domain);
        Seat { domains: self, domain, hash, shard: self.shard(hash) }
    }

    /// By which several are put in order.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

// === impl Seat ===

impl Seat<'_> {
    /// Asks policies for `copies` hits, or no fewer than `min`, of which there is one at least.
    pub(crate) fn ask(&mut self, min: u32, copies: u32, now: Time) -> Turn<'_> {
        let (domains, ask) = (self.domains, Ask::between(min, copies));
        let (record, counts) = domains.record(&mut self.shard, self.hash, self.domain, now);
        let matter = match record {
            Ok(record) => {
                let all = domains.all();
                let planned = domains.plan(&all, record, ask, now);
                let gate = domains.gate(record, &planned, now);
                Matter::Policies { record, all, planned, gate }
            }
            Err(Some(ground)) => Matter::Lease(ground),
            Err(None) if domains.is_killed() => Matter::Lease(Ground::KillSwitch),
            Err(None) => Matter::Unconfigured,
        };
        Turn { domains, ask, now, counts, matter }
    }
}

// === impl Turn ===

impl Turn<'_> {
    /// The most hits that the lease is to be asked for: 0 if policies refuse.
    pub(crate) fn wanted(&self) -> u32 {
        match &self.matter {
            Matter::Policies { planned, gate, .. } => {
                let most = gate.most(planned.wanted);
                if most < self.ask.min() { 0 } else { most }
            }
            Matter::Lease(_) => self.ask.copies(),
            Matter::Unconfigured => 0,
        }
    }

    /// Whether the least is granted although the lease says so.
    pub(crate) fn is_degraded(&self, denied: Denied) -> bool {
        self.domains.is_degraded(denied)
    }

    /// Makes so many hits, no more than are wanted.
    pub(crate) fn grant(self, hits: u32, cut: Cut) -> Decision {
        let by = |ground| if cut == Cut::NoLease { Ground::Degraded } else { ground };
        let by_lease = matches!(cut, Cut::Lease | Cut::NoLease).then_some(Bound::Lease);
        let decision = match self.matter {
            Matter::Policies { record, mut all, planned, gate } => {
                record.granted += u64::from(hits);
                let most = gate.most(planned.wanted);
                gate.take_or_owe(hits, planned.wanted, self.now);
                let decision = self.domains.make(&mut all, record, &planned, hits, by(planned.ground));
                let bound = match cut {
                    _ if hits == planned.wanted => decision.bound,
                    Cut::Policies if hits == most => Some(Bound::Sublease),
                    Cut::Policies => planned.plan.decision().bound.map(Bound::from),
                    Cut::Elsewhere | Cut::Lease | Cut::NoLease => by_lease,
                };
                Decision { bound, hits_in_second_by_all: all.hits(self.now), ..decision }
            }
            Matter::Lease(ground) => {
                let bound = by_lease.filter(|_| hits < self.ask.copies());
                Decision { granted: hits, bound, ..Decision::free(by(ground)) }
            }
            Matter::Unconfigured => unreachable!("nothing is wanted of a domain that is refused"),
        };
        self.counts.count(&decision);
        decision
    }

    /// Policies grant nothing: what is owed is paid as far as they allow, and nothing else changes.
    pub(crate) fn refuse(self) -> Decision {
        let decision = match self.matter {
            Matter::Policies { record, mut all, planned, gate } => {
                record.refused += 1;
                let decision = match planned.wanted {
                    0 => self.domains.refuse(&mut all, record, &planned),
                    wanted => {
                        let decision = Decision::of(planned.plan.decision());
                        gate.refused(decision, self.ask.min(), wanted, self.now)
                    }
                };
                Decision { hits_in_second_by_all: all.hits(self.now), ..decision }
            }
            Matter::Lease(_) | Matter::Unconfigured => Decision::unconfigured(),
        };
        self.counts.count(&decision);
        decision
    }

    /// The lease has too little, and nothing changes.
    pub(crate) fn lease_refuses(self, denied: Denied) -> Decision {
        let decision = match self.matter {
            Matter::Policies { record, all, planned, gate } => {
                record.refused += 1;
                gate.give_up(planned.wanted);
                let decision = Decision::of(planned.plan.decision());
                Decision { hits_in_second_by_all: all.hits(self.now), ..decision }
            }
            Matter::Lease(ground) => Decision::free(ground),
            Matter::Unconfigured => Decision::unconfigured(),
        };
        let decision = refused(decision, denied, self.now);
        self.counts.count(&decision);
        decision
    }
}
