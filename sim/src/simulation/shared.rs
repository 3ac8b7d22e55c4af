//! The domain that clients share: its requests, and what the driver of a client has to do with it.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::session::Change;
use lessor_client::{Bound, Decision, Ground};
use lessor_proto::Time;
use lessor_proto::message::DomainNews;

use super::{Event, Simulation};
use crate::actor::Actor;
use crate::client::Mind;
use crate::holding::Stance;
use crate::oracle::{Oracle, Violation};
use crate::plan::{SimulationPlan, Way};
use crate::shared_domain::{DOMAIN, DomainUser, SharedDomain};
use crate::trace::{Happening, Speaker};

// === drivers ===

impl Simulation {
    /// The clients of a plan share its domain, if it has one.
    pub(super) fn share_domain(&mut self, plan: &SimulationPlan) {
        let Some(domain) = &plan.domain else { return };
        let shared = SharedDomain::new(self.rng.seed(), domain, Time::ZERO + plan.faults.until);
        self.resources[0].domains = Some(shared.first());
        self.population.domain = Some(Box::new(shared));
        self.oracle.share(domain);
    }

    /// The process of a client begins, and with it the domain in it.
    pub(super) fn begin_domain(&mut self, client: u32) {
        let now = self.local(Actor::Client(client));
        let serves = self.domain_hold(client).is_some();
        if let Some(shared) = self.population.domain.as_mut().filter(|_| serves) {
            shared.users.insert(client, DomainUser::new(now));
        }
    }

    pub(super) fn end_domain(&mut self, client: u32) {
        if let Some(shared) = &mut self.population.domain {
            shared.users.remove(&client);
        }
    }

    /// The requests of a client for the domain begin to come.
    pub(super) fn ask_from(&mut self, client: u32) {
        let serves = self.domain_hold(client).is_some();
        let Some(shared) = self.population.domain.as_mut().filter(|_| serves) else { return };
        let pause = shared.rng.exponential(shared.plan.pause);
        self.later(pause, Event::Request(client));
    }

    /// The holding under which a client serves the domain.
    fn domain_hold(&self, client: u32) -> Option<u32> {
        let found = &self.population.clients[client as usize];
        let mut holds = found.holds.clone();
        let hold = holds.find(|&hold| self.population.holdings[hold as usize].resource == 0);
        hold.filter(|_| self.population.domain.is_some() && found.way == Way::Stream)
    }

    /// Tells the server what is due to be told.
    pub(super) fn tell_domain(&mut self, client: u32, now: Time) {
        let Some(shared) = &self.population.domain else { return };
        let Some(user) = shared.users.get(&client) else { return };
        let Mind::Ours(session) = &mut self.population.clients[client as usize].mind else { return };
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
        let user = self.population.domain.as_ref().and_then(|shared| shared.users.get(&client));
        user.and_then(|user| user.domains.next_deadline()).unwrap_or(Time::MAX)
    }

    pub(super) fn learn_domain(&mut self, client: u32, now: Time, news: &DomainNews) {
        self.note_full(client, now);
        if let Some(user) = self.population.domain.as_ref().and_then(|shared| shared.users.get(&client)) {
            user.domains.on_update(now, news);
        }
        self.note_full(client, now);
    }

    /// Notes whether as many hits count as are allowed, as far as a client knows.
    fn note_full(&mut self, client: u32, now: Time) {
        let really = self.now;
        let user = self.population.domain.as_mut().and_then(|shared| shared.users.get_mut(&client));
        if let Some(user) = user.filter(|user| user.domains.policies().is_some() && user.known(now).is_none())
        {
            user.full_at = Some(really);
        }
    }

    /// Puts the policies of a change in force.
    pub(super) fn follow_domain(&mut self, client: u32, change: &Change) {
        if change.resource == self.resources[0].id
            && let Some(user) = self.population.domain.as_ref().and_then(|shared| shared.users.get(&client))
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
        let Some(shared) = self.population.domain.as_mut().filter(|shared| now <= shared.asks_until) else {
            return;
        };
        let pause = shared.rng.exponential(shared.plan.pause);
        self.later(pause, Event::Request(client));
        let actor = Actor::Client(client);
        let Some(hold) = self.domain_hold(client) else { return };
        let is_kept = self.population.holdings[hold as usize].stance == Stance::Kept;
        if !is_kept || self.process(actor).frozen.is_some() {
            return;
        }
        let local = self.local(actor);
        let Some(user) = self.population.domain.as_ref().and_then(|shared| shared.users.get(&client)) else {
            return;
        };
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
            () if is_made => {
                self.consult(|oracle, facts| {
                    oracle.judge_hit(facts, client, decision.ground, decision.burst);
                });
            }
            () if !decision.is_granted() && by_hits => {
                self.consult(|oracle, facts| oracle.judge_refusal(facts, client));
            }
            () => {}
        }
    }

    /// Another limit is in force from here on.
    pub(super) fn change_domain(&mut self) -> bool {
        let now = self.now;
        let Some(shared) = &mut self.population.domain else { return false };
        let chosen = shared.rng.index(shared.policies.len());
        let limit = shared.plan.limits[chosen];
        self.oracle.change_domain_limit(now, limit);
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
        let Some(shared) = &mut self.population.domain else { return Ok(()) };
        let window = shared.plan.window;
        shared.asks_until = self.now + window;
        let clients = 0..self.population.clients.len() as u32;
        clients.for_each(|client| self.ask_from(client));
        self.pass(window + self.facts().settling())?;
        self.consult(Oracle::judge_known);
        self.look()?;
        // What was done ceases to count, and nothing is told of it any more.
        self.pass(window * 2 + Duration::from_secs(20))
    }
}
