//! What goes wrong at one moment, and whom it hits.

use std::time::Duration;

use lessor_proto::{Amount, Time};
use lessor_server::repository::Kind;

use super::{Event, ToHolder, ToNode, Town};
use crate::faults::Mischief;
use crate::plan::{ClientPlan, Hold, Way};
use crate::process::Party;
use crate::story::{What, Who};
use crate::stream::StreamRef;

// === impl Town ===

impl Town {
    /// One of that kind. Whether it hit anybody.
    pub(super) fn do_mischief(&mut self, kind: Mischief) -> bool {
        match kind {
            Mischief::Break => self.any_stream().is_some_and(|stream| self.break_stream(stream, 3)),
            Mischief::Silence => {
                let heard = self.dice.below(3) as u8;
                self.any_stream().is_some_and(|stream| self.break_stream(stream, heard))
            }
            Mischief::Stall => self.any_stream().is_some_and(|stream| self.stall(stream)),
            Mischief::Crash => self.any_client().is_some_and(|client| self.crash(client, true)),
            Mischief::Vanish => self.any_client().is_some_and(|client| self.crash(client, false)),
            Mischief::Leave => self.any_client().is_some_and(|client| self.leave(client)),
            Mischief::Twin => self.any_client().is_some_and(|client| self.twin(client)),
            Mischief::Drop => self.any_client().is_some_and(|client| self.drop_one(client)),
            Mischief::Freeze => {
                let until = self.spell();
                self.any_client().map(|client| self.freeze(Party::Client(client), until)).is_some()
            }
            Mischief::FreezeLeader => {
                let until = self.spell();
                self.any_led().map(|place| self.freeze(Party::Place(place), until)).is_some()
            }
            Mischief::LoseLeader => self.any_led().is_some_and(|place| self.overthrow(place)),
            Mischief::LoseBoth => self.lose_both(),
            Mischief::CutClient => self.any_client().is_some_and(|client| self.cut(Party::Client(client))),
            Mischief::CutPlace => {
                let place = self.any_place();
                place != 0 && self.cut(Party::Place(place))
            }
            Mischief::CutDoor => self.cut_door(),
            Mischief::Drift => self.drift(),
            Mischief::Capacity => self.change_capacity(),
            Mischief::Lease => self.change_lease(),
            Mischief::Template => self.remove_template(),
        }
    }

    fn any_client(&mut self) -> Option<u32> {
        let client = self.dice.index(self.clients.len()) as u32;
        self.clients[client as usize].lives().then_some(client)
    }

    fn any_place(&mut self) -> u32 {
        self.dice.index(self.places.len()) as u32
    }

    fn any_led(&mut self) -> Option<u32> {
        let place = self.any_place();
        self.is_led(place).then_some(place)
    }

    fn any_stream(&mut self) -> Option<StreamRef> {
        let count = self.streams.live().count();
        let chosen = self.dice.index(count);
        self.streams.live().nth(chosen)
    }
}

// === streams ===

impl Town {
    /// A stream breaks. Of `heard` the first bit says that the holder hears of it, the second that the node does.
    fn break_stream(&mut self, stream: StreamRef, heard: u8) -> bool {
        self.note(Who::Town, What::Breaks, [0, heard.into(), 0]);
        let now = self.now;
        let linger = self.dice.time(Duration::ZERO, Duration::from_millis(200));
        let only_one_way = heard == 0 && self.dice.chance(500);
        let upwards = self.dice.chance(500);
        let Some(found) = self.streams.get_mut(stream) else { return false };
        if !only_one_way || upwards {
            found.up_cut = found.up_cut.min(now + linger);
        }
        if !only_one_way || !upwards {
            found.down_cut = found.down_cut.min(now + linger);
        }
        let found = *found;
        if heard & 1 != 0 {
            let at = linger + self.dice.time(Duration::from_millis(1), Duration::from_millis(300));
            let failure = lessor_client::session::Failure::Unreachable("connection reset".to_owned());
            let mail = ToHolder::Closed { stream, failure, certain: true };
            self.later(at, Event::ToHolder { holder: found.holder, mail });
        }
        if heard & 2 != 0 {
            let at = linger + self.dice.time(Duration::from_millis(1), Duration::from_millis(300));
            let mail = ToNode::Gone { stream, certain: true };
            self.later(at, Event::ToNode { place: found.place, task: found.task, mail });
        }
        self.dies_out(stream);
        true
    }

