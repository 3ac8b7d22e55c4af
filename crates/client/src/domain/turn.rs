//! A domain that is asked together with other things: its locks are held from the question to the answer.

use std::sync::MutexGuard;

use lessor_algorithms::tiers::Ask;
use lessor_proto::Time;

use super::counts::DomainCounts;
use super::deciding::{Planned, refused};
use super::decision::{Bound, Decision, Ground};
use super::second::All;
use super::shard::{Record, Shard};
use super::store::Domains;
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

/// The answer of policies, before anything is done. If it is dropped nothing has changed.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    domains: &'a Domains,
    ask: Ask,
    now: Time,
    counts: &'a mut DomainCounts,
    matter: Matter<'a>,
}

/// The authority that answers for a domain.
#[derive(Debug)]
enum Matter<'a> {
    /// Policies, and the lease.
    Policies { record: &'a mut Record, all: All<'a>, planned: Planned },
    /// The lease alone.
    Lease(Ground),
    /// Nothing: it is refused.
    Nothing(Decision),
}

/// Why no more hits are made of a domain than are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// All that were asked for are made, or something else has no more.
    Elsewhere,
    /// Policies allow no more, or the lease of the domain has no more.
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
        let (record, counts) = domains.look_up(&mut self.shard, now, self.hash, self.domain);
        let matter = match record {
            Ok(record) => {
                let all = domains.all();
                let planned = domains.plan(&all, record, ask, now);
                Matter::Policies { record, all, planned }
            }
            Err(Some(Ground::Untracked)) if domains.subleases().is_on() => {
                Matter::Nothing(Decision::crowded())
            }
            Err(Some(ground)) => Matter::Lease(ground),
            Err(None) if domains.is_killed() => Matter::Lease(Ground::KillSwitch),
            Err(None) => Matter::Nothing(Decision::unconfigured()),
        };
        Turn { domains, ask, now, counts, matter }
    }
}

// === impl Turn ===

impl Turn<'_> {
    /// The most hits that the lease is to be asked for: 0 if policies refuse, or the lease of the domain has too few.
    pub(crate) fn wanted(&self) -> u32 {
        match &self.matter {
            Matter::Policies { planned, .. } if planned.most < self.ask.min() => 0,
            Matter::Policies { planned, .. } => planned.most,
            Matter::Lease(_) => self.ask.copies(),
            Matter::Nothing(_) => 0,
        }
    }

    /// Takes hits of the lease of the domain, if it has one. Whether they were there: not if it was cut just now.
    pub(crate) fn take(&self, hits: u32) -> bool {
        match &self.matter {
            Matter::Policies { planned, .. } => planned.gate.take(hits, planned.wanted, self.now),
            Matter::Lease(_) | Matter::Nothing(_) => true,
        }
    }

    /// Whether the least is granted although the lease says so.
    pub(crate) fn is_degraded(&self, denied: Denied) -> bool {
        !self.is_unheard() && self.domains.is_degraded(denied)
    }

    /// Whether policies refuse, as far as is known here, and the least is granted all the same.
    fn is_unheard(&self) -> bool {
        matches!(&self.matter, Matter::Policies { planned, .. } if planned.ground == Ground::Unheard)
    }

    /// Makes so many hits, no more than are wanted.
    pub(crate) fn grant(self, hits: u32, cut: Cut) -> Decision {
        let by = |ground| if cut == Cut::NoLease { Ground::Degraded } else { ground };
        let by_lease = matches!(cut, Cut::Lease | Cut::NoLease).then_some(Bound::Lease);
        let decision = match self.matter {
            Matter::Policies { record, mut all, planned } => {
                record.granted += u64::from(hits);
                let decision = self.domains.make(&mut all, record, &planned, hits, by(planned.ground));
                let others = record.others();
                let bound = match cut {
                    _ if hits == planned.wanted => decision.bound,
                    Cut::Policies if planned.most < planned.wanted => Some(Bound::Sublease),
                    Cut::Policies => planned.plan.decision().bound.map(Bound::from),
                    Cut::Elsewhere | Cut::Lease | Cut::NoLease => by_lease,
                };
                Decision { bound, hits_in_second_by_all: all.hits(self.now), others, ..decision }
            }
            Matter::Lease(ground) => {
                let bound = by_lease.filter(|_| hits < self.ask.copies());
                Decision { granted: hits, bound, ..Decision::free(by(ground)) }
            }
            Matter::Nothing(_) => unreachable!("nothing is wanted of a domain that is refused"),
        };
        self.counts.count(&decision);
        decision
    }

    /// Policies grant nothing: what is owed is paid as far as they allow, and nothing else changes. Or the lease of the domain
    /// has too little, and nothing changes.
    pub(crate) fn refuse(self) -> Decision {
        let decision = match self.matter {
            Matter::Policies { record, mut all, planned } => {
                record.refused += 1;
                let decision = match planned.wanted == 0 || planned.ground == Ground::Unheard {
                    true => self.domains.refuse(&mut all, record, &planned),
                    false => planned.gated(self.ask.min(), self.now),
                };
                let others = record.others();
                Decision { hits_in_second_by_all: all.hits(self.now), others, ..decision }
            }
            Matter::Lease(ground) => Decision::free(ground),
            Matter::Nothing(decision) => decision,
        };
        self.counts.count(&decision);
        decision
    }

    /// The lease has too little, and nothing changes.
    pub(crate) fn lease_refuses(self, denied: Denied) -> Decision {
        if self.is_unheard() {
            return self.refuse();
        }
        let decision = match self.matter {
            Matter::Policies { record, all, planned } => {
                record.refused += 1;
                let decision = planned.refused(denied, self.now);
                let others = record.others();
                Decision { hits_in_second_by_all: all.hits(self.now), others, ..decision }
            }
            Matter::Lease(ground) => refused(Decision::free(ground), denied, self.now),
            Matter::Nothing(decision) => decision,
        };
        self.counts.count(&decision);
        decision
    }
}
