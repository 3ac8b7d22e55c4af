//! The running of processes: woken at their deadlines, frozen, and set going again.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::Time;

use super::{Event, Simulation};
use crate::actor::{Actor, Sender};
use crate::process::{Frozen, Process};
use crate::trace::Happening;

// === impl Simulation ===

impl Simulation {
    /// A deadline, perhaps one that has moved.
    pub(super) fn wake(&mut self, actor: Actor) {
        let now = self.now;
        let process = self.process_mut(actor);
        if process.wake != now {
            return;
        }
        process.wake = Time::MAX;
        self.drive(actor);
    }

    pub(super) fn drive(&mut self, actor: Actor) {
        match actor {
            Actor::Client(client) => self.drive_client(client),
            Actor::Task(task) => self.drive_elector(task),
        }
    }

    /// Sees to it that the actor is woken when its clock shows `deadline`.
    pub(crate) fn wake_at(&mut self, actor: Actor, deadline: Time) {
        let now = self.now;
        let process = self.process_mut(actor);
        let when = process.clock.when(deadline).max(now);
        if deadline != Time::MAX && when < process.wake {
            process.wake = when;
            self.queue.put(when, Event::Wake(actor));
        }
    }

    /// Keeps everything back from the actor until `until`.
    pub(crate) fn freeze(&mut self, actor: Actor, until: Time) {
        let process = self.process_mut(actor);
        if process.frozen.is_some() {
            return;
        }
        process.frozen = Some(Box::new(Frozen { until, backlog: VecDeque::new() }));
        self.note(actor.who(), Happening::Freezes, [until.as_nanos(), 0, 0]);
        self.queue.put(until, Event::Thaw(actor));
    }

    /// One event that was kept back, or the end of it.
    pub(super) fn thaw(&mut self, actor: Actor) {
        let now = self.now;
        // It may have died since, and been frozen in another life.
        if self.process(actor).frozen.as_ref().is_none_or(|frozen| frozen.until > now) {
            return;
        }
        self.unpause(actor);
        if let Actor::Client(client) = actor {
            self.population.clients[client as usize].holds.clone().for_each(|hold| self.stop_overdue(hold));
        }
        let process = self.process_mut(actor);
        let Some(frozen) = process.frozen.as_mut().filter(|frozen| frozen.until <= now) else { return };
        let event = frozen.backlog.pop_front();
        let late = frozen.backlog.len();
        if event.is_none() {
            process.frozen = None;
            process.wake = Time::MAX;
        }
        self.note(actor.who(), Happening::Thaws, [late as u64, 0, 0]);
        match event {
            None => self.drive(actor),
            Some(event) => {
                self.queue.put(now, Event::Thaw(actor));
                self.handle(event);
            }
        }
    }

    pub(crate) fn process(&self, actor: Actor) -> &Process {
        match actor {
            Actor::Client(client) => &self.population.clients[client as usize].process,
            Actor::Task(task) => &self.tree.tasks[task as usize].process,
        }
    }

    pub(crate) fn process_mut(&mut self, actor: Actor) -> &mut Process {
        match actor {
            Actor::Client(client) => &mut self.population.clients[client as usize].process,
            Actor::Task(task) => &mut self.tree.tasks[task as usize].process,
        }
    }

    pub(crate) fn local(&self, actor: Actor) -> Time {
        self.process(actor).clock.at(self.now)
    }

    pub(crate) fn lives(&self, holder: Sender) -> bool {
        self.process(holder.actor).life == holder.life
            && match holder.actor {
                Actor::Client(client) => self.population.clients[client as usize].lives(),
                Actor::Task(task) => self.tree.tasks[task as usize].leadership.is_some(),
            }
    }

    pub(crate) fn later(&mut self, delay: Duration, event: Event) {
        self.queue.put(self.now + delay, event);
    }
}