    fn stall(&mut self, stream: StreamRef) -> bool {
        let until = self.spell();
        self.note(Who::Town, What::Stalls, [0, until.as_nanos(), 0]);
        let Some(found) = self.streams.get_mut(stream) else { return false };
        found.stalled = until;
        true
    }
}

// === clients ===

impl Town {
    fn crash(&mut self, client: u32, said: bool) -> bool {
        self.end_life(client, said);
        let back = self.spell();
        self.agenda.put(back, Event::Back(client));
        true
    }

    /// A client gives everything back, and its process ends when the last of it is on its way.
    fn leave(&mut self, client: u32) -> bool {
        let now = self.local(Party::Client(client));
        let frozen = self.process(Party::Client(client)).frozen.is_some();
        let holds = self.clients[client as usize].holds.clone();
        let uses = holds.clone().any(|hold| self.holdings[hold as usize].in_use > 0);
        let Some(session) = self.clients[client as usize].mind.session() else { return false };
        if frozen || uses {
            return false;
        }
        session.remove_all(now);
        self.drive_client(client);
        // Those who wait for the answer, and those who do not.
        let stays = self.dice.time(Duration::ZERO, Duration::from_secs(2));
        self.later(stays, Event::TwinEnds(client));
        let back = self.spell().max(self.now + stays);
        self.agenda.put(back, Event::Back(client));
        true
    }

    fn drop_one(&mut self, client: u32) -> bool {
        let party = Party::Client(client);
        let (now, process) = (self.local(party), self.process(party));
        let (frozen, life) = (process.frozen.is_some(), process.life);
        let holds = self.clients[client as usize].holds.clone();
        let hold = holds.start + self.dice.index(holds.len()) as u32;
        let holding = &self.holdings[hold as usize];
        let id = &self.resources[usize::from(holding.resource)].id;
        let Some(session) = self.clients[client as usize].mind.session() else { return false };
        if frozen || holding.in_use > 0 {
            return false;
        }
        session.remove(now, id);
        self.drive_client(client);
        let back = self.spell();
        self.agenda.put(back, Event::Take(hold, life));
        true
    }

    fn twin(&mut self, client: u32) -> bool {
        let found = &self.clients[client as usize];
        if found.way == Way::Legacy || found.twin_of.is_some() {
            return false;
        }
        let name = found.id.to_string();
        let (place, way) = (found.place, found.way);
        let hold = |hold: u32| {
            let held = &self.holdings[hold as usize];
            Hold { resource: held.resource, wants: held.wants, priority: held.priority }
        };
        let holds = found.holds.clone().map(hold).collect();
        let link = self.link(client);
        let plan = ClientPlan { name, place, link, way, holds };
        let before = |twin: &u32| {
            let twin = &self.clients[*twin as usize];
            twin.twin_of == Some(client) && !twin.lives()
        };
        let twin = match self.places[place as usize].clients.iter().copied().find(before) {
            Some(twin) => twin,
            None => self.admit(&plan, Some(client)),
        };
        self.begin_life(twin);
        let until = self.spell();
        self.agenda.put(until, Event::TwinEnds(twin));
        true
    }
}

// === places and the ways between them ===

impl Town {
    fn overthrow(&mut self, place: u32) -> bool {
        let said = self.dice.chance(500);
        let Some(task) = self.leading_task(place) else { return false };
        self.fall(place, said);
        self.places[place as usize].tasks[usize::from(task)].up = self.dice.chance(500);
        if self.dice.chance(500) {
            self.places[place as usize].rumour = None;
        }
        let back = self.spell();
        self.agenda.put(back, Event::Elect(place));
        true
    }

    fn lose_both(&mut self) -> bool {
        let place = self.any_place();
        let Some(parent) = self.places[place as usize].parent else { return false };
        let below = self.overthrow(place);
        self.overthrow(parent) || below
    }

    fn cut(&mut self, party: Party) -> bool {
        let until = self.spell();
        let directions = self.dice.between(1, 3);
        let process = self.process_mut(party);
        if directions & 1 != 0 {
            process.cut_up = until;
        }
        if directions & 2 != 0 {
            process.cut_down = until;
        }
        self.note(party.who(), What::Cut, [until.as_nanos(), directions, 0]);
        true
    }

    fn cut_door(&mut self) -> bool {
        let place = self.any_place();
        let until = self.spell();
        let directions = self.dice.between(1, 3);
        let found = &mut self.places[place as usize];
        if directions & 1 != 0 {
            found.door_in = until;
        }
        if directions & 2 != 0 {
            found.door_out = until;
        }
        self.note(Who::Place(place), What::Cut, [until.as_nanos(), directions + 4, 0]);
        true
    }

