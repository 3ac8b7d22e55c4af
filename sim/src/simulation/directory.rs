//! State directories of servers that are alone: what they write, when it counts, and what is found there at a start, as in the
//! body of a server.

use std::path::Path;

use lessor_proto::Time;
use lessor_server::election::state::{Clock, FileWrite, State};
use lessor_server::record::RecordChange;

use super::leadership::{Farewell, Left};
use super::{Event, Simulation};
use crate::actor::Actor;
use crate::directory::{Directory, Journal};
use crate::plan::{DiskPlan, Link};
use crate::site::Leadership;
use crate::trace::Happening;

const DIRECTORY: &str = "state";
const FILE: &str = "state/state";
/// Calls of the file system that make up a write.
const CALLS: u64 = 4;

// === impl Simulation ===

impl Simulation {
    /// A server with a state directory begins.
    pub(super) fn begin_from_file(&mut self, task: u32) {
        let site = self.tree.tasks[task as usize].site;
        let (clock, line, date) = (self.machine(task), self.rng.number(), self.date_millis());
        let found = &mut self.tree.sites[site as usize];
        found.directory.disk.begin();
        let text = found.directory.disk.read(Path::new(FILE)).map(<[u8]>::to_vec);
        let left = text.map(|bytes| State::left(&bytes, &found.name, &clock));
        let is_known = matches!(left, Some(Ok(_)));
        let (mut state, record) = match left {
            Some(Ok(left)) => left,
            Some(Err(_)) | None => State::of_nobody(&found.name, line),
        };
        let earlier = match found.kin.parent {
            Some(_) => Vec::new(),
            None => record.to_tell(clock.at, self.rules.drift),
        };
        state.succeed(date, earlier);
        let left = match self.put(site, &FileWrite::Whole(state.encode(&clock))) {
            true => Left::File { state: Box::new(state), record: Box::new(record) },
            false => {
                // It would be out of date.
                self.tree.sites[site as usize].directory.disk.empty(Path::new(FILE));
                Left::Nothing
            }
        };
        self.note(Actor::Task(task).who(), Happening::Opens, [is_known.into(), left.keeps().into(), 0]);
        let epoch = match &left {
            Left::File { state, .. } => state.epoch(),
            Left::Nothing | Left::Elected(_) => self.next_epoch(site),
        };
        self.begin_leadership(task, epoch, left);
    }

    /// A node wants something written in its directory.
    pub(super) fn write_file(&mut self, task: u32, change: &RecordChange, ticket: u64) {
        let clock = self.machine(task);
        let link = self.disk_plan().write;
        let site = self.tree.tasks[task as usize].site;
        let Some(journal) = self.journal(task) else { return };
        journal.state.apply(change);
        journal.ticket = Some(ticket);
        let pending = journal.next(Some(change), &clock);
        self.tree.sites[site as usize].directory.pending = Some(pending);
        let takes = self.write_time(link);
        let births = self.tree.tasks[task as usize].births;
        self.later(takes, Event::Stored { task, births });
    }

    /// A write is done, or has failed.
    pub(super) fn stored(&mut self, task: u32, births: u32) {
        let site = self.tree.tasks[task as usize].site;
        if self.tree.tasks[task as usize].births != births {
            return;
        }
        let Some(pending) = self.tree.sites[site as usize].directory.pending.take() else { return };
        let done = self.put(site, &pending);
        let now = self.local(Actor::Task(task));
        let Some(leadership) = &mut self.tree.tasks[task as usize].leadership else { return };
        let Some(journal) = &mut leadership.journal else { return };
        journal.growth.wrote(&pending, done);
        if let Some(ticket) = journal.ticket.take() {
            leadership.node.on_marks(now, ticket, done);
            self.drive_task(task);
        }
    }

    /// The process of a task is gone, perhaps with a write half done, and perhaps with the power of its machine.
    pub(super) fn cut_short(&mut self, task: u32) {
        let site = self.tree.tasks[task as usize].site;
        if let Some(pending) = self.tree.sites[site as usize].directory.pending.take() {
            let calls = self.rng.below(CALLS + 1) as u32;
            self.tree.sites[site as usize].directory.disk.leave(calls);
            self.put(site, &pending);
        }
    }

