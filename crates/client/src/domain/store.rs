//! The domains of one resource in one client: who asks is granted what policies and lease allow, or nothing.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use lessor_algorithms::tiers::{Ask, Domain, Global};
use lessor_proto::Time;

use super::counts::DomainCounts;
use super::deciding::Purse;
use super::decision::{Decision, Ground};
use super::exchange::Exchange;
use super::policies::{Policies, Rule, Scope};
use super::second::{All, Second};
use super::shard::{InForce, Record, Shard};
use super::strict::{Lender, Subleases};
use crate::limiter::Limiter;
use crate::waiting::Waiting;

/// Locks, so that threads seldom meet.
const SHARDS: usize = 64;
/// Shards swept at a time: all of them in sixteen.
const SWEPT: usize = SHARDS / 16;

/// The options of a client for the domains of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainOptions {
    /// The most domains that are remembered, about; those beyond are not refused anything but by the lease.
    pub most: usize,
    /// The behaviour without a lease.
    pub degraded: Degraded,
    /// The longest time that a domain waits.
    pub max_wait: Duration,
}

/// The behaviour without a lease, when nothing is left of the ladder below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Degraded {
    /// Refuse.
    #[default]
    Refuse,
    /// Grant the least that was asked for, one at least, as long as policies allow it. Breaks the capacity as soon as others
    /// are given it.
    GrantLeast,
}

/// The domains of one resource. Shared by reference.
#[derive(Debug)]
pub struct Domains {
    options: DomainOptions,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    policies: RwLock<Option<Arc<Policies>>>,
    /// Changes after the policies do, so that whoever sees it sees them.
    generation: AtomicU32,
    /// Where what all domains do together is limited.
    global: Mutex<Global>,
    is_limited: AtomicBool,
    /// Where it is not.
    second: Second,
    is_killed: AtomicBool,
    /// The exchange with other clients: what is told to them, and by them.
    pub(super) exchange: Exchange,
    subleases: Subleases,
    /// The shard to be swept next.
    next: AtomicUsize,
}

// === impl DomainOptions ===

impl Default for DomainOptions {
    /// A million domains; nothing is granted without a lease; five seconds.
    fn default() -> DomainOptions {
        DomainOptions { most: 1_000_000, degraded: Degraded::default(), max_wait: Waiting::DEFAULT.max_wait }
    }
}

// === impl Domains ===

impl Domains {
    /// None yet, and no policies.
    #[must_use]
    pub fn new(options: DomainOptions) -> Domains {
        Domains {
            options,
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect(),
            policies: RwLock::new(None),
            generation: AtomicU32::new(0),
            global: Mutex::new(Global::exact()),
            is_limited: AtomicBool::new(false),
            second: Second::new(),
            is_killed: AtomicBool::new(false),
            exchange: Exchange::new(),
            subleases: Subleases::default(),
            next: AtomicUsize::new(0),
        }
    }

    /// The same, where domains may have leases of their own. Without it the scope `strict` refuses every domain.
    #[must_use]
    pub fn with_lender(self, lender: Lender) -> Domains {
        Domains { subleases: Subleases::of(lender), ..self }
    }

    /// The leases of domains, for who asks servers for them.
    #[must_use]
    pub fn subleases(&self) -> &Subleases {
        &self.subleases
    }

    /// Puts policies in force; absent: each domain may use all of the lease. Histories stay: each domain takes up its policies
    /// when it is next heard of, and a tier that did not change keeps its hits.
    pub fn follow(&self, policies: Option<Arc<Policies>>) {
        let mut in_force = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        if *in_force == policies {
            return;
        }
        let is_limited = policies.as_ref().is_some_and(|policies| policies.has_global_limit());
        if self.is_limited.swap(is_limited, Ordering::Relaxed) != is_limited {
            *lock(&self.global) = Global::exact();
        }
        self.subleases.follow(policies.as_deref());
        *in_force = policies;
        self.generation.fetch_add(1, Ordering::Release);
        drop(in_force);
        self.tell_by_other_policies();
    }

    /// Switches policies off, or on again. Off, they refuse nothing, and what they would have refused is counted; the lease is
    /// needed all the same. Histories go on as if they were on.
    pub fn set_kill_switch(&self, is_killed: bool) {
        self.is_killed.store(is_killed, Ordering::Relaxed);
    }

    /// Asks for `copies` hits of `domain`, and no fewer than `min`, which is taken for `copies` if it is more; makes those
    /// that are granted, and takes as much of `lease`. If nothing is granted, nothing has changed.
    pub fn request(&self, lease: &Limiter, domain: &str, copies: u32, min: u32, now: Time) -> Decision {
        self.request_of(Purse::new(lease, 0), domain, Ask::between(min.min(copies), copies), now)
    }

