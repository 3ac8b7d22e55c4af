//! What goes wrong with leaders, with places, and with the ways between them.

use crate::process::Party;
use crate::story::{What, Who};
use crate::town::{Event, Town};

// === impl Town ===

impl Town {
    /// A task dies, and is back after a while.
    pub(in crate::town) fn overthrow(&mut self, task: u32) -> bool {
        let said = self.dice.chance(500);
        let back = self.spell();
        if !self.is_mortal(task) {
            return false;
        }
        self.crash_task(task, said);
        self.agenda.put(back, Event::Start(task));
        true
    }

    pub(super) fn lose_both(&mut self) -> bool {
        let place = self.any_place();
        let Some(parent) = self.places[place as usize].parent else { return false };
        let heads = [place, parent].map(|place| self.places[place as usize].head);
        heads.into_iter().flatten().filter(|&task| self.overthrow(task)).count() > 0
    }

    pub(super) fn lose_place(&mut self) -> bool {
        let place = self.any_place();
        let tasks = self.places[place as usize].tasks.clone();
        tasks.filter(|&task| self.overthrow(task)).count() > 0
    }

    /// Half of those who are deposed cannot hear of it from etcd.
    pub(super) fn depose_unseen(&mut self) -> bool {
        let place = self.any_place();
        let until = self.spell();
        if self.dice.chance(500)
            && let Some(head) = self.places[place as usize].head
        {
            self.tasks[head as usize].etcd_cut = until;
        }
        self.depose(place)
    }

    /// A task is cut off from etcd only: mostly one that leads.
    pub(super) fn cut_etcd(&mut self) -> bool {
        let leader = if self.dice.chance(700) { self.any_leader() } else { None };
        let task = leader.unwrap_or_else(|| self.any_task());
        let until = self.spell();
        self.tasks[task as usize].etcd_cut = until;
        self.note(Party::Task(task).who(), What::Cut, [until.as_nanos(), 0, 0]);
        self.etcd.is_some()
    }

    pub(super) fn cut_place(&mut self, place: u32) -> bool {
        let tasks = self.places[place as usize].tasks.clone();
        tasks.filter(|&task| self.cut(Party::Task(task))).count() > 0
    }

    pub(super) fn cut(&mut self, party: Party) -> bool {
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

    /// For so long nothing from below gets in to a place, and nothing gets out to those below.
    pub fn cut_off_below(&mut self, place: u32, time: std::time::Duration) {
        let until = self.now + time;
        let found = &mut self.places[place as usize];
        (found.door_in, found.door_out) = (until, until);
        self.note(Who::Place(place), What::Cut, [until.as_nanos(), 7, 0]);
    }

    pub(super) fn cut_door(&mut self) -> bool {
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

    pub(super) fn drift(&mut self) -> bool {
        if !self.rules.odd_clocks {
            return false;
        }
        let (rate, now) = (self.odd_rate(), self.now);
        if self.dice.chance(500) {
            let Some(client) = self.any_client() else { return false };
            if self.process(Party::Client(client)).paused.is_some() {
                return false;
            }
            self.clients[client as usize].process.clock.set_rate(now, rate);
            self.note(Who::Client(client), What::Rate, [rate, 0, 0]);
            for hold in self.clients[client as usize].holds.clone() {
                self.recount(hold);
            }
            let deadline = self.clients[client as usize].mind.deadline();
            self.wake_at(Party::Client(client), deadline);
        } else {
            let task = self.any_task();
            if self.process(Party::Task(task)).paused.is_some() {
                return false;
            }
            self.tasks[task as usize].process.clock.set_rate(now, rate);
            self.note(Who::Task(task), What::Rate, [rate, 0, 0]);
            if self.process(Party::Task(task)).frozen.is_none() {
                self.drive_task(task);
            }
            if self.dice.chance(200) {
                let rate = self.odd_rate();
                self.set_etcd_rate(rate);
            }
        }
        true
    }
}
