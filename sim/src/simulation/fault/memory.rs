//! Faults of state directories, and changes of the ways in which sites remember.

use std::time::Duration;

use lessor_proto::Time;

use crate::plan::Keeps;
use crate::simulation::{Event, Simulation};
use crate::trace::{Happening, Speaker};

// === impl Simulation ===

impl Simulation {
    /// A site whose servers have a state directory.
    fn any_directory(&mut self) -> Option<u32> {
        let site = self.any_site();
        (self.tree.sites[site as usize].keeps == Keeps::File).then_some(site)
    }

    pub(super) fn fill_some_disk(&mut self) -> bool {
        let Some(site) = self.any_directory() else { return false };
        let until = self.spell();
        self.note(Speaker::Site(site), Happening::Disk, [0, until.as_nanos(), 0]);
        self.fill_disk(site, until);
        true
    }

    pub(super) fn damage_some_file(&mut self) -> bool {
        let Some(site) = self.any_directory() else { return false };
        self.note(Speaker::Site(site), Happening::Disk, [1, self.now.as_nanos(), 0]);
        self.damage_file(site)
    }

    /// The server of a site and its machine lose power, and are back after a while. Whether there was one with a state
    /// directory.
    pub fn lose_power_of(&mut self, site: u32, time: Duration) -> bool {
        let found = &self.tree.sites[site as usize];
        let Some(task) = found.head.filter(|_| found.keeps == Keeps::File) else { return false };
        self.crash_task(task, true);
        self.lose_power(site);
        self.later(time, Event::Start(task));
        true
    }

    /// The disk of a state directory takes nothing more for so long.
    pub fn fill_disk_for(&mut self, site: u32, time: Duration) {
        let until = self.now + time;
        self.fill_disk(site, until);
    }

    /// A server and its machine lose power.
    pub(super) fn lose_some_power(&mut self) -> bool {
        let Some(site) = self.any_directory() else { return false };
        let Some(task) = self.tree.sites[site as usize].head else { return false };
        let lost = self.overthrow(task);
        if lost {
            self.note(Speaker::Site(site), Happening::Disk, [2, self.now.as_nanos(), 0]);
            self.lose_power(site);
        }
        lost
    }

    /// The servers of a site are stopped, and begin again later with another way to remember, which is empty.
    pub(super) fn change_memory(&mut self) -> bool {
        let site = self.any_site();
        let back = self.spell();
        let ways = [Keeps::Nothing, Keeps::File, Keeps::Etcd];
        let way = ways[self.rng.index(ways.len())];
        let orderly = self.rng.chance(500);
        let said = self.rng.chance(500);
        if self.rules.memory.etcd.is_none() {
            return false;
        }
        self.stop_all(site, orderly, said);
        self.begin_anew(site, way, back);
        true
    }

    /// All servers of a site are stopped; it is given an empty state directory or an empty etcd, or neither, and they begin
    /// again a second later.
    pub fn keep_in(&mut self, site: u32, way: Keeps) {
        self.stop_all(site, true, true);
        let back = self.now + Duration::from_secs(1);
        self.begin_anew(site, way, back);
    }

    fn stop_all(&mut self, site: u32, orderly: bool, said: bool) {
        for task in self.tree.sites[site as usize].tasks.clone() {
            let has_file = |leadership: &crate::site::Leadership| leadership.keeps_file();
            if orderly && self.tree.tasks[task as usize].leadership.as_deref().is_some_and(has_file) {
                self.resign(task);
            }
            self.crash_task(task, said);
        }
    }

    fn begin_anew(&mut self, site: u32, way: Keeps, back: Time) {
        let before = self.tree.sites[site as usize].keeps;
        self.note(Speaker::Site(site), Happening::Keeps, [before as u64, way as u64, 0]);
        self.tree.sites[site as usize].keeps = way;
        match way {
            Keeps::Nothing => {}
            Keeps::File => self.clear_directory(site),
            Keeps::Etcd => self.replace_etcd(site),
        }
        for task in self.tree.sites[site as usize].tasks.clone() {
            self.queue.put(back, Event::Start(task));
        }
    }
}
