//! How processes run: woken at their deadlines, frozen, and set going again.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::Time;

use super::{Event, Town};
use crate::process::{Frozen, Party, Process, Sender};
use crate::story::What;

// === impl Town ===

impl Town {
    /// A deadline, perhaps one that has moved.
    pub(super) fn wake(&mut self, party: Party) {
        let now = self.now;
        let process = self.process_mut(party);
        if process.wake != now {
            return;
        }
        process.wake = Time::MAX;
        self.drive(party);
    }

    pub(super) fn drive(&mut self, party: Party) {
        match party {
            Party::Client(client) => self.drive_client(client),
            Party::Task(task) => self.drive_elector(task),
        }
    }

    /// Sees to it that the party is woken when its clock shows `deadline`.
    pub(crate) fn wake_at(&mut self, party: Party, deadline: Time) {
        let now = self.now;
        let process = self.process_mut(party);
        let when = process.clock.when(deadline).max(now);
        if deadline != Time::MAX && when < process.wake {
            process.wake = when;
            self.agenda.put(when, Event::Wake(party));
        }
    }

    /// Keeps everything back from the party until `until`.
    pub(crate) fn freeze(&mut self, party: Party, until: Time) {
        let process = self.process_mut(party);
        if process.frozen.is_some() {
            return;
        }
        process.frozen = Some(Box::new(Frozen { until, backlog: VecDeque::new() }));
        self.note(party.who(), What::Freezes, [until.as_nanos(), 0, 0]);
        self.agenda.put(until, Event::Thaw(party));
    }

    /// One event that was kept back, or the end of it.
    pub(super) fn thaw(&mut self, party: Party) {
        let now = self.now;
        // It may have died since, and been frozen in another life.
        if self.process(party).frozen.as_ref().is_none_or(|frozen| frozen.until > now) {
            return;
        }
        self.unpause(party);
        if let Party::Client(client) = party {
            self.clients[client as usize].holds.clone().for_each(|hold| self.stop_overdue(hold));
        }
        let process = self.process_mut(party);
        let Some(frozen) = process.frozen.as_mut().filter(|frozen| frozen.until <= now) else { return };
        let event = frozen.backlog.pop_front();
        let late = frozen.backlog.len();
        if event.is_none() {
            process.frozen = None;
            process.wake = Time::MAX;
        }
        self.note(party.who(), What::Thaws, [late as u64, 0, 0]);
        match event {
            None => self.drive(party),
            Some(event) => {
                self.agenda.put(now, Event::Thaw(party));
                self.handle(event);
            }
        }
    }

    pub(crate) fn process(&self, party: Party) -> &Process {
        match party {
            Party::Client(client) => &self.clients[client as usize].process,
            Party::Task(task) => &self.tasks[task as usize].process,
        }
    }

    pub(crate) fn process_mut(&mut self, party: Party) -> &mut Process {
        match party {
            Party::Client(client) => &mut self.clients[client as usize].process,
            Party::Task(task) => &mut self.tasks[task as usize].process,
        }
    }

    pub(crate) fn local(&self, party: Party) -> Time {
        self.process(party).clock.at(self.now)
    }

    pub(crate) fn lives(&self, holder: Sender) -> bool {
        self.process(holder.party).life == holder.life
            && match holder.party {
                Party::Client(client) => self.clients[client as usize].lives(),
                Party::Task(task) => self.tasks[task as usize].reign.is_some(),
            }
    }

    pub(crate) fn later(&mut self, delay: Duration, event: Event) {
        self.agenda.put(self.now + delay, event);
    }
}
