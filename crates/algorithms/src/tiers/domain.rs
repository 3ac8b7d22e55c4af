//! The history of one domain, and how it answers.

use super::decision::{Ask, Bound, Decision, Plan};
use super::forecast::Limits;
use super::global::Global;
use super::policy::Contract;
use super::pool::Pool;
use super::walk::{Moment, View, Walk};
use super::window::{Rule, Status};

/// The state that is remembered of one domain. 88 bytes, in which there is room for seven facts: that a tier
/// was entered, that hits are owed, or the hits of one time that still count in a tier, or in the last second.
/// Up to sixteen facts take 184 bytes more, on the heap. More than that, or more than 65,535 hits of one time,
/// take 16 bytes there for each, 16 for each tier, and 32.
///
/// The same [`Contract`] must be given with every call until [`Domain::swap`] tells of another one.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Queue 0 is that of the last second. Then come the tiers of all policies.
    pub(super) pool: Pool,
}

/// The number of hits that would be granted, and the limit on them.
struct Room {
    hits: u32,
    bound: Option<Bound>,
    policy: usize,
    /// The way through that policy, for so many hits as are asked for.
    walk: Walk,
    /// Those of the last second, by the domain and by all.
    second: u32,
    by_all: u32,
}

// === impl Domain ===

impl Domain {
    /// Of which nothing is known.
    #[must_use]
    pub fn new() -> Domain {
        Domain { pool: Pool::new() }
    }

    /// Asks for hits, and makes those that are granted.
    ///
    /// A time before that of an earlier call counts as that one, unless nothing is remembered of the domain.
    pub fn request(&mut self, contract: &Contract, global: &mut Global, now: u64, ask: Ask) -> Decision {
        let plan = self.plan(contract, global, now, ask);
        self.commit(contract, &plan);
        global.record(plan.now, plan.hits());
        plan.decision
    }

    /// Decides on a request and changes nothing, so that it can be granted together with something else or not at all.
    #[must_use]
    #[inline]
    pub fn plan(&self, contract: &Contract, global: &Global, now: u64, ask: Ask) -> Plan {
        let now = now.max(self.last());
        let debt = self.pool.debt();
        let room = self.room(contract, global, now, debt.saturating_add(ask.copies()));
        let paid = debt.min(room.hits);
        let able = room.hits - paid;
        let granted = if able < ask.min() { 0 } else { able.min(ask.copies()) };
        let mut decision = self.outcome(contract, now, &room, paid + granted);
        decision.granted = granted;
        decision.debt = debt - paid;
        if granted < ask.copies() {
            decision.bound = if paid < debt { Some(Bound::Debt) } else { room.bound };
        }
        if granted == 0 && ask.copies() > 0 {
            let hits = if paid < debt { 1 } else { ask.min().max(1) };
            decision.retry_at = self.retry_at(contract, global, now, paid, hits);
        }
        let is_straight = contract.policies().len() == 1 && decision.tier > 0 && !decision.burst;
        Plan { decision, now, paid, only_tier: is_straight.then_some(decision.tier) }
    }

    /// The decision that a request would get.
    #[must_use]
    pub fn peek(&self, contract: &Contract, global: &Global, now: u64, ask: Ask) -> Decision {
        self.plan(contract, global, now, ask).decision
    }

    /// Makes the hits of a plan. Nothing may have happened to the domain since it was made, and whoever counts the hits of
    /// all domains has to [record](Global::record) them.
    #[inline]
    pub fn commit(&mut self, contract: &Contract, plan: &Plan) {
        let hits = plan.hits();
        if hits == 0 {
            return self.pass(contract, plan.now);
        }
        self.pool.open(contract.queues());
        self.pool.set_last(plan.now);
        if plan.paid > 0 {
            self.pool.set_debt(self.pool.debt() - plan.paid);
        }
        contract.second().record(&mut self.pool, 0, 0, plan.now, hits);
        if let Some(tier) = plan.only_tier {
            return self.log(&contract.rules(0)[tier - 1], tier, plan.now, hits);
        }
        for policy in 0..contract.policies().len() {
            self.make(contract, policy, plan.now, hits);
        }
    }

    /// Whether nothing is remembered that could matter from `now` on, so that the domain may be thrown away.
    #[must_use]
    pub fn is_idle(&self, contract: &Contract, now: u64) -> bool {
        let now = now.max(self.last());
        let is_rested = |policy: usize| {
            let moment = self.moment(contract, policy, now);
            let mut tiers = moment.rules.iter().zip(1..);
            tiers.all(|(rule, tier)| {
                let hits = rule.measure.used(&self.pool, moment.begin + tier, now);
                moment.status(tier) == Status::Inactive && hits == 0
            })
        };
        self.pool.debt() == 0
            && contract.second().used(&self.pool, 0, now) == 0
            && (0..contract.policies().len()).all(is_rested)
    }

