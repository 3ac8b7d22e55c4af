//! Second limits that are tried: what the driver of a client does about the companions of what it holds, with the real ones.

use lessor_client::Rung;
use lessor_client::internals::companions::AccompaniedUse;
use lessor_client::internals::session::Change;
use lessor_proto::{Amount, Time};

use super::Simulation;
use crate::actor::Actor;
use crate::holding::{Holding, Stance, StatedDemand};
use crate::program::Program;

// === impl Simulation ===

impl Simulation {
    /// Whether a holding follows from another one: it is the lease of a domain, or a companion.
    pub(super) fn is_derived(&self, hold: u32) -> bool {
        self.population.holdings[hold as usize].taken_as.is_companion || self.is_sublease(hold)
    }

    /// Whether a resource has a companion, or is one.
    pub(super) fn has_second(&self, resource: usize) -> bool {
        self.accompanied_and_companion(resource).iter().flatten().count() > 1
    }

    /// A resource, and the one that it is tried beside or that is tried beside it.
    pub(super) fn accompanied_and_companion(&self, resource: usize) -> [Option<usize>; 2] {
        let of = self.resources[resource].companion_of.map(usize::from);
        let is_it = |of: Option<u16>| of.is_some_and(|of| usize::from(of) == resource);
        let companion = || self.resources.iter().position(|found| is_it(found.companion_of));
        [Some(resource), of.or_else(companion)]
    }

    /// The companion of a holding, or what it is the companion of, if its client has it.
    fn other_of_two(&self, hold: u32) -> Option<u32> {
        let Holding { client, resource, .. } = self.population.holdings[hold as usize];
        let [_, other] = self.accompanied_and_companion(resource.into());
        let is_it =
            |hold: &u32| Some(usize::from(self.population.holdings[*hold as usize].resource)) == other;
        self.population.clients[client as usize].holds.clone().find(is_it)
    }

    /// The driver of a client asks for the companion of what it holds, or gives that back, as its grantor says.
    pub(super) fn hear_of_second(&mut self, hold: u32, is_tried: bool) {
        let Some(companion) = self.other_of_two(hold) else { return };
        let holding = &self.population.holdings[hold as usize];
        let (client, demand) = (holding.client, holding.demand);
        let now = self.local(Actor::Client(client));
        if !is_tried || holding.stance != Stance::Kept {
            return self.leave_second(hold, now);
        }
        let config = self.companion_config(holding);
        let counted = self.population.programs.get(hold).map(Program::counted_beside).unwrap_or_default();
        let id = &self.resources[usize::from(holding.resource)].id;
        let Some(session) = self.population.clients[client as usize].mind.session() else { return };
        let companions = self.population.companions.entry(client).or_default();
        companions.ask(now, (id, counted), config, |_| false, session);
        let kind = holding.taken_as.kind;
        let holding = &mut self.population.holdings[companion as usize];
        if holding.stance != Stance::Kept {
            holding.stance = Stance::Kept;
            holding.taken_as.kind = kind;
            holding.demand = StatedDemand { weight: 1, is_measured: false, ..demand };
            self.want_second(hold);
        }
    }

    /// The companion of a holding is given back, if there is one.
    pub(super) fn leave_second(&mut self, hold: u32, now: Time) {
        let Some(companion) = self.other_of_two(hold) else { return };
        let Holding { client, resource, .. } = self.population.holdings[hold as usize];
        let id = &self.resources[usize::from(resource)].id;
        let counted = self.population.programs.get(hold).map(Program::counted_beside).unwrap_or_default();
        let Some(session) = self.population.clients[client as usize].mind.session() else { return };
        let companions = self.population.companions.entry(client).or_default();
        if !companions.give_back(now, (id, counted), session) {
            return;
        }
        if let Some(program) = self.population.programs.get(hold) {
            program.try_beside(now, None);
        }
        self.population.holdings[companion as usize].stance = Stance::Gone;
        self.adopt(companion, Amount::ZERO, Time::ZERO);
    }

    /// A client hears what a second limit allows, if that is what the change is about, and so does its enforcer.
    pub(super) fn try_second(&mut self, client: u32, change: &Change) -> bool {
        let mut holds = self.population.clients[client as usize].holds.clone();
        let is_it = |hold: &u32| {
            let Holding { resource, taken_as, .. } = self.population.holdings[*hold as usize];
            taken_as.is_companion && self.resources[usize::from(resource)].id == change.resource
        };
        let Some(companion) = holds.find(is_it) else { return false };
        if change.rung == Rung::Waiting {
            self.population.holdings[companion as usize].begin_anew();
        }
        let changed =
            self.population.companions.get(&client).and_then(|companions| companions.changed(change));
        let (Some((_, allowance)), Some(hold)) = (changed, self.other_of_two(companion)) else { return true };
        let now = self.local(Actor::Client(client));
        let program = self.population.programs.get(hold);
        if let (Some(program), Some(session)) =
            (program, self.population.clients[client as usize].mind.session())
        {
            program.try_beside(now, allowance);
            session.set_in_use(now, &change.resource, program.in_use_beside());
        }
        let amount = change.allowance.capacity.unwrap_or(Amount::MAX);
        let is_new = self.population.holdings[companion as usize].sums.counted == 0;
        self.progress.counts.companions += u64::from(is_new && amount > Amount::ZERO);
        self.adopt(companion, amount, change.allowance.until);
        self.goes_by_lease(companion, change);
        true
    }

    /// Checks that a program is let through as it would be without a second limit.
    pub(super) fn judge_second(&mut self, hold: u32) {
        if self.population.programs.get(hold).is_some_and(Program::is_swayed) {
            let Holding { client, resource, .. } = self.population.holdings[hold as usize];
            self.oracle.fail(41, || {
                format!(
                    "client {client} is let through otherwise as a second limit is tried beside r{resource}"
                )
            });
        }
    }

    /// The companion of a holding wants from here on what that wants.
    pub(super) fn want_second(&mut self, hold: u32) {
        let companion =
            self.other_of_two(hold).filter(|&it| self.population.holdings[it as usize].is_asked());
        let holding = &self.population.holdings[hold as usize];
        let Some(companion) = companion.filter(|_| !holding.taken_as.is_companion) else { return };
        let (client, wants) = (holding.client, holding.demand.wants);
        let now = self.local(Actor::Client(client));
        let program = self.population.programs.get(hold);
        let usage = AccompaniedUse {
            wants,
            peak: program.and_then(Program::measured).and_then(|measured| measured.said().peak),
            in_use: program.map_or(Amount::ZERO, Program::in_use_beside),
            counted: program.map(Program::counted_beside).unwrap_or_default(),
        };
        let id = &self.resources[usize::from(holding.resource)].id;
        let Some(companions) = self.population.companions.get(&client) else { return };
        if let Some(session) = self.population.clients[client as usize].mind.session() {
            companions.want(now, id, usage, session);
            self.population.holdings[companion as usize].demand.wants = wants;
        }
    }
}