    fn drift(&mut self) -> bool {
        if !self.rules.odd_clocks {
            return false;
        }
        let (rate, now) = (self.odd_rate(), self.now);
        if self.dice.chance(500) {
            let Some(client) = self.any_client() else { return false };
            self.clients[client as usize].process.clock.set_rate(now, rate);
            self.note(Who::Client(client), What::Rate, [rate, 0, 0]);
            for hold in self.clients[client as usize].holds.clone() {
                self.recount(hold);
            }
            let deadline = self.clients[client as usize].mind.deadline();
            self.wake_at(Party::Client(client), deadline);
        } else {
            let place = self.any_place();
            let task = self.dice.index(self.places[place as usize].tasks.len());
            let found = &mut self.places[place as usize];
            found.tasks[task].clock.set_rate(now, rate);
            let leads = found.leader.as_ref().is_some_and(|leader| usize::from(leader.task) == task);
            if leads {
                found.process.clock = found.tasks[task].clock;
                self.note(Who::Place(place), What::Rate, [rate, 0, 0]);
                if self.process(Party::Place(place)).frozen.is_none() {
                    self.drive_place(place);
                }
            }
        }
        true
    }
}

// === configuration ===

impl Town {
    fn change_capacity(&mut self) -> bool {
        let index = self.dice.index(self.resources.len());
        let factor = self.dice.between(200, 1_800);
        let first = self.oracle.first_capacity(index);
        let resource = &mut self.resources[index];
        let mut capacity = first / 1_000 * factor;
        if resource.kind == Kind::Gauge {
            capacity -= capacity % Amount::MICROS_PER_UNIT;
        }
        resource.capacity = Amount::from_micros(capacity);
        self.note(Who::Town, What::Capacity, [index as u64, capacity, 0]);
        self.spread_configuration();
        true
    }

    fn change_lease(&mut self) -> bool {
        let place = self.any_place();
        let found = &mut self.places[place as usize];
        let least = self.rules.shortest_lease.max(found.terms.refresh_interval * 2).as_secs();
        let longest = self.dice.between(least, (2 * found.longest_lease.as_secs().min(30)).max(least));
        found.terms.lease_length = Duration::from_secs(longest);
        found.longest_lease = found.longest_lease.max(found.terms.lease_length);
        let nanos = Time::ZERO + found.terms.lease_length;
        self.note(Who::Place(place), What::Lease, [nanos.as_nanos(), 0, 0]);
        let at = self.dice.time(Duration::ZERO, Duration::from_secs(1));
        self.later(at, Event::Reload(place));
        true
    }

    fn remove_template(&mut self) -> bool {
        let resource = self.dice.index(self.resources.len()) as u16;
        if !self.resources[usize::from(resource)].covered {
            return false;
        }
        self.cover(resource, false);
        let back = self.spell();
        self.agenda.put(back, Event::Cover(resource));
        true
    }

    /// A template covers the resource from here on, or none does.
    pub(super) fn cover(&mut self, resource: u16, covered: bool) {
        let found = &mut self.resources[usize::from(resource)];
        found.covered = covered;
        let capacity = if covered { found.capacity.as_micros() } else { 0 };
        self.note(Who::Town, What::Capacity, [resource.into(), capacity, 1]);
        self.spread_configuration();
    }

    /// A client wants something else: nothing, a little, its share, or very much.
    pub(super) fn want_something(&mut self, client: u32) {
        let Some(every) = self.rules.faults.restless.filter(|_| self.faulty()) else { return };
        let pause = self.dice.exponential(every);
        self.later(pause, Event::Wants(client));
        for hold in self.clients[client as usize].holds.clone() {
            let wants = self.any_wants(hold);
            self.want(hold, wants);
        }
        self.drive_client(client);
    }

    /// What a client may want of what it holds there.
    pub(crate) fn any_wants(&mut self, hold: u32) -> f64 {
        let index = usize::from(self.holdings[hold as usize].resource);
        let capacity = Amount::from_micros(self.oracle.first_capacity(index)).as_f64();
        let share = capacity / self.clients.len() as f64;
        let wants = match self.dice.below(20) {
            0..=2 => 0.0,
            3..=4 => share * 0.02 * self.dice.fraction(),
            5..=15 => share * 2.5 * self.dice.fraction(),
            _ => share * 20.0 * self.dice.fraction(),
        };
        match self.resources[index].kind {
            Kind::Rate => wants,
            Kind::Gauge => wants.ceil(),
        }
    }
}
