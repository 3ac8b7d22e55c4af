//! What befalls state directories, and the ways in which places remember.

use std::time::Duration;

use lessor_proto::Time;

use crate::plan::Keeps;
use crate::story::{What, Who};
use crate::town::{Event, Town};

// === impl Town ===

impl Town {
    /// A place whose servers have a state directory.
    fn any_directory(&mut self) -> Option<u32> {
        let place = self.any_place();
        (self.places[place as usize].keeps == Keeps::File).then_some(place)
    }

    pub(super) fn fill_some_disk(&mut self) -> bool {
        let Some(place) = self.any_directory() else { return false };
        let until = self.spell();
        self.note(Who::Place(place), What::Disk, [0, until.as_nanos(), 0]);
        self.fill_disk(place, until);
        true
    }

    pub(super) fn damage_some_file(&mut self) -> bool {
        let Some(place) = self.any_directory() else { return false };
        self.note(Who::Place(place), What::Disk, [1, self.now.as_nanos(), 0]);
        self.damage_file(place)
    }

    /// The server of a place and its machine lose power, and are back after a while. Whether there was one with a state
    /// directory.
    pub fn lose_power_of(&mut self, place: u32, time: Duration) -> bool {
        let found = &self.places[place as usize];
        let Some(task) = found.head.filter(|_| found.keeps == Keeps::File) else { return false };
        self.crash_task(task, true);
        self.lose_power(place);
        self.later(time, Event::Start(task));
        true
    }

    /// The disk of a state directory takes nothing more for so long.
    pub fn fill_disk_for(&mut self, place: u32, time: Duration) {
        let until = self.now + time;
        self.fill_disk(place, until);
    }

    /// A server and its machine lose power.
    pub(super) fn lose_some_power(&mut self) -> bool {
        let Some(place) = self.any_directory() else { return false };
        let Some(task) = self.places[place as usize].head else { return false };
        let lost = self.overthrow(task);
        if lost {
            self.note(Who::Place(place), What::Disk, [2, self.now.as_nanos(), 0]);
            self.lose_power(place);
        }
        lost
    }

    /// The servers of a place are stopped, and begin again later with another way to remember, which is empty.
    pub(super) fn change_memory(&mut self) -> bool {
        let place = self.any_place();
        let back = self.spell();
        let ways = [Keeps::Nothing, Keeps::File, Keeps::Etcd];
        let way = ways[self.dice.index(ways.len())];
        let orderly = self.dice.chance(500);
        let said = self.dice.chance(500);
        if self.rules.memory.etcd.is_none() {
            return false;
        }
        self.stop_all(place, orderly, said);
        self.begin_anew(place, way, back);
        true
    }

    /// All servers of a place are stopped; it is given an empty state directory or an empty etcd, or neither, and they begin
    /// again a second later.
    pub fn keep_in(&mut self, place: u32, way: Keeps) {
        self.stop_all(place, true, true);
        let back = self.now + Duration::from_secs(1);
        self.begin_anew(place, way, back);
    }

    fn stop_all(&mut self, place: u32, orderly: bool, said: bool) {
        for task in self.places[place as usize].tasks.clone() {
            let has_file = |reign: &crate::place::Reign| reign.keeps_file();
            if orderly && self.tasks[task as usize].reign.as_deref().is_some_and(has_file) {
                self.resign(task);
            }
            self.crash_task(task, said);
        }
    }

    fn begin_anew(&mut self, place: u32, way: Keeps, back: Time) {
        let before = self.places[place as usize].keeps;
        self.note(Who::Place(place), What::Keeps, [before as u64, way as u64, 0]);
        self.places[place as usize].keeps = way;
        match way {
            Keeps::Nothing => {}
            Keeps::File => self.clear_directory(place),
            Keeps::Etcd => self.replace_etcd(place),
        }
        for task in self.places[place as usize].tasks.clone() {
            self.agenda.put(back, Event::Start(task));
        }
    }
}
