//! Standing by: somebody else leads, and is watched.
//!
//! A change that is seen on a watch is believed at once. The absence of one is not: the key is read every now and then,
//! so that a watch that has died in silence holds nothing up for ever.

use lessor_proto::Time;

use super::call::{Answer, Call, Failure, Stored, Watched};
use super::context::StepContext;
use super::retry::Retry;

/// Somebody leads.
#[derive(Clone, Debug)]
pub(super) struct Following {
    /// Of the key.
    pub(super) create_revision: u64,
    watch: Option<u64>,
    read: Retry,
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
    pub(super) fn new(context: &mut StepContext<'_>, create_revision: u64, revision: u64) -> Following {
        let StepContext { now, keys, config, out, .. } = context;
        Following {
            create_revision,
            watch: Some(out.watch(keys.leader.clone(), revision + 1)),
            read: Retry::new(*now + config.ttl, config.longest_wait()),
        }
    }

    pub(super) fn advance(&mut self, context: &mut StepContext<'_>) {
        let key = &context.keys.leader;
        self.read.advance(context, || Call::Read { key: key.clone() });
    }

    pub(super) fn on_watched(&mut self, context: &StepContext<'_>, id: u64, watched: Watched) -> Seen {
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
                self.read.hurry_after_failure(context);
                Seen::Same
            }
        }
    }

    pub(super) fn awaits(&self, id: u64) -> bool {
        self.read.awaits(id)
    }

    pub(super) fn on_answer(
        &mut self,
        context: &mut StepContext<'_>,
        result: Result<Answer, Failure>,
    ) -> Seen {
        let Some(call) = self.read.take_any() else { return Seen::Same };
        let failure = match result {
            Ok(Answer::Read { stored, revision }) => {
                context.out.succeeded(call);
                return self.on_read(context, stored, revision);
            }
            Ok(other) => Failure::unexpected(&other),
            Err(failure) => failure,
        };
        self.read.failed(context, call, &failure);
        Seen::Same
    }

    /// The key was read at `revision`.
    fn on_read(&mut self, context: &mut StepContext<'_>, stored: Option<Stored>, revision: u64) -> Seen {
        self.read.next = context.now + context.config.ttl;
        let Some(stored) = stored else { return Seen::Gone };
        let is_other = stored.create_revision != self.create_revision;
        if self.watch.is_none() || is_other {
            // It has not shown what there was to see, or has ended.
            context.out.unwatch(self.watch.take());
            self.watch = Some(context.out.watch(context.keys.leader.clone(), revision + 1));
        } else {
            self.read.calm();
        }
        self.create_revision = stored.create_revision;
        if is_other { Seen::Other(stored) } else { Seen::Same }
    }

    /// Ends the watch.
    pub(super) fn stop(self, context: &mut StepContext<'_>) {
        context.out.unwatch(self.watch);
    }

    pub(super) fn next_deadline(&self) -> Time {
        self.read.next_deadline()
    }
}