    /// Whether nothing at all is remembered, not even the time of a call: it is as [`Domain::new`] makes it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.pool.is_empty()
    }

    /// Gives back memory that is not used: all that is on the heap if the domain is idle.
    pub fn rest(&mut self, contract: &Contract, now: u64) {
        if self.is_idle(contract, now) {
            self.pool = Pool::new();
        } else {
            self.pass(contract, now);
            self.pool.shrink(contract.queues());
        }
    }

    /// Bytes on the heap, without what the allocator adds.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.pool.heap_bytes()
    }

    /// The time of the last call.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.pool.last()
    }

    /// The tiers of a policy at a time.
    #[inline]
    pub(super) fn moment<'a>(&'a self, contract: &'a Contract, policy: usize, now: u64) -> Moment<'a> {
        let (rules, begin) = (contract.rules(policy), contract.begin(policy));
        Moment { pool: &self.pool, rules, begin, now }
    }

    /// Lets time pass, and forgets what does not count any more.
    pub(super) fn pass(&mut self, contract: &Contract, now: u64) {
        if self.pool.is_empty() {
            return;
        }
        let now = now.max(self.last());
        self.pool.set_last(now);
        contract.second().expire(&mut self.pool, 0, now);
        for policy in 0..contract.policies().len() {
            for (rule, queue) in contract.rules(policy).iter().zip(contract.begin(policy) + 1..) {
                rule.measure.expire(&mut self.pool, queue, now);
            }
        }
    }

    /// Returns how many of `want` hits all limits allow.
    #[inline]
    fn room(&self, contract: &Contract, global: &Global, now: u64, want: u32) -> Room {
        let walk = |policy| {
            let moment = self.moment(contract, policy, now);
            Walk::new(moment.rules, &moment, want).run(moment.rules, &moment)
        };
        let first = walk(0);
        let bound = (first.left > 0).then_some(Bound::Tiers);
        let (second, by_all) = (contract.second().used(&self.pool, 0, now), global.hits(now));
        let mut room = Room { hits: first.granted(), bound, policy: 0, walk: first, second, by_all };
        for policy in 1..contract.policies().len() {
            let walk = walk(policy);
            if walk.granted() < room.hits {
                (room.policy, room.walk) = (policy, walk);
                room.narrow(walk.granted(), Bound::Tiers);
            }
        }
        if let Some(hard) = contract.hard_limit() {
            room.narrow(hard.saturating_sub(second), Bound::Hard);
        }
        if let Some(limit) = contract.global_limit() {
            room.narrow(limit.saturating_sub(by_all), Bound::Global);
        }
        room
    }

    /// The answer after `hits`, which are no more than there is room for.
    #[inline]
    fn outcome(&self, contract: &Contract, now: u64, room: &Room, hits: u32) -> Decision {
        let moment = self.moment(contract, room.policy, now);
        // Nearly always all is granted that the tiers allow, and the way is known.
        let walk = match room.walk.granted() == hits {
            true => room.walk,
            false => Walk::new(moment.rules, &moment, hits).run(moment.rules, &moment),
        };
        Decision {
            granted: 0,
            hard_limit: contract.hard_limit(),
            global_limit: contract.global_limit(),
            policy: room.policy,
            tier: walk.tier,
            tier_limit: if walk.tier > 0 { moment.rules[walk.tier - 1].limit } else { 0 },
            tier_window: if walk.tier > 0 { moment.rules[walk.tier - 1].window() } else { 0 },
            hits_in_tier: walk.used,
            hits_in_second: room.second.saturating_add(hits),
            hits_in_second_by_all: room.by_all.saturating_add(hits),
            burst: walk.has_burst,
            bound: None,
            retry_at: None,
            debt: 0,
        }
    }

    /// When `hits` would be granted, if the next thing that happens is that `paid` hits are made.
    fn retry_at(&self, contract: &Contract, global: &Global, now: u64, paid: u32, hits: u32) -> Option<u64> {
        if paid == 0 {
            return Limits { contract, pool: &self.pool, global }.grant_at(now, hits);
        }
        let (mut then, mut by_all) = (self.clone(), global.clone());
        then.pool.set_debt(0);
        then.request(contract, &mut by_all, now, Ask::exactly(paid));
        then.retry_at(contract, &by_all, now, 0, hits)
    }

    /// Logs hits in the tiers of one policy, which has room for them.
    fn make(&mut self, contract: &Contract, policy: usize, now: u64, hits: u32) {
        let (rules, begin) = (contract.rules(policy), contract.begin(policy));
        let mut walk = Walk::new(rules, &self.moment(contract, policy, now), hits);
        while let Some(step) = walk.step(rules, &self.moment(contract, policy, now)) {
            let queue = begin + step.tier;
            if step.is_entered {
                rules[step.tier - 1].enter(&mut self.pool, queue, now);
            }
            self.log(&rules[step.tier - 1], queue, now, step.hits);
        }
        assert!(walk.left == 0, "{} hits of a plan do not fit: the domain has changed since", walk.left);
    }

    /// Logs hits in a tier.
    #[inline]
    fn log(&mut self, rule: &Rule, queue: usize, now: u64, hits: u32) {
        let since = self.pool.time(queue);
        rule.measure.record(&mut self.pool, queue, since, now, hits);
    }
}

impl Default for Domain {
    fn default() -> Domain {
        Domain::new()
    }
}

// === impl Room ===

impl Room {
    #[inline]
    fn narrow(&mut self, hits: u32, bound: Bound) {
        if hits < self.hits {
            (self.hits, self.bound) = (hits, Some(bound));
        }
    }
}
