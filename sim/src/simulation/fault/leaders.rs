//! Faults of leaders, of sites, and of the ways between them.

use crate::actor::Actor;
use crate::simulation::{Event, Simulation};
use crate::trace::{Happening, Speaker};

// === impl Simulation ===

impl Simulation {
    /// A task dies, and is back after a while.
    pub(in crate::simulation) fn overthrow(&mut self, task: u32) -> bool {
        let said = self.rng.chance(500);
        let back = self.spell();
        if !self.is_mortal(task) {
            return false;
        }
        self.crash_task(task, said);
        self.queue.put(back, Event::Start(task));
        true
    }

    pub(super) fn lose_both(&mut self) -> bool {
        let site = self.any_site();
        let Some(parent) = self.tree.sites[site as usize].kin.parent else { return false };
        let heads = [site, parent].map(|site| self.tree.sites[site as usize].head);
        heads.into_iter().flatten().filter(|&task| self.overthrow(task)).count() > 0
    }

    pub(super) fn lose_site(&mut self) -> bool {
        let site = self.any_site();
        let tasks = self.tree.sites[site as usize].tasks.clone();
        tasks.filter(|&task| self.overthrow(task)).count() > 0
    }

    /// Half of those who are deposed cannot hear of it from etcd.
    pub(super) fn depose_unseen(&mut self) -> bool {
        let site = self.any_site();
        let until = self.spell();
        if self.rng.chance(500)
            && let Some(head) = self.tree.sites[site as usize].head
        {
            self.tree.tasks[head as usize].etcd.cut = until;
        }
        self.depose(site)
    }

    /// A task is cut off from etcd only: mostly one that leads.
    pub(super) fn cut_etcd(&mut self) -> bool {
        let leader = if self.rng.chance(700) { self.any_leader() } else { None };
        let task = leader.unwrap_or_else(|| self.any_task());
        let until = self.spell();
        self.tree.tasks[task as usize].etcd.cut = until;
        self.note(Actor::Task(task).who(), Happening::Cut, [until.as_nanos(), 0, 0]);
        self.tree.etcd.is_some()
    }

    pub(super) fn cut_site(&mut self, site: u32) -> bool {
        let tasks = self.tree.sites[site as usize].tasks.clone();
        tasks.filter(|&task| self.cut(Actor::Task(task))).count() > 0
    }

    pub(super) fn cut(&mut self, actor: Actor) -> bool {
        let until = self.spell();
        let directions = self.rng.between(1, 3);
        let process = self.process_mut(actor);
        if directions & 1 != 0 {
            process.cut_up = until;
        }
        if directions & 2 != 0 {
            process.cut_down = until;
        }
        self.note(actor.who(), Happening::Cut, [until.as_nanos(), directions, 0]);
        true
    }

    /// For so long nothing from below gets in to a site, and nothing gets out to those below.
    pub fn cut_off_below(&mut self, site: u32, time: std::time::Duration) {
        let until = self.now + time;
        let found = &mut self.tree.sites[site as usize];
        (found.door.shut_in, found.door.shut_out) = (until, until);
        self.note(Speaker::Site(site), Happening::Cut, [until.as_nanos(), 7, 0]);
    }

    pub(super) fn cut_door(&mut self) -> bool {
        let site = self.any_site();
        let until = self.spell();
        let directions = self.rng.between(1, 3);
        let found = &mut self.tree.sites[site as usize];
        if directions & 1 != 0 {
            found.door.shut_in = until;
        }
        if directions & 2 != 0 {
            found.door.shut_out = until;
        }
        self.note(Speaker::Site(site), Happening::Cut, [until.as_nanos(), directions + 4, 0]);
        true
    }

    pub(super) fn drift(&mut self) -> bool {
        if !self.rules.odd_clocks {
            return false;
        }
        let (rate, now) = (self.odd_rate(), self.now);
        if self.rng.chance(500) {
            let Some(client) = self.any_client() else { return false };
            if self.process(Actor::Client(client)).paused.is_some() {
                return false;
            }
            self.population.clients[client as usize].process.clock.set_rate(now, rate);
            self.note(Speaker::Client(client), Happening::Rate, [rate, 0, 0]);
            for hold in self.population.clients[client as usize].holds.clone() {
                self.recount(hold);
            }
            let deadline = self.population.clients[client as usize].mind.next_deadline();
            self.wake_at(Actor::Client(client), deadline);
        } else {
            let task = self.any_task();
            if self.process(Actor::Task(task)).paused.is_some() {
                return false;
            }
            self.tree.tasks[task as usize].process.clock.set_rate(now, rate);
            self.note(Speaker::Task(task), Happening::Rate, [rate, 0, 0]);
            if self.process(Actor::Task(task)).frozen.is_none() {
                self.drive_task(task);
            }
            if self.rng.chance(200) {
                let rate = self.odd_rate();
                self.set_etcd_rate(rate);
            }
        }
        true
    }
}
