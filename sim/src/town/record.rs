//! The record of a place: what its leaders have written for their successors, and what becomes of their writes.
//!
//! It stands for a store that is there all the time. A write takes a while to get there, counts only if nobody has been
//! elected since, and the answer takes a while to come back, or never does.

use std::time::Duration;

use lessor_proto::message::Grant;
use lessor_proto::{Amount, Time};
use lessor_server::node::MarkWrite;

use super::{Event, Town};
use crate::process::Party;
use crate::story::What;

/// How long a write takes, and the answer to it.
const FASTEST: Duration = Duration::from_micros(50);
const SLOWEST: Duration = Duration::from_micros(2_500);
/// When a leader stops waiting for an answer.
const GIVEN_UP: Duration = Duration::from_millis(200);
/// Writes that are lost, and answers, while things go wrong: out of a thousand.
const LOST: u32 = 10;
const ANSWER_LOST: u32 = 20;

// === impl Town ===

impl Town {
    /// The leader of a place wants something written.
    pub(super) fn write_record(&mut self, place: u32, write: MarkWrite) {
        let found = &mut self.places[place as usize];
        found.writes += 1;
        let (epoch, reign, ticket) = (found.epoch, found.process.life, write.ticket);
        let [way, back] = [(); 2].map(|()| self.dice.time(FASTEST, SLOWEST));
        let lost = self.faulty() && self.dice.chance(LOST);
        let unanswered = lost || self.faulty() && self.dice.chance(ANSWER_LOST);
        self.note(Party::Place(place).who(), What::Writes, [ticket, lost.into(), unanswered.into()]);
        if !lost {
            self.later(way, Event::Store { place, epoch, write: Box::new(write) });
        }
        let heard = if unanswered { GIVEN_UP } else { way + back };
        self.later(heard, Event::Stored { place, reign, ticket, committed: !unanswered });
    }

    /// A write arrives at the store.
    pub(super) fn store(&mut self, place: u32, epoch: u64, write: &MarkWrite) {
        let found = &mut self.places[place as usize];
        if found.epoch != epoch {
            return;
        }
        let record = &mut found.record;
        record.marks.extend(write.puts.iter().map(|(id, &amount)| (id.clone(), amount)));
        record.marks.retain(|id, _| !write.deletes.contains(id));
        record.proofs.retain(|id, _| !write.puts.contains_key(id) && !write.deletes.contains(id));
        record.proofs.extend(write.proofs.clone());
        if let Some(header) = write.header {
            record.longest_lease = header.longest_lease;
            record.authority = header.authority;
            record.closed = header.closed;
        }
    }

    /// A leader hears what has become of its write.
    pub(super) fn stored(&mut self, place: u32, reign: u32, ticket: u64, committed: bool) {
        if self.places[place as usize].process.life != reign || !self.is_led(place) {
            return;
        }
        // If somebody else had been elected, the answer would have been that nothing was written.
        let now = self.local(Party::Place(place));
        self.node(place).on_marks(now, ticket, committed);
        self.drive_place(place);
    }

    /// What a leader grants must not outlast what its successor would wait for.
    pub(super) fn watch_grants(&mut self, place: u32, grants: &[Grant]) {
        let longest = self.places[place as usize].record.longest_lease;
        if let Some(grant) = grants.iter().find(|grant| grant.length > longest) {
            let length = grant.length;
            self.oracle
                .fail(6, || format!("place {place} grants for {length:?}, and {longest:?} is written"));
        }
    }

    /// What is out of a resource is not more than a successor would find written.
    pub(crate) fn check_mark(&mut self, place: u32, resource: u16, total: u128) {
        let id = &self.resources[usize::from(resource)].id;
        let mark = self.places[place as usize].record.marks.get(id).copied().unwrap_or(Amount::ZERO);
        if total > u128::from(mark.as_micros()) {
            self.oracle
                .fail(6, || format!("place {place} has {total} of r{resource} out, and {mark} is written"));
        }
    }

    /// A new leader of a node says nothing to the node above before its predecessor is certainly silent.
    pub(super) fn watch_silence(&mut self, place: u32) {
        let now: Time = self.local(Party::Place(place));
        let opens = self.places[place as usize].leader.as_ref().map(|leader| leader.opens);
        if opens.is_some_and(|opens| now < opens) {
            self.oracle
                .fail(13, || format!("place {place} speaks to the node above at [{now}], before {opens:?}"));
        }
    }

    /// How often the leaders of a place had something written.
    #[must_use]
    pub fn mark_writes(&self, place: u32) -> u64 {
        self.places[place as usize].writes
    }
}
