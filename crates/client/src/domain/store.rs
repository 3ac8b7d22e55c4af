//! The domains of one resource in one client: their records, the policies in force, and the options.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use lessor_algorithms::tiers::Global;
use lessor_proto::Time;

use super::counts::DomainCounts;
use super::lookup::Lookup;
use super::policies::Policies;
use super::record::Record;
use super::rules::Scope;
use super::second::{All, Second};
use super::shard::{InForce, Shard};
use super::strict::{Lender, Subleases};
use super::sync::SyncHandle;
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

/// The reason for which policies refuse nothing.
#[derive(Clone, Copy)]
enum SwitchedOff {
    /// The program wants it so.
    Program = 1,
    /// The resource is not enforced.
    Resource = 2,
    /// They are not themselves.
    Policies = 4,
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
    /// The reasons for which policies refuse nothing, as bits of [`SwitchedOff`].
    switched_off: AtomicU8,
    /// The replication between the clients of the resource.
    pub(super) sync: SyncHandle,
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
    #[expect(
        clippy::disallowed_methods,
        reason = "where a name lies decides nothing; who chooses names must not know it"
    )]
    pub fn new(options: DomainOptions) -> Domains {
        let hasher = RandomState::new();
        Domains {
            options,
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(hasher.clone()))).collect(),
            hasher,
            policies: RwLock::new(None),
            generation: AtomicU32::new(0),
            global: Mutex::new(Global::exact()),
            is_limited: AtomicBool::new(false),
            second: Second::new(),
            switched_off: AtomicU8::new(0),
            sync: SyncHandle::default(),
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
        self.switch(SwitchedOff::Policies, policies.as_ref().is_some_and(|policies| policies.unenforced()));
        self.subleases.follow(policies.as_deref());
        *in_force = policies;
        self.generation.fetch_add(1, Ordering::Release);
        drop(in_force);
        if self.sync.members() > 0 {
            // The tiers by which hits were counted are others.
            self.resend();
        }
    }

    /// Switches policies off, or on again. Off, they refuse nothing, and what they would have refused is counted; the lease is
    /// needed all the same. Histories go on as if they were on.
    pub fn set_kill_switch(&self, is_killed: bool) {
        self.switch(SwitchedOff::Program, is_killed);
    }

    /// The grantor of the lease lets everything pass, or not any more. While it does policies refuse nothing, as if they were
    /// switched off here.
    pub fn set_unenforced(&self, unenforced: bool) {
        self.switch(SwitchedOff::Resource, unenforced);
    }

    fn switch(&self, reason: SwitchedOff, is_off: bool) {
        let bit = reason as u8;
        match is_off {
            true => self.switched_off.fetch_or(bit, Ordering::Relaxed),
            false => self.switched_off.fetch_and(!bit, Ordering::Relaxed),
        };
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
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.switched_off.load(Ordering::Relaxed) != 0
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(lock)
    }

    /// Looks a domain up in its shard, where it is remembered from here on if it follows policies; and the counters.
    #[inline]
    pub(super) fn look_up<'a>(
        &self,
        shard: &'a mut Shard,
        now: Time,
        hash: u64,
        domain: &str,
    ) -> (Lookup<'a>, &'a mut DomainCounts) {
        let policies = || self.policies();
        shard.look_up(now, hash, domain, &self.in_force(&policies))
    }

    /// The hits of all domains, as a request sees them.
    #[inline]
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
        self.look_up(shard, now, hash, domain).0.record()
    }

    #[inline]
    fn in_force<'a>(&self, policies: &'a dyn Fn() -> Option<Arc<Policies>>) -> InForce<'a> {
        InForce {
            generation: self.generation.load(Ordering::Acquire),
            policies,
            most: self.options.most.div_ceil(SHARDS),
        }
    }

    #[inline]
    pub(super) fn hash(&self, domain: &str) -> u64 {
        self.hasher.hash_one(domain)
    }

    /// Whose hits count.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.policies().map_or(Scope::Client, |policies| policies.scope())
    }

    #[inline]
    pub(super) fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The lower half says where it is within the table.
        lock(&self.shards[(hash >> 40) as usize % SHARDS])
    }
}

/// No code of others runs under these locks, so a poisoned one is as good as any.
#[inline]
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
