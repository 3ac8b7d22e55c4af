//! What goes wrong at one moment, and whom it hits.

mod configuration;
mod leaders;
mod memory;
mod pause;

use std::time::Duration;

use super::{Event, ToHolder, ToNode, Town};
use crate::faults::Mischief;
use crate::oracle::Holding;
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
                self.any_leader().map(|task| self.freeze(Party::Task(task), until)).is_some()
            }
            Mischief::LoseLeader => self.any_leader().is_some_and(|task| self.overthrow(task)),
            Mischief::LoseBoth => self.lose_both(),
            Mischief::LosePlace => self.lose_place(),
            Mischief::Resign => self.any_leader().is_some_and(|task| self.resign(task)),
            Mischief::Depose => self.depose_unseen(),
            Mischief::CutEtcd => self.cut_etcd(),
            Mischief::DeafWatch => {
                let task = self.any_task();
                self.deafen(task)
            }
            Mischief::FreezeEtcd => {
                let until = self.spell();
                self.freeze_etcd(until)
            }
            Mischief::LoseEtcd => {
                let until = self.spell();
                self.lose_etcd(until)
            }
            Mischief::RestartEtcd => self.restart_etcd(),
            Mischief::CompactEtcd => self.compact_etcd(),
            Mischief::CutClient => self.any_client().is_some_and(|client| self.cut(Party::Client(client))),
            Mischief::CutPlace => {
                let place = self.any_place();
                place != 0 && self.cut_place(place)
            }
            Mischief::CutDoor => self.cut_door(),
            Mischief::Drift => self.drift(),
            Mischief::Capacity => self.change_capacity(),
            Mischief::Lease => self.change_lease(),
            Mischief::Template => self.remove_template(),
            Mischief::Policy => self.change_policy(),
            Mischief::LosePower => self.lose_some_power(),
            Mischief::FillDisk => self.fill_some_disk(),
            Mischief::DamageFile => self.damage_some_file(),
            Mischief::Move => self.change_memory(),
            Mischief::Pause => self.pause_some(),
            Mischief::Kind => self.change_kind(),
        }
    }

    fn any_client(&mut self) -> Option<u32> {
        let client = self.dice.index(self.clients.len()) as u32;
        self.clients[client as usize].lives().then_some(client)
    }

    fn any_place(&mut self) -> u32 {
        self.dice.index(self.places.len()) as u32
    }

    /// A task that leads as far as it knows, mostly rightly.
    fn any_leader(&mut self) -> Option<u32> {
        let place = self.any_place();
        let mut tasks = self.places[place as usize].tasks.clone();
        let deposed = tasks.find(|&task| self.tasks[task as usize].reign.is_some());
        if self.dice.chance(200) { deposed } else { self.places[place as usize].head }
    }

    fn any_task(&mut self) -> u32 {
        self.dice.index(self.tasks.len()) as u32
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
            self.later(at, Event::ToNode { task: found.task, mail });
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
        if frozen || self.clients[client as usize].mind.session().is_none() {
            return false;
        }
        holds.for_each(|hold| self.give_up(hold, now));
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
        if frozen || self.clients[client as usize].mind.session().is_none() {
            return false;
        }
        self.give_up(hold, now);
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
            let Holding { resource, wants, priority, weight, is_measured, .. } = *held;
            Hold { resource, wants, priority, weight, is_measured }
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
            None => {
                let twin = self.admit(&plan, Some(client));
                self.clients[twin as usize].holds.clone().for_each(|hold| self.use_from(hold));
                twin
            }
        };
        self.begin_life(twin);
        let until = self.spell();
        self.agenda.put(until, Event::TwinEnds(twin));
        true
    }
}
