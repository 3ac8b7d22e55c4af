//! Resources that become of another kind, and programs that hear of it and come back.

use std::time::Duration;

use lessor_client::internals::session::Change;
use lessor_client::{Failure, Fault};
use lessor_proto::{Amount, Time};
use lessor_server::repository::{Kind, Legacy};

use super::{Event, Simulation};
use crate::actor::Actor;
use crate::holding::{Holding, Stance};
use crate::plan::Way;
use crate::trace::{Happening, Speaker};

/// The time after which a program that lets go of a resource looks whether it has been given back.
const LOOK: Duration = Duration::from_millis(100);

// === impl Simulation ===

impl Simulation {
    /// A rate becomes a gauge from here on, or a gauge a rate; in half of the cases as its root begins anew.
    pub(super) fn change_kind(&mut self) -> bool {
        let index = self.rng.index(self.resources.len());
        let (root, with) = (self.tree.sites[0].tasks.clone(), self.rng.below(4));
        let resource = &self.resources[index];
        // Only rates have floors, and what Doorman's clients go on with is of a rate.
        let floor = resource.id.floor();
        let has_floor = self.resources.iter().any(|other| other.id == floor);
        if self.has_domains(index)
            || self.has_second(index)
            || resource.window.is_some()
            || resource.id.is_floor()
            || has_floor
            || matches!(resource.legacy, Legacy::Sticky { .. })
        {
            return false;
        }
        let resource = &mut self.resources[index];
        resource.kind = other(resource.kind);
        let kind = resource.kind;
        if kind == Kind::Gauge {
            let capacity = resource.capacity.as_micros();
            resource.capacity = Amount::from_micros(capacity - capacity % Amount::MICROS_PER_UNIT);
        }
        self.note(Speaker::Simulation, Happening::Kind, [index as u64, kind as u64, 0]);
        self.tell_doormans(index, kind);
        self.spread_configuration();
        match with {
            0 => _ = self.tree.sites[0].head.is_some_and(|head| self.overthrow(head)),
            1 => root.for_each(|task| _ = self.overthrow(task)),
            _ => {}
        }
        true
    }

    /// Makes clients of Doorman's want whole units of a gauge, as their operator would: those that have crashed as well, which
    /// come back with that.
    fn tell_doormans(&mut self, resource: usize, kind: Kind) {
        for hold in 0..self.population.holdings.len() as u32 {
            let Holding { client, resource: held, demand, .. } = self.population.holdings[hold as usize];
            let is_told = kind == Kind::Gauge && self.population.clients[client as usize].way == Way::Legacy;
            if is_told && usize::from(held) == resource {
                self.want(hold, demand.wants.ceil());
            }
        }
    }

    /// The kind for which a holding is wanted. Clients of Doorman's do not know of any.
    pub(super) fn kind_of(&self, holding: &Holding) -> Kind {
        match self.population.clients[holding.client as usize].way {
            Way::Legacy => self.resources[usize::from(holding.resource)].kind,
            Way::Stream | Way::Poll => holding.taken_as.kind,
        }
    }

    /// A program that is refused, as the resource is of the other kind, lets go of it after a while and comes back.
    pub(super) fn hear_of_kind(&mut self, hold: u32, change: &Change) {
        let Some(Fault::Failed(Failure::Refused(why))) = &change.fault else { return };
        let holding = &self.population.holdings[hold as usize];
        let says = match holding.taken_as.kind {
            Kind::Rate => format!("opens {:?} as a rate; wanted a gauge", change.resource.as_str()),
            Kind::Gauge => format!("opens {:?} as a gauge; wanted a rate", change.resource.as_str()),
        };
        if holding.taken_as.reopens || holding.stance != Stance::Kept || !why.contains(&says) {
            return;
        }
        let life = self.process(Actor::Client(holding.client)).life;
        self.population.holdings[hold as usize].taken_as.reopens = true;
        let pause = self.rng.time(Duration::ZERO, Duration::from_secs(2));
        self.later(pause, Event::Reopen(hold, life));
    }

    /// A program lets go of a resource of which it has heard that it is of the other kind, and takes it as that when everything
    /// has been given back.
    pub(super) fn reopen(&mut self, hold: u32, life: u32) {
        let holding = &self.population.holdings[hold as usize];
        let client = holding.client;
        if !holding.taken_as.reopens || self.process(Actor::Client(client)).life != life {
            return;
        }
        if holding.stance != Stance::Gone {
            if holding.stance == Stance::Kept {
                let now: Time = self.local(Actor::Client(client));
                self.give_up(hold, now);
                self.drive_client(client);
            }
            return self.later(LOOK, Event::Reopen(hold, life));
        }
        let holding = &mut self.population.holdings[hold as usize];
        (holding.taken_as.kind, holding.taken_as.reopens) = (other(holding.taken_as.kind), false);
        // It knows what it wants of the other kind.
        holding.demand.is_measured = false;
        if holding.taken_as.kind == Kind::Gauge {
            holding.demand.wants = holding.demand.wants.ceil();
        }
        let numbers = [holding.resource.into(), holding.taken_as.kind as u64, 0];
        self.note(Actor::Client(client).who(), Happening::Reopens, numbers);
        self.begin_program(hold);
        self.take(hold, life);
    }
}

fn other(kind: Kind) -> Kind {
    match kind {
        Kind::Rate => Kind::Gauge,
        Kind::Gauge => Kind::Rate,
    }
}
