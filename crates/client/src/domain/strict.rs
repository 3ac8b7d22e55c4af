//! Leases of domains: with the scope `strict` a domain has a resource of its own, of which each client leases a part.
//!
//! The lease of a domain is asked for when the domain first asks for something, and given back when it has not asked for a
//! while. Until it has come the domain is refused. What is granted to the domain is taken of its lease and of that of the
//! resource, of both or of none.
//!
//! Who drives this asks the servers: [`Subleases::take_news`] says what for, and each [`Sublease`] has a limiter that is told
//! what is allowed. The waker of the [`Lender`] is woken when there are news. [`Sublessee`](crate::sublessee::Sublessee) does that in a session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::Waker;
use std::time::Duration;

use lessor_algorithms::tiers::Contract;
use lessor_proto::{Amount, ResourceId, Time};

use super::policies::{Policies, Rule};
use super::rules::Scope;
use super::share::Share;
use crate::allowance::Allowance;
use crate::decision::{Bound, Decision};
use crate::demand::{self, Estimator};
use crate::denied::Denied;
use crate::limiter::Limiter;

/// The most domains of a resource that can have leases in one client.
pub const MOST_LEASES: usize = 1_000;
/// A domain that asks for nothing for so long gives its lease back, if its first hit would not take longer.
const IDLE: Duration = Duration::from_secs(10);
/// Over so long it is measured what is wanted, or as long as a part takes for two hits.
const MEASURED: Duration = Duration::from_secs(2);
/// The bounds of the time after which one who waits for a lease asks again: half of the time that it has
/// waited.
const AGAIN: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

/// Of which resource domains have leases, and who is to be woken to ask for them.
#[derive(Clone, Debug)]
pub struct Lender {
    /// The resource.
    pub resource: ResourceId,
    /// Woken when there are news.
    pub notifier: Waker,
}

/// The leases of the domains of a resource, in one client.
#[derive(Debug, Default)]
pub struct Subleases {
    lender: Option<Lender>,
    is_on: AtomicBool,
    by_domain: RwLock<BTreeMap<Box<str>, Arc<Sublease>>>,
    news: Mutex<VecDeque<News>>,
}

/// The lease of one domain.
#[derive(Debug)]
pub struct Sublease {
    resource: ResourceId,
    share: Share,
    limiter: Limiter,
    /// There can be none, as the program holds that resource itself.
    is_barred: AtomicBool,
    /// When something was last granted by it, or else when it was first asked for; in nanoseconds.
    since: AtomicU64,
    has_granted: AtomicBool,
    /// When the domain last asked, in nanoseconds.
    used: AtomicU64,
}

/// A request to the servers.
#[derive(Clone, Debug)]
pub enum News {
    /// Ask for this; if it is held already it is continued with this limiter, and the one before it is void.
    Ask(Arc<Sublease>),
    /// Give this back.
    Leave(ResourceId),
}

/// The hits that a domain may have at this moment by its lease.
#[derive(Debug)]
pub(super) enum Gate {
    /// As much as it likes: it has no lease of its own.
    Open,
    /// This number of hits, of this lease.
    Leased(Arc<Sublease>, u32),
    /// Nothing, until then.
    Shut(Bound, Option<Time>),
}

// === impl Subleases ===

impl Subleases {
    pub(super) fn of(lender: Lender) -> Subleases {
        Subleases { lender: Some(lender), ..Subleases::default() }
    }

    /// Whether domains have leases.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Those of domains of which the policies say something else from here on are given back.
    pub(super) fn follow(&self, policies: Option<&Policies>) {
        let strict = policies.filter(|policies| policies.scope() == Scope::Strict);
        self.is_on.store(strict.is_some(), Ordering::Release);
        let stays = |domain: &str, lease: &Sublease| match strict.map(|policies| policies.rule(domain)) {
            Some(Rule::Contract(contract)) => Share::of(&contract) == Ok(Some(lease.share)),
            _ => false,
        };
        self.retain(stays);
    }

    /// Gives back what no domain has asked for in a while. To be called now and then.
    pub fn retire(&self, now: Time) {
        self.retain(|_, lease| !lease.is_idle(now));
    }

