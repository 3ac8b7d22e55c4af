//! Programs: how they use what their clients may, and what the driver of a client has to do with it.

use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_proto::{Amount, Time};
use lessor_server::repository::Kind;

use super::holder::bands;
use super::{Event, Simulation};
use crate::actor::Actor;
use crate::holding::{Holding, Stance, StatedDemand};
use crate::plan::{Scrutiny, Way};
use crate::program::measured::Measured;
use crate::program::{Hit, Program};
use crate::resource::Resource;
use crate::trace::Happening;

/// The interval at which a driver looks at what is in use, in nanoseconds, when nothing else happens.
const LOOK: u64 = 200_000_000;
/// Hits that a program tries in a row, at the most.
const ROW: u32 = 6;
/// Hits at one moment, where nothing is limited.
const MOST_AT_ONCE: u32 = 100;

// === programs ===

impl Simulation {
    /// The program behind a holding that has just been made begins to use it, while there are faults.
    pub(super) fn use_from(&mut self, hold: u32) {
        if self.rules.watch == Scrutiny::Close && self.faulty() {
            self.later(Duration::from_secs(1), Event::Use(hold));
        }
    }

    /// A process begins, and with it the programs in it. A gauge on Doorman's wire has none: what is in use cannot be said
    /// there.
    pub(super) fn begin_program(&mut self, hold: u32) {
        let holding = &self.population.holdings[hold as usize];
        let kind = self.kind_of(holding);
        let legacy = self.population.clients[holding.client as usize].way == Way::Legacy;
        let watched = self.rules.watch == Scrutiny::Close && !(legacy && kind == Kind::Gauge);
        let from = holding.demand.is_measured.then(|| self.local(Actor::Client(holding.client)));
        let resource = usize::from(holding.resource);
        let domains =
            (watched && !legacy && self.has_domains(resource)).then(|| self.resources[resource].id.clone());
        let watched = watched && !self.is_derived(hold);
        // What measures a demand looks into its limiter, which moves units within.
        let is_compared = from.is_none() && self.has_second(resource);
        let program = watched.then(|| match self.resources[resource].window {
            Some(window) => self.window_program(hold, window),
            None => Program::new(kind, from).with_domains(domains).compared(is_compared),
        });
        self.population.programs.set(hold, program);
    }

    /// A program does something: it ends operations and begins others, or tries some hits.
    pub(super) fn use_some(&mut self, hold: u32) {
        if self.is_sublease(hold) {
            return self.use_domain(hold);
        }
        if self.population.holdings[hold as usize].taken_as.is_companion {
            return;
        }
        let actor = Actor::Client(self.population.holdings[hold as usize].client);
        if !self.faulty() {
            if let Some(program) = self.population.programs.get_mut(hold) {
                program.finish(Time::MAX);
            }
            self.rest_window(hold);
            return self.note_use(hold);
        }
        let pause = self.rng.time(Duration::from_millis(50), Duration::from_secs(2));
        self.later(pause, Event::Use(hold));
        let local = self.local(actor);
        let (number, length) = (self.rng.between(1, 8), self.rng.exponential(Duration::from_secs(2)));
        let stops = !self.rules.settings.overstays;
        let Some(program) = self.population.programs.get_mut(hold) else { return };
        match program {
            Program::Uses(_) => self.use_window(hold, number),
            Program::Units(_) => {
                program.finish(self.now);
                if stops {
                    program.stop_overdue(local);
                }
                let units = self.population.holdings[hold as usize].amount / Amount::MICROS_PER_UNIT;
                let most = u32::try_from(units).unwrap_or(u32::MAX).div_ceil(number as u32).max(1);
                self.progress.counts.operations += u64::from(program.begin(local, most, self.now + length));
                self.note_use(hold);
            }
            Program::Hits(_) => {
                if program.measured().is_some() && self.rng.chance(200) {
                    // It is quiet for a while.
                    return;
                }
                self.hit(hold, local);
            }
        }
    }

    /// A program is let through with what its lease refuses: an operator has said so.
    pub(super) fn let_pass(&mut self, hold: u32) {
        self.progress.counts.passed += 1;
        if self.progress.counts.unenforced == 0 {
            let client = self.population.holdings[hold as usize].client;
            self.oracle.fail(1, || {
                format!(
                    "client {client} is let through against its lease, and nobody has said that it may be"
                )
            });
        }
    }

