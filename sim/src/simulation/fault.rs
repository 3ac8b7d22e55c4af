//! Faults at one moment, and whom they hit.

mod configuration;
mod leaders;
mod looks;
mod memory;
mod overrides;
mod pause;
mod recalls;
mod rights;

use std::time::Duration;

use super::{Event, Simulation, ToHolder, ToNode};
use crate::actor::Actor;
use crate::faults::Fault;
use crate::holding::{Holding, StatedDemand};
use crate::plan::{ClientPlan, Hold, Way};
use crate::stream::StreamRef;
use crate::trace::{Happening, Speaker};

// === impl Simulation ===

impl Simulation {
    /// One of that kind. Whether it hit anybody.
    pub(super) fn inject_fault(&mut self, kind: Fault) -> bool {
        match kind {
            Fault::Break => self.any_stream().is_some_and(|stream| self.break_stream(stream, 3)),
            Fault::Silence => {
                let heard = self.rng.below(3) as u8;
                self.any_stream().is_some_and(|stream| self.break_stream(stream, heard))
            }
            Fault::Stall => self.any_stream().is_some_and(|stream| self.stall(stream)),
            Fault::Crash => self.any_client().is_some_and(|client| self.crash(client, true)),
            Fault::Vanish => self.any_client().is_some_and(|client| self.crash(client, false)),
            Fault::Leave => self.any_client().is_some_and(|client| self.leave(client)),
            Fault::Twin => self.any_client().is_some_and(|client| self.twin(client)),
            Fault::Drop => self.any_client().is_some_and(|client| self.drop_one(client)),
            Fault::Freeze => {
                let until = self.spell();
                self.any_client().map(|client| self.freeze(Actor::Client(client), until)).is_some()
            }
            Fault::FreezeLeader => {
                let until = self.spell();
                self.any_leader().map(|task| self.freeze(Actor::Task(task), until)).is_some()
            }
            Fault::LoseLeader => self.any_leader().is_some_and(|task| self.overthrow(task)),
            Fault::LoseBoth => self.lose_both(),
            Fault::LoseSite => self.lose_site(),
            Fault::Resign => self.any_leader().is_some_and(|task| self.resign(task)),
            Fault::Depose => self.depose_unseen(),
            Fault::CutEtcd => self.cut_etcd(),
            Fault::DeafWatch => self.deafen_one(),
            Fault::FreezeEtcd => self.freeze_etcd(),
            Fault::LoseEtcd => {
                let until = self.spell();
                self.lose_etcd(until)
            }
            Fault::RestartEtcd => self.restart_etcd(),
            Fault::CompactEtcd => self.compact_etcd(),
            Fault::CutClient => self.any_client().is_some_and(|client| self.cut(Actor::Client(client))),
            Fault::CutSite => {
                let site = self.any_site();
                site != 0 && self.cut_site(site)
            }
            Fault::CutDoor => self.cut_door(),
            Fault::Drift => self.drift(),
            Fault::Capacity => self.change_capacity(),
            Fault::Lease => self.change_lease(),
            Fault::Template => self.remove_template(),
            Fault::Policy => self.change_policy(),
            Fault::LosePower => self.lose_some_power(),
            Fault::FillDisk => self.fill_some_disk(),
            Fault::DamageFile => self.damage_some_file(),
            Fault::Move => self.change_memory(),
            Fault::Pause => self.pause_some(),
            Fault::Kind => self.change_kind(),
            Fault::Domain => self.change_domain(),
            Fault::Rights => self.change_rights(),
            Fault::Caps => self.change_caps(),
            Fault::Recall => self.recall_some(),
            Fault::Restore => self.restore_templates(),
            Fault::Look => self.look_at_tree(),
            Fault::Override => self.override_some(),
            Fault::Beside => self.take_second_out(),
        }
    }

    fn any_client(&mut self) -> Option<u32> {
        let client = self.rng.index(self.population.clients.len()) as u32;
        self.population.clients[client as usize].lives().then_some(client)
    }

    fn any_site(&mut self) -> u32 {
        self.rng.index(self.tree.sites.len()) as u32
    }

    /// A task that leads as far as it knows, mostly rightly.
    fn any_leader(&mut self) -> Option<u32> {
        let site = self.any_site();
        let mut tasks = self.tree.sites[site as usize].tasks.clone();
        let deposed = tasks.find(|&task| self.tree.tasks[task as usize].leadership.is_some());
        if self.rng.chance(200) { deposed } else { self.tree.sites[site as usize].head }
    }

    pub(super) fn any_task(&mut self) -> u32 {
        self.rng.index(self.tree.tasks.len()) as u32
    }

    fn any_stream(&mut self) -> Option<StreamRef> {
        let count = self.streams.live().count();
        let chosen = self.rng.index(count);
        self.streams.live().nth(chosen)
    }
}

// === streams ===