    /// The same, where some of the lease may have been taken already.
    pub(super) fn request_of(&self, lease: Purse<'_>, domain: &str, ask: Ask, now: Time) -> Decision {
        let hash = self.hash(domain);
        let mut shard = self.shard(hash);
        let (record, counts) = self.look_up(&mut shard, now, hash, domain);
        let decision = match record {
            Ok(record) => {
                let decision = self.decide(&lease, record, ask, now);
                record.granted += u64::from(decision.granted);
                record.refused += u64::from(decision.granted < 1);
                decision
            }
            Err(Some(Ground::Untracked)) if self.subleases.is_on() => Decision::crowded(),
            Err(Some(ground)) => self.free(&lease, ground, ask, now),
            Err(None) if self.is_killed() => self.free(&lease, Ground::KillSwitch, ask, now),
            Err(None) => Decision::unconfigured(),
        };
        if ask.copies() > 0 {
            counts.count(&decision);
        }
        drop(shard);
        lease.settle();
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
            Some(record) if record.contract == contract => of(&record.history),
            Some(record) => {
                let mut history = record.history.clone();
                history.swap(&record.contract, &contract, now.as_nanos());
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
        let delta = i64::from(actual) - i64::from(granted);
        let hash = self.hash(domain);
        let mut shard = self.shard(hash);
        if let Some(record) = shard.find(hash, domain) {
            record.history.settle(&record.contract, now.as_nanos(), delta);
            if let Some(telling) = &mut record.telling
                && actual < granted
            {
                telling.refund(&record.contract, now.as_nanos(), granted - actual);
                self.tell_again(record);
            }
        }
        drop(shard);
        if actual > granted {
            lease.charge(actual - granted, now);
            self.subleases.charge(domain, actual - granted, now);
        }
    }

    /// Forgets domains that are idle, a part of them each time: all in sixteen times. To be called now and then.
    pub fn sweep(&self, now: Time) {
        for _ in 0..SWEPT {
            let next = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
            lock(&self.shards[next]).sweep(now);
        }
    }

    /// The counts of what has been asked and granted.
    #[must_use]
    pub fn counts(&self) -> DomainCounts {
        let shards = self.shards.iter().map(|shard| lock(shard).counts);
        shards.fold(DomainCounts::default(), DomainCounts::plus)
    }

    /// The number of domains that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether none is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The options that were chosen.
    #[must_use]
    pub fn options(&self) -> &DomainOptions {
        &self.options
    }

    /// The policies in force.
    #[must_use]
    pub fn policies(&self) -> Option<Arc<Policies>> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether policies are switched off.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Relaxed)
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(lock)
    }

    /// The record of a domain in its shard, or on which ground there is none, where nothing is refused; and the counters.
    pub(super) fn look_up<'a>(
        &self,
        shard: &'a mut Shard,
        now: Time,
        hash: u64,
        domain: &str,
    ) -> (Result<&'a mut Record, Option<Ground>>, &'a mut DomainCounts) {
        let policies = || self.policies();
        shard.record(now, hash, domain, &self.in_force(&policies))
    }

    /// The hits of all domains, as a request sees them.
    pub(super) fn all(&self) -> All<'_> {
        match self.is_limited.load(Ordering::Relaxed) {
            true => All::Limited(lock(&self.global)),
            false => All::Told(&self.second),
        }
    }

    /// The record of a domain, under the policies in force; made if need be.
    pub(super) fn record<'a>(
        &self,
        shard: &'a mut Shard,
        now: Time,
        hash: u64,
        domain: &str,
    ) -> Option<&'a mut Record> {
        self.look_up(shard, now, hash, domain).0.ok()
    }

    fn in_force<'a>(&self, policies: &'a dyn Fn() -> Option<Arc<Policies>>) -> InForce<'a> {
        InForce {
            generation: self.generation.load(Ordering::Acquire),
            policies,
            most: self.options.most.div_ceil(SHARDS),
        }
    }

    pub(super) fn hash(&self, domain: &str) -> u64 {
        self.hasher.hash_one(domain)
    }

    /// Whose hits count.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.policies().map_or(Scope::Client, |policies| policies.scope())
    }

    pub(super) fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The upper bits choose the place within the table.
        lock(&self.shards[(hash >> 40) as usize % SHARDS])
    }
}

/// No code of others runs under these locks, so a poisoned one is as good as any.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