    /// Takes the requests to the servers that have come up since this was last asked, in order.
    #[must_use]
    pub fn take_news(&self) -> VecDeque<News> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of leases that there are, or that are asked for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_domain.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hits that `domain`, which follows `contract` and asks for one hit at least, may have of up to `wanted`.
    /// All who ask for the same domain do so one after the other.
    #[inline]
    pub(super) fn gate(&self, domain: &str, contract: &Contract, wanted: u32, now: Time) -> Gate {
        if !self.is_on() {
            return Gate::Open;
        }
        // Policies in force can be leased, and of a closed resource nothing is wanted.
        let Ok(Some(share)) = Share::of(contract) else { return Gate::Shut(Bound::Unleasable, None) };
        let lease = self.by_domain.read().unwrap_or_else(PoisonError::into_inner).get(domain).cloned();
        match lease.filter(|lease| lease.share == share).map_or_else(|| self.ask(domain, share, now), Ok) {
            Ok(lease) => lease.gate(wanted, now),
            Err(bound) => Gate::Shut(bound, None),
        }
    }

    /// Takes hits of the lease of a domain, if it has one, that were made without having been granted.
    pub(super) fn charge(&self, domain: &str, hits: u32, now: Time) {
        let lease = self.by_domain.read().unwrap_or_else(PoisonError::into_inner).get(domain).cloned();
        if let Some(lease) = lease {
            lease.limiter.charge(hits, now);
        }
    }

    /// Asks for a lease of `domain`.
    fn ask(&self, domain: &str, share: Share, now: Time) -> Result<Arc<Sublease>, Bound> {
        let lender = self.lender.as_ref().ok_or(Bound::Unleasable)?;
        let resource = lender.resource.of_domain(domain, ResourceId::USUAL_BYTES).ok_or(Bound::Unleasable)?;
        let mut by_domain = self.by_domain.write().unwrap_or_else(PoisonError::into_inner);
        if by_domain.len() >= MOST_LEASES && !by_domain.contains_key(domain) {
            return Err(Bound::Crowded);
        }
        let lease = Arc::new(Sublease::new(resource, share, now));
        by_domain.insert(domain.into(), Arc::clone(&lease));
        self.tell(News::Ask(Arc::clone(&lease)));
        drop(by_domain);
        lender.notifier.wake_by_ref();
        Ok(lease)
    }

    fn retain(&self, stays: impl Fn(&str, &Sublease) -> bool) {
        let mut by_domain = self.by_domain.write().unwrap_or_else(PoisonError::into_inner);
        by_domain.retain(|domain, lease| {
            let stays = stays(domain, lease);
            if !stays {
                self.tell(News::Leave(lease.resource.clone()));
            }
            stays
        });
    }

    /// Under the lock of the leases, so that news come in the order of what has become of them.
    fn tell(&self, news: News) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push_back(news);
    }
}

// === impl Sublease ===

impl Sublease {
    fn new(resource: ResourceId, share: Share, now: Time) -> Sublease {
        Sublease {
            resource,
            share,
            limiter: Limiter::in_parts(share.part()),
            is_barred: AtomicBool::new(false),
            since: AtomicU64::new(now.as_nanos()),
            has_granted: AtomicBool::new(false),
            used: AtomicU64::new(now.as_nanos()),
        }
    }

    /// The resource that is leased.
    #[must_use]
    pub fn resource(&self) -> &ResourceId {
        &self.resource
    }

    /// The lease of the domain, for all clients together.
    #[must_use]
    pub fn share(&self) -> Share {
        self.share
    }

    /// Allows the use of `allowance` from here on.
    pub fn allow(&self, now: Time, allowance: Allowance) {
        self.limiter.allow(now, allowance);
    }

    /// It cannot be had: the program has opened that resource, and uses all of its lease.
    pub fn bar(&self) {
        self.is_barred.store(true, Ordering::Relaxed);
    }