    /// The machine of a server that has just died starts again: its clock begins anew.
    pub(super) fn lose_power(&mut self, site: u32) {
        let clock = self.new_node_clock();
        let directory = &mut self.tree.sites[site as usize].directory;
        directory.boot += 1;
        directory.disk.lose_power(&mut self.rng);
        for task in self.tree.sites[site as usize].tasks.clone() {
            self.tree.tasks[task as usize].process.clock = clock;
        }
    }

    /// A server with a state directory ends in order: what is out exactly is written, and that it has ended.
    pub(super) fn close_file(&mut self, task: u32) {
        let site = self.tree.tasks[task as usize].site;
        if let Some(pending) = self.tree.sites[site as usize].directory.pending.take() {
            self.put(site, &pending);
        }
        let (now, clock) = (self.local(Actor::Task(task)), self.machine(task));
        let Some(leadership) = &mut self.tree.tasks[task as usize].leadership else { return };
        let Some(write) = leadership.node.resign(now) else { return };
        let closed = write.closed;
        if let Some(journal) = self.journal(task) {
            journal.state.apply(&write.change);
            if closed {
                journal.state.close();
            }
            let last = journal.next(None, &clock);
            self.put(site, &last);
        }
        self.end_leadership(task, &Farewell::Resigned);
    }

    /// A directory is emptied by the operator.
    pub(super) fn clear_directory(&mut self, site: u32) {
        let boot = self.tree.sites[site as usize].directory.boot;
        self.tree.sites[site as usize].directory = Directory { boot, ..Directory::default() };
    }

    fn put(&mut self, site: u32, write: &FileWrite) -> bool {
        let found = &mut self.tree.sites[site as usize];
        let directory = &mut found.directory;
        let done = write.put(&mut directory.disk, Path::new(DIRECTORY)).is_ok();
        if done {
            match write {
                FileWrite::Whole(text) => directory.written.clone_from(text),
                FileWrite::Added(text) => directory.written.push_str(text),
            }
            let read = State::decode(&directory.written, &found.name).ok();
            directory.stored = read.and_then(|(state, _)| state.read().ok()).unwrap_or_default();
        }
        done
    }

    fn journal(&mut self, task: u32) -> Option<&mut Journal> {
        self.tree.tasks[task as usize].leadership.as_mut()?.journal.as_mut()
    }

    fn machine(&self, task: u32) -> Clock {
        let found = &self.tree.tasks[task as usize];
        let boot = self.tree.sites[found.site as usize].directory.boot;
        Clock { boot: Some(format!("b{boot}")), at: self.local(Actor::Task(task)) }
    }

    pub(super) fn disk_plan(&self) -> DiskPlan {
        self.rules.memory.disk.unwrap_or_default()
    }

    /// As slow as etcd at times.
    fn write_time(&mut self, link: Link) -> std::time::Duration {
        let usual = self.rng.time(link.latency, link.latency + link.jitter);
        if self.faulty() && self.rng.chance(self.rules.faults.etcd_slow) {
            return usual + self.rng.exponential(self.rules.faults.slow_mean);
        }
        usual
    }
}

// === what goes wrong with them ===

impl Simulation {
    /// There is room for nothing more on the disk of a site, until `until`.
    pub(super) fn fill_disk(&mut self, site: u32, until: Time) {
        self.tree.sites[site as usize].directory.disk.set_full(true);
        self.queue.put(until, Event::Room(site));
    }

    pub(super) fn room(&mut self, site: u32) {
        self.tree.sites[site as usize].directory.disk.set_full(false);
    }

    /// Somebody changes the file of a site. Whether there is one.
    pub(super) fn damage_file(&mut self, site: u32) -> bool {
        let disk = &mut self.tree.sites[site as usize].directory.disk;
        disk.damage(Path::new(FILE), &mut self.rng)
    }
}

impl Leadership {
    /// Whether what it writes is in a file.
    pub(super) fn keeps_file(&self) -> bool {
        self.journal.is_some()
    }
}