impl Simulation {
    /// A stream breaks. Of `heard` the first bit says that the holder hears of it, the second that the node does.
    fn break_stream(&mut self, stream: StreamRef, heard: u8) -> bool {
        self.note(Speaker::Simulation, Happening::Breaks, [0, heard.into(), 0]);
        let now = self.now;
        let linger = self.rng.time(Duration::ZERO, Duration::from_millis(200));
        let only_one_way = heard == 0 && self.rng.chance(500);
        let upwards = self.rng.chance(500);
        let Some(found) = self.streams.get_mut(stream) else { return false };
        if !only_one_way || upwards {
            found.up.cut = found.up.cut.min(now + linger);
        }
        if !only_one_way || !upwards {
            found.down.cut = found.down.cut.min(now + linger);
        }
        let found = *found;
        if heard & 1 != 0 {
            let at = linger + self.rng.time(Duration::from_millis(1), Duration::from_millis(300));
            let failure = lessor_client::Failure::Unreachable("connection reset".to_owned());
            let delivery = Box::new(ToHolder::Closed { stream, failure, certain: true });
            self.later(at, Event::ToHolder { holder: found.holder, delivery });
        }
        if heard & 2 != 0 {
            let at = linger + self.rng.time(Duration::from_millis(1), Duration::from_millis(300));
            let delivery = Box::new(ToNode::Gone { stream, certain: true });
            self.later(at, Event::ToNode { task: found.task, delivery });
        }
        self.dies_out(stream);
        true
    }

    fn stall(&mut self, stream: StreamRef) -> bool {
        let until = self.spell();
        self.note(Speaker::Simulation, Happening::Stalls, [0, until.as_nanos(), 0]);
        let Some(found) = self.streams.get_mut(stream) else { return false };
        found.stalled = until;
        true
    }
}

// === clients ===

impl Simulation {
    fn crash(&mut self, client: u32, said: bool) -> bool {
        self.end_life(client, said);
        let back = self.spell();
        self.queue.put(back, Event::Back(client));
        true
    }

    /// A client gives everything back, and its process ends when the last of it is on its way.
    fn leave(&mut self, client: u32) -> bool {
        let now = self.local(Actor::Client(client));
        let frozen = self.process(Actor::Client(client)).frozen.is_some();
        let holds = self.population.clients[client as usize].holds.clone();
        if frozen || self.population.clients[client as usize].mind.session().is_none() {
            return false;
        }
        let own = holds.filter(|&hold| !self.is_derived(hold));
        own.collect::<Vec<_>>().into_iter().for_each(|hold| self.give_up(hold, now));
        self.drive_client(client);
        // Those who wait for the answer, and those who do not.
        let stays = self.rng.time(Duration::ZERO, Duration::from_secs(2));
        self.later(stays, Event::TwinEnds(client));
        let back = self.spell().max(self.now + stays);
        self.queue.put(back, Event::Back(client));
        true
    }

    fn drop_one(&mut self, client: u32) -> bool {
        let actor = Actor::Client(client);
        let (now, process) = (self.local(actor), self.process(actor));
        let (frozen, life) = (process.frozen.is_some(), process.life);
        let holds = self.population.clients[client as usize].holds.clone();
        let hold = holds.start + self.rng.index(holds.len()) as u32;
        if frozen
            || self.is_derived(hold)
            || self.population.clients[client as usize].mind.session().is_none()
        {
            return false;
        }
        self.give_up(hold, now);
        self.drive_client(client);
        let back = self.spell();
        self.queue.put(back, Event::Take(hold, life));
        true
    }

    fn twin(&mut self, client: u32) -> bool {
        let found = &self.population.clients[client as usize];
        if found.way == Way::Legacy || found.twin_of.is_some() {
            return false;
        }
        let name = found.id.to_string();
        let (site, way) = (found.site, found.way);
        let hold = |hold: u32| {
            let Holding { resource, demand, .. } = self.population.holdings[hold as usize];
            let StatedDemand { priority, weight, wants, is_measured } = demand;
            Hold { resource, wants, priority, weight, is_measured }
        };
        let holds = found.holds.clone().map(hold).collect();
        let link = self.link(client);
        let plan = ClientPlan { name, site, link, way, holds };
        let before = |twin: &u32| {
            let twin = &self.population.clients[*twin as usize];
            twin.twin_of == Some(client) && !twin.lives()
        };
        let twin = match self.tree.sites[site as usize].kin.clients.iter().copied().find(before) {
            Some(twin) => twin,
            None => {
                let twin = self.admit(&plan, Some(client));
                self.ask_from(twin);
                self.population.clients[twin as usize].holds.clone().for_each(|hold| self.use_from(hold));
                twin
            }
        };
        self.begin_life(twin);
        let until = self.spell();
        self.queue.put(until, Event::TwinEnds(twin));
        true
    }
}
