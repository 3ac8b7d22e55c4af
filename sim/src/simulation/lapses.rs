//! Lapses of authority: what comes to a leader that hears nothing of etcd waits as long as nobody else can lead.
//!
//! In the body of a server each stream keeps the last message that it has read, and reads no others; here all that comes is kept for
//! the task, in the order in which it came. It is heard when the leader may act again. If the key may have ended before that, it is
//! lost, and its stream ends.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_server::election::Candidate;

use super::{Event, Simulation, ToNode};
use crate::actor::Actor;
use crate::stream::StreamRef;

// === impl Simulation ===

impl Simulation {
    /// Keeps back what a leader cannot hear as long as its authority has lapsed and nobody else can lead, and what comes on the
    /// same stream behind that. Returns all else.
    pub(super) fn keep_back(&mut self, task: u32, delivery: ToNode) -> Option<ToNode> {
        if !self.waits(task, &delivery) {
            return Some(delivery);
        }
        self.progress.tally.lapsed += 1;
        let waiting = &mut self.leadership(task).waiting;
        waiting.push_back(delivery);
        if waiting.len() == 1 {
            self.hear_later(task);
        }
        None
    }

    fn waits(&self, task: u32, delivery: &ToNode) -> bool {
        match *delivery {
            ToNode::Open { .. } => self.knows_streams(task) && self.has_lapsed(task),
            ToNode::Up { stream, .. } | ToNode::Ready { stream } => {
                self.has_waiting(task, stream) || self.peer(task, stream).is_some() && self.has_lapsed(task)
            }
            ToNode::Ask { .. } | ToNode::Release { .. } | ToNode::Gone { .. } => false,
        }
    }

    /// Whether a task leads and may not act, and nobody else can lead yet.
    fn has_lapsed(&self, task: u32) -> bool {
        let found = &self.tree.tasks[task as usize];
        let until = found.candidate.as_deref().and_then(Candidate::key_until);
        found.leadership.is_some()
            && !found.acts(self.now)
            && until.is_some_and(|until| self.local(Actor::Task(task)) < until)
    }

    fn has_waiting(&self, task: u32, of: StreamRef) -> bool {
        let Some(leadership) = &self.tree.tasks[task as usize].leadership else { return false };
        leadership.waiting.iter().any(|delivery| match *delivery {
            ToNode::Open { stream, .. } | ToNode::Up { stream, .. } | ToNode::Ready { stream } => {
                stream == of
            }
            ToNode::Ask { .. } | ToNode::Release { .. } | ToNode::Gone { .. } => false,
        })
    }

    /// Nobody tells when the key may have ended.
    fn hear_later(&mut self, task: u32) {
        let found = &self.tree.tasks[task as usize];
        let until = found.candidate.as_deref().and_then(Candidate::key_until);
        let when = until.map_or(self.now, |until| found.process.clock.when(until));
        // A clock that stands still is looked at again.
        let longest = self.now + Duration::from_secs(1);
        self.queue.put(when.clamp(self.now, longest), Event::Waiting(task));
    }

    /// The leader may act again, or the key may have ended: what waits is heard, or is lost.
    pub(super) fn hear_waiting(&mut self, task: u32) {
        let Some(leadership) = &mut self.tree.tasks[task as usize].leadership else { return };
        for delivery in std::mem::take(&mut leadership.waiting) {
            self.at_node(task, delivery);
        }
    }
}

/// Those who wait to be connected, of all that waits.
pub(super) fn opening(waiting: VecDeque<ToNode>) -> impl Iterator<Item = StreamRef> {
    waiting.into_iter().filter_map(|delivery| match delivery {
        ToNode::Open { stream, .. } => Some(stream),
        _ => None,
    })
}