    /// The driver of a client looks at what a program has counted while everything was let pass.
    pub(super) fn say_passed(&mut self, hold: u32) {
        let Some(counted) = self.population.programs.get(hold).map(Program::unenforced) else { return };
        self.judge_second(hold);
        let holding = &self.population.holdings[hold as usize];
        let id = &self.resources[usize::from(holding.resource)].id;
        if let Some(session) = self.population.clients[holding.client as usize].mind.session() {
            session.set_unenforced(id, counted);
        }
        self.want_second(hold);
    }

    /// A row of hits, each as soon as it may be: the bucket is emptied, and what comes in is taken as it comes.
    fn hit(&mut self, hold: u32, local: Time) {
        let (mut tried, mut granted) = (0, 0);
        let resource = self.population.holdings[hold as usize].resource;
        while let Some(program) = self.population.programs.get_mut(hold).filter(|_| tried < MOST_AT_ONCE) {
            tried += 1;
            match program.hit(local) {
                Hit::Granted => granted += 1,
                Hit::Sent => self.progress.counts.hits += 1,
                Hit::Unfounded => {
                    granted += 1;
                    let client = self.population.holdings[hold as usize].client;
                    self.oracle.fail(1, || {
                        format!("client {client} is let through {granted} times, and its leases did not bring that")
                    });
                }
                Hit::Passed => {
                    self.let_pass(hold);
                    break;
                }
                Hit::Denied(retry) => {
                    if let Some(retry) = retry.filter(|_| tried < ROW && self.rng.chance(600)) {
                        let clock =
                            self.process(Actor::Client(self.population.holdings[hold as usize].client)).clock;
                        self.queue.put(clock.when(local + retry), Event::Hit(hold));
                    }
                    break;
                }
            }
        }
        if granted > 0 {
            self.progress.counts.hits += granted;
            self.consult(|oracle, facts| oracle.watch_hits(facts, resource, granted));
        }
        let client = self.population.holdings[hold as usize].client;
        let measured = self.population.programs.get(hold).and_then(Program::measured);
        let knocks = measured.is_some_and(Measured::has_knocked);
        if self.exchange_units(client, self.local(Actor::Client(client))) || knocks {
            self.drive_client(client);
        }
    }

    /// Hands limiters the units that were sent for them, and the session what they ask for. Whether there was anything.
    pub(super) fn exchange_units(&mut self, client: u32, now: Time) -> bool {
        if self.population.programs.is_empty() {
            return false;
        }
        let found = &mut self.population.clients[client as usize];
        let Some(session) = found.mind.session() else { return false };
        let mut exchanged = false;
        let holds = found.holds.clone();
        while let Some((resource, sent)) = session.next_units() {
            let of = |hold: &u32| {
                let resource_of = usize::from(self.population.holdings[*hold as usize].resource);
                self.resources[resource_of].id == resource
            };
            let program = holds.clone().find(of).and_then(|hold| self.population.programs.get_mut(hold));
            if let Some(program) = program {
                program.bring(sent, now);
            }
        }
        for hold in holds {
            let resource = usize::from(self.population.holdings[hold as usize].resource);
            if let Some(wish) = self.population.programs.get(hold).and_then(|program| program.wish(now)) {
                exchanged |= session.wish(&self.resources[resource].id, wish);
            }
        }
        exchanged
    }

    /// A hit that was denied is tried again.
    pub(super) fn hit_again(&mut self, hold: u32) {
        let local = self.local(Actor::Client(self.population.holdings[hold as usize].client));
        // However long it was to wait: nobody tries anything any more when the faults are over.
        if self.faulty() && matches!(self.population.programs.get(hold), Some(Program::Hits(_))) {
            self.hit(hold, local);
        }
    }

    /// Operations stop at the end of their permits, when their process runs.
    pub(crate) fn stop_overdue(&mut self, hold: u32) {
        let local = self.local(Actor::Client(self.population.holdings[hold as usize].client));
        if self.population.holdings[hold as usize].taken_as.is_window {
            // The clock may have stood still as well.
            self.note_use(hold);
        }
        if !self.rules.settings.overstays
            && let Some(program @ Program::Units(_)) = self.population.programs.get_mut(hold)
        {
            program.stop_overdue(local);
            self.note_use(hold);
        }
    }
}

// === drivers ===

impl Simulation {
    /// The enforcer behind a holding is told what may be used.
    pub(super) fn allow(&mut self, hold: u32, now: Time, allowance: Allowance) {
        let tells = self.tells_of(hold, allowance);
        let Some(program) = self.population.programs.get_mut(hold) else { return };
        program.note(now, allowance);
        if tells {
            program.allow(now, allowance);
        }
        self.note_use(hold);
    }

