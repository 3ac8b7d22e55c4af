//! Questions about the clocks of leaders: asked by the tasks that stand by, as in the body of a server.

use lessor_server::record::Record;
use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::WallClock;

use super::{Event, Simulation};
use crate::actor::Actor;
use crate::event::ClockCall;

/// The interval at which a leader is asked.
const PACE: Duration = Duration::from_secs(5);
/// The longest that a question or an answer is under way.
const LONGEST: u64 = 300_000_000;

// === impl Simulation ===

impl Simulation {
    /// A task begins to ask.
    pub(super) fn begin_asking(&mut self, task: u32) {
        let births = self.tree.tasks[task as usize].births;
        self.later(Duration::ZERO, Event::Clock(task, Box::new(ClockCall::Due { births })));
    }

    pub(super) fn at_clock(&mut self, task: u32, call: ClockCall) {
        let (now, global) = (self.local(Actor::Task(task)), self.now);
        let found = &mut self.tree.tasks[task as usize];
        match call {
            ClockCall::Due { births } if births == found.births => {
                self.ask_clock(task, now, births);
                self.later(PACE, Event::Clock(task, Box::new(ClockCall::Due { births })));
            }
            ClockCall::Seen { births } if births == found.births => self.ask_clock(task, now, births),
            ClockCall::Asked { by, births, asked } if found.acts(global) => {
                let epoch = found.epoch().expect("a task that acts is in an epoch");
                self.under_way(by, ClockCall::Told { births, asked, epoch, shown: now });
            }
            ClockCall::Told { births, asked, epoch, shown } if births == found.births => {
                if let Some(candidate) = &mut found.candidate {
                    candidate.hear_clock(epoch, asked, shown);
                }
            }
            // Another process is there, or one that does not lead.
            ClockCall::Due { .. }
            | ClockCall::Seen { .. }
            | ClockCall::Asked { .. }
            | ClockCall::Told { .. } => {}
        }
    }

    /// A task that does not lead asks the one that does, if it knows which.
    fn ask_clock(&mut self, task: u32, now: Time, births: u32) {
        let found = &self.tree.tasks[task as usize];
        let leader = found.knows.address.clone().filter(|_| found.leadership.is_none());
        if let Some(leader) = leader.and_then(|address| self.address(&address)) {
            self.under_way(leader, ClockCall::Asked { by: task, births, asked: now });
        }
    }

    /// The record that was left at etcd, as a task goes by it that has been elected.
    pub(super) fn left_at_etcd(&self, task: u32, read: Record) -> Record {
        let site = self.tree.tasks[task as usize].site;
        Record::left(read, self.tree.sites[site as usize].lengths.authority)
    }

    /// The date, which all wall clocks show.
    pub(super) fn date(&self) -> WallClock {
        WallClock { since_epoch: Duration::from_nanos(self.now.as_nanos()) }
    }

    /// The same in milliseconds.
    pub(super) fn date_millis(&self) -> u64 {
        self.now.as_nanos() / 1_000_000
    }

    /// It takes its time. Nothing is drawn for it: all else is as it would be without.
    fn under_way(&mut self, to: u32, call: ClockCall) {
        let lag = self.now.as_nanos().wrapping_mul(0x9e37_79b9_7f4a_7c15) % LONGEST;
        self.later(Duration::from_nanos(lag), Event::Clock(to, Box::new(call)));
    }
}