    /// Measures what is wanted of it: for [`Sublease::observe`].
    #[must_use]
    pub fn estimator(&self) -> Estimator {
        // What was wanted on average, and not the most: others miss what is asked for and not used.
        Estimator::new(demand::DemandOptions {
            window: MEASURED.max(self.share.first_hit() * 2),
            windows: 1,
            headroom_percent: 0,
            floor: Amount::ZERO,
            most: self.share.capacity(),
        })
    }

    /// Measures the wants, and returns the amount to ask for: at the beginning a part. A client that wants less
    /// than a part is granted one, now and then or always.
    pub fn observe(&self, now: Time, demand: &mut Estimator) -> Amount {
        let wants = demand.observe_rate(now, self.limiter.usage());
        let is_young = !self.has_granted.load(Ordering::Relaxed) && !self.is_idle(now);
        let least = if is_young { self.share.part() } else { Amount::ZERO };
        wants.max(least)
    }

    fn is_idle(&self, now: Time) -> bool {
        let used = Time::from_nanos(self.used.load(Ordering::Relaxed));
        now.since(used) >= IDLE.max(self.share.first_hit() * 2)
    }

    #[inline]
    fn gate(self: Arc<Sublease>, wanted: u32, now: Time) -> Gate {
        self.used.store(now.as_nanos(), Ordering::Relaxed);
        if self.is_barred.load(Ordering::Relaxed) {
            return Gate::Shut(Bound::Unleasable, None);
        }
        match self.limiter.ready(now) {
            Ok(ready) => Gate::Leased(self, ready.min(wanted)),
            Err(denied) => {
                self.limiter.count_denied(wanted);
                self.shut(&denied, now)
            }
        }
    }

    /// Not even one hit is to be had.
    fn shut(&self, denied: &Denied, now: Time) -> Gate {
        let bound = match self.has_granted.load(Ordering::Relaxed) {
            true => Bound::Sublease,
            false => Bound::Asking,
        };
        match denied {
            Denied::Spent { retry_after } => Gate::Shut(Bound::Sublease, Some(now + *retry_after)),
            // No part of it has been granted yet, or others have all of them.
            _ => Gate::Shut(bound, Some(self.again(now))),
        }
    }

    fn again(&self, now: Time) -> Time {
        let [least, most] = AGAIN;
        let waited = now.since(Time::from_nanos(self.since.load(Ordering::Relaxed)));
        now + (waited / 2).clamp(least, most)
    }
}

// === impl Gate ===

impl Gate {
    /// The number of hits of `wanted` that can be had.
    pub(super) fn most(&self, wanted: u32) -> u32 {
        match self {
            Gate::Open => wanted,
            Gate::Leased(_, ready) => *ready,
            Gate::Shut(..) => 0,
        }
    }

    /// Takes hits that were said to be there. They are not if the lease was cut just now: then nothing is taken.
    pub(super) fn take(&self, granted: u32, wanted: u32, now: Time) -> bool {
        let Gate::Leased(lease, _) = self else { return true };
        if lease.limiter.try_acquire(granted, || now).is_err() {
            return false;
        }
        lease.limiter.count_denied(wanted - granted);
        lease.has_granted.store(true, Ordering::Relaxed);
        lease.since.store(now.as_nanos(), Ordering::Relaxed);
        true
    }

    /// Something else refuses them. They are wanted all the same.
    pub(super) fn give_up(&self, wanted: u32) {
        if let Gate::Leased(lease, _) = self {
            lease.limiter.count_denied(wanted);
        }
    }

    /// The answer where fewer hits can be had than the `least` that are of use.
    pub(super) fn refused(&self, decision: Decision, least: u32, wanted: u32, now: Time) -> Decision {
        self.give_up(wanted);
        let (bound, retry_at) = match self {
            Gate::Shut(bound, retry_at) => (*bound, *retry_at),
            Gate::Leased(lease, _) if u64::from(least) <= lease.share.parts() => {
                (Bound::Sublease, Some(lease.again(now)))
            }
            Gate::Leased(..) | Gate::Open => (Bound::Sublease, None),
        };
        Decision { granted: 0, burst: false, bound: Some(bound), retry_at, ..decision }
    }
}

#[cfg(test)]
mod tests;
