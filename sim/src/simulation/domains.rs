//! Domains with leases of their own: what programs ask of them, and what the driver of a client does about that.

use std::time::Duration;

use lessor_client::Rung;
use lessor_client::internals::session::Change;
use lessor_proto::{Amount, Time};

use super::{Event, Simulation};
use crate::actor::Actor;
use crate::holding::Stance;
use crate::program::{Hit, Program};
use crate::resource::Resource;

// === impl Simulation ===

impl Simulation {
    /// Whether a holding is the lease of a domain, which follows from what its program asks of that.
    pub(super) fn is_sublease(&self, hold: u32) -> bool {
        self.resources[usize::from(self.population.holdings[hold as usize].resource)].domain.is_some()
    }

    /// Whether a resource lends to domains, or is the lease of one.
    pub(super) fn has_domains(&self, resource: usize) -> bool {
        let lends = |other: &Resource| other.domain.is_some_and(|domain| usize::from(domain.of) == resource);
        self.resources[resource].domain.is_some() || self.resources.iter().any(lends)
    }

    /// The holding of the resource whose domain has the lease `hold`.
    fn lender_of(&self, hold: u32) -> Option<u32> {
        let holding = &self.population.holdings[hold as usize];
        let domain = self.resources[usize::from(holding.resource)].domain?;
        let mut holds = self.population.clients[holding.client as usize].holds.clone();
        holds.find(|&other| self.population.holdings[other as usize].resource == domain.of)
    }

    /// A program asks for some hits of a domain, as long as there are faults, and is quiet now and then for so long that the
    /// lease is given back.
    pub(super) fn use_domain(&mut self, hold: u32) {
        if !self.faulty() {
            return;
        }
        let pause = match self.rng.chance(30) {
            true => self.rng.time(Duration::from_secs(10), Duration::from_secs(20)),
            false => self.rng.time(Duration::from_millis(20), Duration::from_millis(400)),
        };
        self.later(pause, Event::Use(hold));
        let most = self.rng.between(1, 6);
        self.ask_domain(hold, most);
    }

    /// A program asks for hits of a domain until it has `most` or is refused. What was granted is judged.
    pub(crate) fn ask_domain(&mut self, hold: u32, most: u64) {
        let Some(lender) =
            self.lender_of(hold).filter(|&it| self.population.holdings[it as usize].stance == Stance::Kept)
        else {
            return;
        };
        let (client, resource) = (
            self.population.holdings[hold as usize].client,
            self.population.holdings[hold as usize].resource,
        );
        let local = self.local(Actor::Client(client));
        let id = self.resources[usize::from(resource)].id.clone();
        let Some((_, domain)) = id.domained() else { return };
        let (mut made, mut granted) = (0, 0);
        while made < most
            && let Some(program) = self.population.programs.get_mut(lender)
        {
            match program.ask(domain, local) {
                Hit::Granted => granted += 1,
                Hit::Sent => {}
                Hit::Unfounded => self.oracle.fail(1, || {
                    format!(
                        "client {client} is let through for {domain:?}, and its leases did not bring that"
                    )
                }),
                Hit::Passed => {
                    self.let_pass(lender);
                    break;
                }
                Hit::Denied(_) => break,
            }
            made += 1;
        }
        self.progress.counts.hits += made;
        self.consult(|oracle, facts| oracle.watch_domain(facts, resource, made));
        if granted > 0 {
            let lender = self.population.holdings[lender as usize].resource;
            self.consult(|oracle, facts| oracle.watch_hits(facts, lender, granted));
        }
        self.exchange_units(client, local);
        self.drive_client(client);
    }

    /// A client hears what it may use of the lease of a domain, and so does that.
    pub(super) fn believe_of_domain(&mut self, hold: u32, change: &Change) {
        let client = self.population.holdings[hold as usize].client;
        let now = self.local(Actor::Client(client));
        if change.rung == Rung::Waiting {
            self.population.holdings[hold as usize].begin_anew();
        }
        let amount = change.allowance.capacity.unwrap_or(Amount::MAX);
        if self.tells_domain(hold, change.allowance) {
            self.population.holdings[hold as usize].told = amount.as_micros();
            let lender = self.lender_of(hold);
            let program = lender.and_then(|lender| self.population.programs.get_mut(lender));
            if let Some(leasing) = program.and_then(Program::leasing) {
                leasing.apply(now, change);
            }
        }
        self.adopt(hold, amount, change.allowance.until);
        self.consult(|oracle, facts| oracle.watch_parts(facts, hold));
    }

    /// The domains of a resource go by the policies that came with its last grant.
    pub(super) fn follow_policies(&mut self, hold: u32) {
        let holding = &self.population.holdings[hold as usize];
        let id = &self.resources[usize::from(holding.resource)].id;
        let Some(session) = self.population.clients[holding.client as usize].mind.session() else { return };
        if let Some(leasing) = self.population.programs.get_mut(hold).and_then(Program::leasing) {
            leasing.follow(session.policies(id));
        }
    }

    /// The driver of a client asks for the leases that domains are to have, and gives back those that they have not used in a
    /// while.
    pub(super) fn look_at_domains(&mut self, client: u32, now: Time) {
        if self.population.programs.is_empty() {
            return;
        }
        let found = &mut self.population.clients[client as usize];
        let Some(session) = found.mind.session() else { return };
        for hold in found.holds.clone() {
            let holding = &self.population.holdings[hold as usize];
            let leasing = self.population.programs.get_mut(hold).and_then(Program::leasing);
            if let Some(leasing) = leasing.filter(|_| holding.stance == Stance::Kept) {
                leasing.drive(now, holding.demand.priority, session);
            }
        }
    }

    /// When the driver of a client looks at its domains again, by its clock.
    pub(super) fn next_domain(&mut self, client: u32) -> Time {
        if self.population.programs.is_empty() {
            return Time::MAX;
        }
        let programs = &mut self.population.programs;
        let holds = self.population.clients[client as usize].holds.clone();
        let looks = holds.filter_map(|hold| Some(programs.get_mut(hold)?.leasing()?.next_look()));
        looks.min().unwrap_or(Time::MAX)
    }

    /// The domains of a resource that its program has let go of give their leases back.
    pub(super) fn leave_domains(&mut self, hold: u32, now: Time) {
        let client = self.population.holdings[hold as usize].client;
        let Some(session) = self.population.clients[client as usize].mind.session() else { return };
        if let Some(leasing) = self.population.programs.get_mut(hold).and_then(Program::leasing) {
            leasing.leave(now, session);
        }
    }
}