    /// Puts into force what the client hears of a holding: nothing more is given out of one that the program has
    /// let go of.
    pub(super) fn put_into_force(&mut self, hold: u32, now: Time, allowance: Allowance) {
        match self.population.holdings[hold as usize].stance {
            Stance::Kept => self.allow(hold, now, allowance),
            Stance::Leaving => {
                self.allow(hold, now, Allowance { capacity: Some(Amount::ZERO), ..allowance });
            }
            Stance::Gone => {}
        }
    }

    /// Another thread of the program is faster than the driver, and takes units just before a change is put into force.
    pub(super) fn take_before(&mut self, hold: u32, local: Time) {
        if !self.faulty() || !matches!(self.population.programs.get(hold), Some(Program::Units(_))) {
            return;
        }
        let (number, length) = (self.rng.below(4), self.rng.exponential(Duration::from_secs(2)));
        if let Some(program) = self.population.programs.get_mut(hold).filter(|_| number > 0) {
            let begun = program.begin(local, u32::MAX >> (number * 8), self.now + length);
            self.progress.counts.operations += u64::from(begun);
            self.note_use(hold);
        }
    }

    /// Says what of a gauge is in use, as drivers do after each change that they have put into force.
    pub(super) fn say_in_use(&mut self, hold: u32) {
        let holding = &self.population.holdings[hold as usize];
        let client = holding.client;
        let resource = &self.resources[usize::from(holding.resource)];
        let now = self.local(Actor::Client(client));
        // Uses of a window end by themselves.
        let uses = self.population.programs.get(hold).filter(|_| holding.taken_as.is_window);
        let in_use = uses.map_or(Amount::from_micros(holding.permits.in_use), |uses| uses.in_use(now));
        if self.population.holdings[hold as usize].taken_as.kind == Kind::Gauge
            && let Some(session) = self.population.clients[client as usize].mind.session()
        {
            session.set_in_use(now, &resource.id, in_use);
        }
    }

    /// The program lets go of a holding: nothing is allowed, and it is given back when nothing is in use. Permits that are
    /// out last as long as the lease.
    pub(super) fn give_up(&mut self, hold: u32, now: Time) {
        let holding = &mut self.population.holdings[hold as usize];
        holding.stance = Stance::Leaving;
        let until = holding.until;
        self.allow(hold, now, Allowance { until, ..Allowance::NOTHING });
        self.leave_domains(hold, now);
        self.leave_second(hold, now);
        self.population.clients[self.population.holdings[hold as usize].client as usize].next_look = now;
    }

    /// Notes that the use of a holding may have changed: the oracle counts it anew, and the driver looks at it when
    /// it does.
    pub(super) fn note_use(&mut self, hold: u32) {
        let Some(program) = self.population.programs.get(hold) else { return };
        let clock = self.process(Actor::Client(self.population.holdings[hold as usize].client)).clock;
        let (used, in_use) = (program.used(self.now, clock), program.in_use(clock.at(self.now)));
        let holding = &mut self.population.holdings[hold as usize];
        if used == holding.permits.used {
            return;
        }
        let before = std::mem::replace(&mut holding.permits.in_use, in_use.as_micros());
        holding.permits.used = used;
        let (client, resource) = (holding.client, holding.resource);
        self.recount(hold);
        if before == in_use.as_micros() {
            return;
        }
        let actor = Actor::Client(client);
        self.note(actor.who(), Happening::InUse, [resource.into(), in_use.as_micros(), 0]);
        let local = self.local(actor);
        let look = Time::from_nanos((local.as_nanos() / LOOK + 1) * LOOK);
        let found = &mut self.population.clients[client as usize];
        found.next_look = found.next_look.min(look);
        self.wake_at(actor, look);
    }

    /// The driver of a client looks at what is in use, and gives back what the program has let go of.
    pub(super) fn look_at_use(&mut self, client: u32, now: Time) {
        let found = &mut self.population.clients[client as usize];
        if now < found.next_look {
            return;
        }
        found.next_look = Time::MAX;
        self.look_at_windows(client, now);
        let holds = self.population.clients[client as usize].holds.clone();
        let Some(session) = self.population.clients[client as usize].mind.session() else { return };
        for hold in holds {
            let holding = &mut self.population.holdings[hold as usize];
            let Resource { id, domain, .. } = &self.resources[usize::from(holding.resource)];
            if domain.is_some() || holding.taken_as.is_companion {
                continue;
            }
            let program = self.population.programs.get(hold);
            let in_use = program.map_or(Amount::ZERO, |program| program.in_use(now));
            if holding.stance == Stance::Leaving {
                if in_use == Amount::ZERO {
                    holding.stance = Stance::Gone;
                    session.remove(now, id);
                    continue;
                }
                session.set_bands(
                    now,
                    id,
                    bands(&Holding {
                        demand: StatedDemand { wants: 0.0, ..holding.demand },
                        ..holding.clone()
                    }),
                );
            }
            session.set_in_use(now, id, in_use);
        }
        for hold in self.population.clients[client as usize].holds.clone() {
            self.want_second(hold);
        }
    }
}

