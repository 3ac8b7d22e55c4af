//! The domain that clients share: its requests, and what the driver of a client has to do with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::domain::{Domains, Policies};
use lessor_client::internals::limiter::Limiter;
use lessor_client::internals::session::Change;
use lessor_client::{Bound, Decision, DomainOptions, Ground};
use lessor_proto::message::DomainNews;
use lessor_proto::{Amount, Time};

use super::{Event, Simulation};
use crate::client::Mind;
use crate::holding::Stance;
use crate::oracle::{DomainJudge, Violation};
use crate::plan::{SharedDomainPlan, SimulationPlan, Way};
use crate::process::Actor;
use crate::rng::Rng;
use crate::trace::{Happening, Speaker};

/// The name of the domain.
pub(crate) const DOMAIN: &str = "tenant";
/// A lease that refuses nothing.
const PLENTY: u64 = 1_000_000;

/// The domain, those who serve it, and who judges them.
#[derive(Debug)]
pub(crate) struct SharedDomain {
    pub(crate) plan: SharedDomainPlan,
    /// By the limits of the plan.
    policies: Vec<Arc<Policies>>,
    rng: Rng,
    /// The clients that serve it, while they live.
    pub(crate) users: BTreeMap<u32, DomainUser>,
    pub(crate) judge: DomainJudge,
    /// The end of the requests.
    asks_until: Time,
}

/// The state of a client that serves the domain.
#[derive(Debug)]
pub(crate) struct DomainUser {
    pub(crate) domains: Domains,
    lease: Limiter,
    /// When as many hits as are allowed counted last, as far as the client knew; really.
    pub(crate) full_at: Option<Time>,
}

// === impl SharedDomain ===

impl SharedDomain {
    pub(super) fn new(seed: u64, plan: &SharedDomainPlan, asks_until: Time) -> SharedDomain {
        SharedDomain {
            policies: plan.policies(),
            rng: Rng::new(seed ^ 0x00d0_3a17_a5c5),
            users: BTreeMap::new(),
            judge: DomainJudge::new(plan),
            asks_until,
            plan: plan.clone(),
        }
    }

    /// The policies that are in force at the beginning.
    pub(super) fn first(&self) -> Arc<Policies> {
        Arc::clone(&self.policies[0])
    }

    /// The limit that a client goes by, if it has been told of any.
    pub(crate) fn limit_of(&self, user: &DomainUser) -> Option<u32> {
        let version = user.domains.policies()?.version();
        let found = self.policies.iter().position(|policies| policies.version() == version)?;
        Some(self.plan.limits[found])
    }
}

// === impl DomainUser ===

impl DomainUser {
    fn new(now: Time) -> DomainUser {
        let lease = Limiter::new(Duration::from_secs(1));
        lease.allow(now, Allowance::forever(Amount::from_units(PLENTY)));
        DomainUser { domains: Domains::new(DomainOptions::default()), lease, full_at: None }
    }

    /// The hits that count as far as the client knows; absent where that is as many as are allowed, or nothing is known.
    pub(crate) fn known(&self, now: Time) -> Option<u32> {
        let decision = self.domains.peek(DOMAIN, 1, 1, now);
        (decision.is_granted() && decision.ground == Ground::Policies)
            .then(|| decision.hits_in_tier.saturating_sub(1))
    }
}

// === drivers ===

impl Simulation {
    /// The clients of a plan share its domain, if it has one.
    pub(super) fn share_domain(&mut self, plan: &SimulationPlan) {
        let Some(domain) = &plan.domain else { return };
        let shared = SharedDomain::new(self.seed, domain, Time::ZERO + plan.faults.until);
        self.resources[0].domains = Some(shared.first());
        self.domain = Some(Box::new(shared));
    }

    /// The process of a client begins, and with it the domain in it.
    pub(super) fn begin_domain(&mut self, client: u32) {
        let now = self.local(Actor::Client(client));
        let serves = self.domain_hold(client).is_some();
        if let Some(shared) = self.domain.as_mut().filter(|_| serves) {
            shared.users.insert(client, DomainUser::new(now));
        }
    }

    pub(super) fn end_domain(&mut self, client: u32) {
        if let Some(shared) = &mut self.domain {
            shared.users.remove(&client);
        }
    }

    /// The requests of a client for the domain begin to come.
    pub(super) fn ask_from(&mut self, client: u32) {
        let serves = self.domain_hold(client).is_some();
        let Some(shared) = self.domain.as_mut().filter(|_| serves) else { return };
        let pause = shared.rng.exponential(shared.plan.pause);
        self.later(pause, Event::Request(client));
    }

    /// The holding under which a client serves the domain.
    fn domain_hold(&self, client: u32) -> Option<u32> {
        let found = &self.clients[client as usize];
        let mut holds = found.holds.clone();
        let hold = holds.find(|&hold| self.holdings[hold as usize].resource == 0);
        hold.filter(|_| self.domain.is_some() && found.way == Way::Stream)
    }

