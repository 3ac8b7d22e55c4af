//! A call that is made again: until it is answered, or as long as it is wanted.
//!
//! At most one is under way. One that is not answered in time, or fails, is made again after a wait that grows with every
//! failure in a row.

use std::time::Duration;

use lessor_proto::Time;

use super::call::{Call, Failure};
use super::context::StepContext;
use super::outbox::PendingCall;
use super::pace::Pace;

/// A call that is made again.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    call: Option<PendingCall>,
    /// When it is made next, if it is not under way.
    pub(super) next: Time,
    /// The longest wait after a failure.
    longest: Duration,
    pace: Pace,
}

// === impl Retry ===

impl Retry {
    /// To be made at `next`, and at most `longest` after a failure.
    pub(super) fn new(next: Time, longest: Duration) -> Retry {
        Retry { call: None, next, longest, pace: Pace::default() }
    }

    /// Gives up a call that was not answered in time, and makes the next one if it is due.
    pub(super) fn advance(&mut self, context: &mut StepContext<'_>, call: impl FnOnce() -> Call) {
        if let Some(pending) = self.call.take_if(|pending| pending.until <= context.now) {
            self.failed(context, pending, &Failure::Timeout);
        }
        if self.call.is_none() && self.next <= context.now {
            self.call = Some(context.out.call(context.now, call()));
        }
    }

    /// Whether `id` is the call that is under way.
    pub(super) fn awaits(&self, id: u64) -> bool {
        self.call.is_some_and(|pending| pending.id == id)
    }

    /// The call under way, which has been answered; nothing if that is not `id`.
    pub(super) fn take(&mut self, id: u64) -> Option<PendingCall> {
        self.call.take_if(|pending| pending.id == id)
    }

    /// The call under way, whichever it is, which has been answered.
    pub(super) fn take_any(&mut self) -> Option<PendingCall> {
        self.call.take()
    }

    /// Waits begin anew after the next failure.
    pub(super) fn calm(&mut self) {
        self.pace.succeeded();
    }

    /// A call has failed: it is made again after a while.
    pub(super) fn failed(&mut self, context: &mut StepContext<'_>, pending: PendingCall, failure: &Failure) {
        context.out.failed(pending, failure);
        self.next = self.after_failure(context);
    }

    /// Something that belongs to it has failed: it is made after a while, or sooner if that was to be.
    pub(super) fn hurry_after_failure(&mut self, context: &StepContext<'_>) {
        self.next = self.next.min(self.after_failure(context));
    }

    /// Takes account of time that the clock did not show: calls were sent earlier by it, and the next is due earlier.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        self.next = self.next.earlier(lost);
        self.call.iter_mut().for_each(|pending| pending.lose_time(lost));
    }

    pub(super) fn next_deadline(&self) -> Time {
        self.call.map_or(self.next, |pending| pending.until)
    }

    fn after_failure(&mut self, context: &StepContext<'_>) -> Time {
        context.now + self.pace.failed(context.config.nonce, self.longest)
    }
}
