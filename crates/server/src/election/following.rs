//! Standing by: somebody else leads, and is watched.
//!
//! What is seen on a watch is believed at once. What is not seen is not: the key is read every now and then, so that a
//! watch that has died in silence holds nothing up for ever.

use lessor_proto::Time;

use super::call::{Answer, Call, Failure, Stored, Watched};
use super::config::ElectionConfig;
use super::outbox::{Outbox, PendingCall};
use super::pace::Pace;
use super::record::RecordKeys;

/// Somebody leads.
#[derive(Clone, Debug)]
pub(super) struct Following {
    /// Of the key.
    pub(super) create_revision: u64,
    watch: Option<u64>,
    call: Option<PendingCall>,
    next: Time,
    pace: Pace,
}

/// An observation of the key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// Nothing else than before.
    Same,
    /// Another has it.
    Other(Stored),
    /// It has gone.
    Gone,
}

// === impl Following ===

impl Following {
    /// The key was created at `create_revision`, and was read at `revision`.
    pub(super) fn new(
        now: Time,
        create_revision: u64,
        revision: u64,
        keys: &RecordKeys,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) -> Following {
        Following {
            create_revision,
            watch: Some(out.watch(keys.leader.clone(), revision + 1)),
            call: None,
            next: now + config.ttl,
            pace: Pace::default(),
        }
    }

    pub(super) fn advance(
        &mut self,
        now: Time,
        keys: &RecordKeys,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) {
        if let Some(call) = self.call.take_if(|call| call.until <= now) {
            self.fail(now, call, &Failure::Timeout, config, out);
        }
        if self.call.is_none() && self.next <= now {
            self.call = Some(out.call(now, Call::Read { key: keys.leader.clone() }));
        }
    }

    pub(super) fn on_watched(
        &mut self,
        now: Time,
        id: u64,
        watched: Watched,
        config: &ElectionConfig,
    ) -> Seen {
        if self.watch != Some(id) {
            return Seen::Same;
        }
        match watched {
            Watched::Put(stored) if stored.create_revision == self.create_revision => Seen::Same,
            Watched::Put(stored) => {
                self.create_revision = stored.create_revision;
                Seen::Other(stored)
            }
            Watched::Deleted => Seen::Gone,
            Watched::Compacted | Watched::Ended(_) => {
                self.watch = None;
                // A read that is under way may be older than what was missed, but the watch begins where it ends.
                self.next = self.next.min(now + self.pace.failed(config.nonce, config.longest_wait()));
                Seen::Same
            }
        }
    }

    pub(super) fn awaits(&self, id: u64) -> bool {
        self.call.is_some_and(|call| call.id == id)
    }

    pub(super) fn on_answer(
        &mut self,
        now: Time,
        result: Result<Answer, Failure>,
        keys: &RecordKeys,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) -> Seen {
        let Some(call) = self.call.take() else { return Seen::Same };
        let (stored, revision) = match result {
            Ok(Answer::Read { stored, revision }) => (stored, revision),
            Ok(other) => {
                self.fail(now, call, &Failure::unexpected(&other), config, out);
                return Seen::Same;
            }
            Err(failure) => {
                self.fail(now, call, &failure, config, out);
                return Seen::Same;
            }
        };
        out.succeeded(call);
        self.next = now + config.ttl;
        let Some(stored) = stored else { return Seen::Gone };
        let is_other = stored.create_revision != self.create_revision;
        if self.watch.is_none() || is_other {
            // It has not shown what there was to see, or has ended.
            out.unwatch(self.watch.take());
            self.watch = Some(out.watch(keys.leader.clone(), revision + 1));
        } else {
            self.pace.succeeded();
        }
        self.create_revision = stored.create_revision;
        if is_other { Seen::Other(stored) } else { Seen::Same }
    }

    /// Ends the watch.
    pub(super) fn stop(self, out: &mut Outbox) {
        out.unwatch(self.watch);
    }

    pub(super) fn deadline(&self) -> Time {
        self.call.map_or(self.next, |call| call.until)
    }

    fn fail(
        &mut self,
        now: Time,
        call: PendingCall,
        failure: &Failure,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) {
        out.failed(call, failure);
        self.next = now + self.pace.failed(config.nonce, config.longest_wait());
    }
}
