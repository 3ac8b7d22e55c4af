//! Machines that stand still, and their clocks with them, as virtual machines that are suspended. A program on one uses nothing
//! meanwhile, and when it goes on, the date shows that something is missing.

use std::time::Duration;

use lessor_client::suspend::{BELIEVED, Watch};
use lessor_proto::Time;

use crate::plan::Way;
use crate::process::{Party, Pause};
use crate::story::What;
use crate::town::Town;

/// A clock that stands still.
const STILL: u64 = 0;

// === impl Town ===

impl Town {
    pub(super) fn pause_some(&mut self) -> bool {
        // What is too short to be seen is for the margin of clocks, which some towns do not have.
        let until = self.spell();
        if until <= self.now + BELIEVED * 2 {
            return false;
        }
        let party = if self.dice.chance(500) {
            // Doorman's clients have no guard.
            self.any_client()
                .filter(|&client| self.clients[client as usize].way != Way::Legacy)
                .map(Party::Client)
        } else if self.dice.chance(600) {
            self.any_leader().map(Party::Task)
        } else {
            let task = self.any_task();
            self.tasks[task as usize].candidate.as_ref().map(|_| Party::Task(task))
        };
        party.is_some_and(|party| self.pause(party, until))
    }

    /// The machine of a party stands still until `until`. Whether it was going.
    fn pause(&mut self, party: Party, until: Time) -> bool {
        let (now, local, wall) = (self.now, self.local(party), self.date());
        let process = self.process_mut(party);
        if process.frozen.is_some() || until <= now {
            return false;
        }
        process.paused = Some(Pause { rate: process.clock.rate(), watch: Watch::new(local, wall) });
        process.clock.set_rate(now, STILL);
        self.freeze(party, until);
        self.recount_all_of(party);
        true
    }

    /// It goes on, and hears first of all of the time that its clock did not show.
    pub(in crate::town) fn unpause(&mut self, party: Party) {
        let Some(mut pause) = self.restart_clock(party) else { return };
        let (local, wall) = (self.local(party), self.date());
        let lost = pause.watch.lost(local, wall);
        self.note(party.who(), What::Loses, [nanos(lost), 0, 0]);
        let sees = !self.overlooks_pauses();
        match party {
            Party::Client(_) if !sees => self.recount_all_of(party),
            Party::Client(client) => {
                let found = &mut self.clients[client as usize];
                if let Some(session) = found.mind.session() {
                    session.lose_time(local, lost);
                }
                for hold in self.clients[client as usize].holds.clone() {
                    let holding = &mut self.holdings[hold as usize];
                    holding.until = holding.until.earlier(lost);
                    self.recount(hold);
                }
                self.drive_client(client);
            }
            Party::Task(task) => {
                let found = &mut self.tasks[task as usize];
                if let Some(candidate) = found.candidate.as_mut().filter(|_| sees) {
                    candidate.lose_time(local, lost);
                }
                if let Some(reign) = found.reign.as_mut().filter(|_| sees) {
                    reign.node.lose_time(local, lost);
                }
                found.clocks.lose_time(lost);
                found.losses.push((local, lost));
                self.drive_task(task);
            }
        }
    }

    /// The clock of a process that stood still, or died meanwhile, goes on.
    pub(in crate::town) fn restart_clock(&mut self, party: Party) -> Option<Pause> {
        let now = self.now;
        let process = self.process_mut(party);
        let pause = process.paused.take()?;
        process.clock.set_rate(now, pause.rate);
        Some(pause)
    }

    fn recount_all_of(&mut self, party: Party) {
        if let Party::Client(client) = party {
            self.clients[client as usize].holds.clone().for_each(|hold| self.recount(hold));
        }
    }

    /// The machine of a client stands still for so long.
    pub fn pause_client(&mut self, client: u32, time: Duration) -> bool {
        self.pause(Party::Client(client), self.now + time)
    }

    /// The machine of the leader of a place stands still for so long. Whether there is one.
    pub fn pause_leader(&mut self, place: u32, time: Duration) -> bool {
        let head = self.places[place as usize].head;
        head.is_some_and(|task| self.pause(Party::Task(task), self.now + time))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
