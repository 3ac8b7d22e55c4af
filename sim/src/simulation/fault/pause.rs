//! Machines that stand still, and their clocks with them, as virtual machines that are suspended. A program on one uses nothing
//! meanwhile, and when it goes on, the date shows that something is missing.

use std::time::Duration;

use lessor_client::internals::suspend::{BELIEVED, SuspendWatch};
use lessor_proto::Time;

use crate::actor::Actor;
use crate::plan::Way;
use crate::process::Pause;
use crate::simulation::Simulation;
use crate::trace::Happening;

/// A clock that stands still.
const STILL: u64 = 0;

// === impl Simulation ===

impl Simulation {
    pub(super) fn pause_some(&mut self) -> bool {
        // What is too short to be seen is for the margin of clocks, which some simulations do not have.
        let until = self.spell();
        if until <= self.now + BELIEVED * 2 {
            return false;
        }
        let actor = if self.rng.chance(500) {
            // Doorman's clients have no guard.
            self.any_client()
                .filter(|&client| self.population.clients[client as usize].way != Way::Legacy)
                .map(Actor::Client)
        } else if self.rng.chance(600) {
            self.any_leader().map(Actor::Task)
        } else {
            let task = self.any_task();
            self.tree.tasks[task as usize].candidate.as_ref().map(|_| Actor::Task(task))
        };
        actor.is_some_and(|actor| self.pause(actor, until))
    }

    /// The machine of an actor stands still until `until`. Whether it was going.
    fn pause(&mut self, actor: Actor, until: Time) -> bool {
        let (now, local, wall) = (self.now, self.local(actor), self.date());
        let process = self.process_mut(actor);
        if process.frozen.is_some() || until <= now {
            return false;
        }
        process.paused = Some(Pause { rate: process.clock.rate(), watch: SuspendWatch::new(local, wall) });
        process.clock.set_rate(now, STILL);
        self.freeze(actor, until);
        self.recount_all_of(actor);
        true
    }

    /// It goes on, and hears first of all of the time that its clock did not show.
    pub(in crate::simulation) fn unpause(&mut self, actor: Actor) {
        let Some(mut pause) = self.restart_clock(actor) else { return };
        let (local, wall) = (self.local(actor), self.date());
        let lost = pause.watch.lost(local, wall);
        self.note(actor.who(), Happening::Loses, [nanos(lost), 0, 0]);
        let sees = !self.overlooks_pauses();
        match actor {
            Actor::Client(_) if !sees => self.recount_all_of(actor),
            Actor::Client(client) => {
                let found = &mut self.population.clients[client as usize];
                if let Some(session) = found.mind.session() {
                    session.lose_time(local, lost);
                }
                for hold in self.population.clients[client as usize].holds.clone() {
                    let holding = &mut self.population.holdings[hold as usize];
                    holding.until = holding.until.earlier(lost);
                    self.recount(hold);
                }
                self.drive_client(client);
            }
            Actor::Task(task) => {
                let found = &mut self.tree.tasks[task as usize];
                if let Some(candidate) = found.candidate.as_mut().filter(|_| sees) {
                    candidate.lose_time(local, lost);
                }
                if let Some(leadership) = found.leadership.as_mut().filter(|_| sees) {
                    leadership.node.lose_time(local, lost);
                }
                self.drive_task(task);
            }
        }
    }

    /// The clock of a process that stood still, or died meanwhile, goes on.
    pub(in crate::simulation) fn restart_clock(&mut self, actor: Actor) -> Option<Pause> {
        let now = self.now;
        let process = self.process_mut(actor);
        let pause = process.paused.take()?;
        process.clock.set_rate(now, pause.rate);
        Some(pause)
    }

    fn recount_all_of(&mut self, actor: Actor) {
        if let Actor::Client(client) = actor {
            self.population.clients[client as usize].holds.clone().for_each(|hold| self.recount(hold));
        }
    }

    /// The machine of a client stands still for so long.
    pub fn pause_client(&mut self, client: u32, time: Duration) -> bool {
        self.pause(Actor::Client(client), self.now + time)
    }

    /// The machine of the leader of a site stands still for so long. Whether there is one.
    pub fn pause_leader(&mut self, site: u32, time: Duration) -> bool {
        let head = self.tree.sites[site as usize].head;
        head.is_some_and(|task| self.pause(Actor::Task(task), self.now + time))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
