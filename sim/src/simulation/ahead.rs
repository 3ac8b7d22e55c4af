//! The look ahead: what the next events are about is read shortly before they happen.
//!
//! In a large simulation every event is about another client, whose state lies somewhere in gigabytes of memory, and one
//! event after the other would wait for it. What several of them are about is on its way at the same time when it is read
//! for all of them at once. Nothing changes by that, and nothing is decided by what was read.

use std::hint::black_box;

use lessor_proto::Time;

use super::{Event, Simulation, ToHolder, ToNode};
use crate::actor::{Actor, Sender};
use crate::stream::StreamRef;

/// Events that are looked at together.
const AHEAD: usize = 32;

// === impl Simulation ===

impl Simulation {
    /// Looks at the next events, if those have happened that were looked at last.
    pub(super) fn look_ahead(&mut self) {
        self.progress.looked_at = self.progress.looked_at.saturating_sub(1);
        if self.progress.looked_at > 0 {
            return;
        }
        for event in self.queue.current().take(AHEAD) {
            black_box(self.first_of(event));
            self.progress.looked_at += 1;
        }
        // What was read first says where the rest is.
        for event in self.queue.current().take(AHEAD) {
            black_box(self.rest_of(event));
        }
    }

    /// The state that an event finds by a number that it brings.
    fn first_of(&self, event: &Event) -> Option<Time> {
        match event {
            Event::Wake(Actor::Client(client)) => self.first_of_client(*client),
            Event::ToHolder { holder: Sender { actor: Actor::Client(client), .. }, delivery } => {
                let stream = if let ToHolder::Down { stream, .. } = **delivery { Some(stream) } else { None };
                self.first_of_client(*client).max(stream.and_then(|stream| self.clear(stream)))
            }
            Event::ToNode { delivery, .. } => match **delivery {
                ToNode::Up { stream, .. } => self.clear(stream),
                _ => None,
            },
            Event::Lapse(hold) => Some(self.population.holdings[*hold as usize].until),
            _ => None,
        }
    }

    /// The state that it finds by what it has found first.
    fn rest_of(&self, event: &Event) -> Option<Time> {
        match event {
            Event::Wake(Actor::Client(client)) => self.rest_of_client(*client),
            Event::ToHolder { holder: Sender { actor: Actor::Client(client), .. }, .. } => {
                self.rest_of_client(*client)
            }
            Event::ToNode { task, delivery } => match **delivery {
                ToNode::Up { stream, .. } => {
                    let (_, peer) = self.streams.get(stream)?.peer?;
                    self.tree.tasks[*task as usize].leadership.as_ref()?.node.last_heard(peer)
                }
                _ => None,
            },
            Event::Lapse(hold) => Some(
                self.population.clients[self.population.holdings[*hold as usize].client as usize]
                    .process
                    .wake,
            ),
            _ => None,
        }
    }

    fn first_of_client(&self, client: u32) -> Option<Time> {
        let found = &self.population.clients[client as usize];
        let until = found.holds.clone().map(|hold| self.population.holdings[hold as usize].until).max();
        until.max(Some(found.process.wake))
    }

    fn rest_of_client(&self, client: u32) -> Option<Time> {
        let found = &self.population.clients[client as usize];
        let clear = found.process.stream.and_then(|stream| self.clear(stream));
        clear.max(Some(found.mind.next_deadline()))
    }

    fn clear(&self, stream: StreamRef) -> Option<Time> {
        self.streams.get(stream).map(|found| found.up.clear.max(found.down.clear))
    }
}