    /// Tells the server what is due to be told.
    pub(super) fn tell_domain(&mut self, client: u32, now: Time) {
        let Some(shared) = &self.domain else { return };
        let Some(user) = shared.users.get(&client) else { return };
        let Mind::Ours(session) = &mut self.clients[client as usize].mind else { return };
        let resource = &self.resources[0].id;
        user.domains.attend(session.stream_of(resource));
        user.domains.take_earlier();
        if user.domains.next_deadline().is_some_and(|at| at <= now)
            && let Some(report) = user.domains.next_message(now, resource)
        {
            session.tell(report);
        }
    }

    /// When there is something to be told, by the clock of the client.
    pub(super) fn next_tell(&self, client: u32) -> Time {
        let user = self.domain.as_ref().and_then(|shared| shared.users.get(&client));
        user.and_then(|user| user.domains.next_deadline()).unwrap_or(Time::MAX)
    }

    pub(super) fn learn_domain(&mut self, client: u32, now: Time, news: &DomainNews) {
        self.note_full(client, now);
        if let Some(user) = self.domain.as_ref().and_then(|shared| shared.users.get(&client)) {
            user.domains.on_update(now, news);
        }
        self.note_full(client, now);
    }

    /// Notes whether as many hits count as are allowed, as far as a client knows.
    fn note_full(&mut self, client: u32, now: Time) {
        let really = self.now;
        let user = self.domain.as_mut().and_then(|shared| shared.users.get_mut(&client));
        if let Some(user) = user.filter(|user| user.domains.policies().is_some() && user.known(now).is_none())
        {
            user.full_at = Some(really);
        }
    }

    /// Puts the policies of a change in force.
    pub(super) fn follow_domain(&mut self, client: u32, change: &Change) {
        if change.resource == self.resources[0].id
            && let Some(user) = self.domain.as_ref().and_then(|shared| shared.users.get(&client))
        {
            user.domains.follow(change.domains.clone());
        }
    }
}

// === requests ===

impl Simulation {
    /// A request for the domain comes to a client.
    pub(super) fn request_domain(&mut self, client: u32) {
        let now = self.now;
        let Some(shared) = self.domain.as_mut().filter(|shared| now <= shared.asks_until) else { return };
        let pause = shared.rng.exponential(shared.plan.pause);
        self.later(pause, Event::Request(client));
        let actor = Actor::Client(client);
        let Some(hold) = self.domain_hold(client) else { return };
        let is_kept = self.holdings[hold as usize].stance == Stance::Kept;
        if !is_kept || self.process(actor).frozen.is_some() {
            return;
        }
        let local = self.local(actor);
        let Some(user) = self.domain.as_ref().and_then(|shared| shared.users.get(&client)) else { return };
        let decision = user.domains.request(&user.lease, DOMAIN, 1, 1, local);
        self.hear_decision(client, &decision);
        self.note_full(client, local);
        self.drive_client(client);
    }

    fn hear_decision(&mut self, client: u32, decision: &Decision) {
        let by_hits = matches!(decision.bound, Some(Bound::Tiers | Bound::Hard));
        let is_made = matches!(decision.ground, Ground::Policies | Ground::Unheard) && decision.is_granted();
        let numbers = [u64::from(decision.granted), u64::from(decision.hits_in_tier), decision.ground as u64];
        self.note(Speaker::Client(client), Happening::Serves, numbers);
        match () {
            () if is_made => self.judge_hit(client, decision.ground, decision.burst),
            () if !decision.is_granted() && by_hits => self.judge_refusal(client),
            () => {}
        }
    }

    /// Another limit is in force from here on.
    pub(super) fn change_domain(&mut self) -> bool {
        let now = self.now;
        let Some(shared) = &mut self.domain else { return false };
        let chosen = shared.rng.index(shared.policies.len());
        let limit = shared.plan.limits[chosen];
        shared.judge.change_limit(now, limit);
        self.resources[0].domains = Some(Arc::clone(&shared.policies[chosen]));
        self.note(Speaker::Simulation, Happening::Limits, [limit.into(), 0, 0]);
        self.spread_configuration();
        true
    }

    /// When the faults are over the domain is asked for again, and all who serve it hear of each other within the time
    /// that is stated.
    ///
    /// # Errors
    /// When somebody has not heard of everybody, or of more than there was: rule 30.
    pub fn judge_shared(&mut self) -> Result<(), Box<Violation>> {
        let Some(shared) = &mut self.domain else { return Ok(()) };
        let window = shared.plan.window;
        shared.asks_until = self.now + window;
        let clients = 0..self.clients.len() as u32;
        clients.for_each(|client| self.ask_from(client));
        self.pass(window + self.settling())?;
        self.judge_known();
        self.look()?;
        // What was done ceases to count, and nothing is told of it any more.
        self.pass(window * 2 + Duration::from_secs(20))
    }
}