// === demands ===

impl Simulation {
    /// Whether it is measured what is wanted of a holding. When the faults are over programs state it.
    pub(super) fn is_measured_now(&self, hold: u32) -> bool {
        self.faulty()
            && self.population.programs.get(hold).is_some_and(|program| program.measured().is_some())
    }

    /// When the driver of a client looks at a demand again, by its clock.
    pub(super) fn next_demand(&self, client: u32) -> Time {
        if self.population.programs.is_empty() {
            return Time::MAX;
        }
        let holds = self.population.clients[client as usize].holds.clone();
        let measured = holds.filter_map(|hold| self.population.programs.get(hold)?.measured());
        measured.map(Measured::next_look).min().unwrap_or(Time::MAX)
    }

    /// The driver of a client says what was measured of demands, if it is time or something was refused.
    pub(super) fn look_at_demands(&mut self, client: u32, now: Time) {
        if self.population.programs.is_empty() {
            return;
        }
        let rests = !self.faulty();
        for hold in self.population.clients[client as usize].holds.clone() {
            let Some(program) = self.population.programs.get_mut(hold) else { continue };
            let Some(said) = program.say(now, rests) else { continue };
            let holding = &mut self.population.holdings[hold as usize];
            if holding.stance != Stance::Kept {
                continue;
            }
            holding.demand.wants = said.wants;
            let (bands, resource) = (bands(holding), holding.resource);
            self.note(
                Actor::Client(client).who(),
                Happening::Wants,
                [said.wants.to_bits(), resource.into(), 1],
            );
            let id = &self.resources[usize::from(resource)].id;
            if let Some(session) = self.population.clients[client as usize].mind.session() {
                session.set_peak(now, id, said.peak);
                session.set_bands(now, id, bands);
            }
            self.want_second(hold);
        }
    }
}

// === rules that can be taken out ===

#[cfg(feature = "mutations")]
impl Simulation {
    fn keeps(&self, rule: crate::mutation::DriverRule) -> bool {
        self.rules.mutation != Some(crate::mutation::Mutation::Driver(rule))
    }

    pub(super) fn says_before(&self) -> bool {
        !self.keeps(crate::mutation::DriverRule::UseSaidAfter)
    }

    pub(super) fn overlooks_pauses(&self) -> bool {
        !self.keeps(crate::mutation::DriverRule::PausesSeen)
    }

    /// Whether whoever opens a stream is held against the rules of access.
    pub(super) fn holds_rights(&self) -> bool {
        self.keeps(crate::mutation::DriverRule::RightsHeld)
    }

    /// Whether a stream ends when what its holder loses cannot be recalled.
    pub(super) fn ends_for_rights(&self) -> bool {
        self.keeps(crate::mutation::DriverRule::RevokedOrEnded)
    }

    /// Whether a domain hears what it may use from here on.
    pub(super) fn tells_domain(&self, hold: u32, allowance: Allowance) -> bool {
        let before = self.population.holdings[hold as usize].told;
        let is_less = allowance.capacity.is_some_and(|capacity| capacity.as_micros() < before);
        !is_less || self.keeps(crate::mutation::DriverRule::DomainTold)
    }

    fn tells_of(&self, hold: u32, allowance: Allowance) -> bool {
        let before = self.population.holdings[hold as usize].amount;
        let is_less = allowance.capacity.is_some_and(|capacity| capacity.as_micros() < before);
        !is_less || self.keeps(crate::mutation::DriverRule::LessTold)
    }
}

#[cfg(not(feature = "mutations"))]
#[expect(clippy::unused_self, reason = "the same calls with the feature and without")]
impl Simulation {
    pub(super) const fn says_before(&self) -> bool {
        false
    }

    pub(super) const fn overlooks_pauses(&self) -> bool {
        false
    }

    pub(super) const fn holds_rights(&self) -> bool {
        true
    }

    pub(super) const fn ends_for_rights(&self) -> bool {
        true
    }

    pub(super) const fn tells_domain(&self, _: u32, _: Allowance) -> bool {
        true
    }

    const fn tells_of(&self, _: u32, _: Allowance) -> bool {
        true
    }
}
