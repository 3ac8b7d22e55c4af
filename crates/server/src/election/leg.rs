//! One of the two calls on which authority stands: each is made again and again, and counts from before it was sent.

use std::time::Duration;

use lessor_proto::Time;

use super::call::{Call, Failure};
use super::config::ElectionConfig;
use super::context::StepContext;
use super::outbox::PendingCall;
use super::retry::Retry;

/// A call that is made again and again.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    retry: Retry,
    /// When the last call that succeeded was sent, or rather before.
    pub(super) basis: Option<Time>,
}

// === impl Leg ===

impl Leg {
    /// A call like it, which was sent at `basis`, has succeeded; absent: so long ago that the clock had not begun.
    pub(super) fn new(basis: Option<Time>, config: &ElectionConfig) -> Leg {
        let next = basis.map_or(Time::ZERO, |basis| basis + config.keep_alive);
        Leg { retry: Retry::new(next, config.keep_alive), basis }
    }

    /// Disregards the calls sent so far; another is due at once.
    pub(super) fn restart(&mut self, context: &StepContext<'_>) {
        *self = Leg { retry: Retry::new(context.now, context.config.keep_alive), basis: None };
    }

    pub(super) fn advance(&mut self, context: &mut StepContext<'_>, call: impl FnOnce() -> Call) {
        self.retry.advance(context, call);
    }

    /// Takes account of time that the clock did not show: calls were sent earlier by it, and the next is due
    /// earlier.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        self.basis = self.basis.and_then(|basis| basis.checked_earlier(lost));
        self.retry.lose_time(lost);
    }

    pub(super) fn take(&mut self, id: u64) -> Option<PendingCall> {
        self.retry.take(id)
    }

    /// Counts from `basis`.
    pub(super) fn succeeded(&mut self, context: &mut StepContext<'_>, pending: PendingCall, basis: Time) {
        context.out.succeeded(pending);
        self.retry.calm();
        self.retry.next = pending.sent + context.config.keep_alive;
        self.basis = Some(basis);
    }

    pub(super) fn failed(&mut self, context: &mut StepContext<'_>, pending: PendingCall, failure: &Failure) {
        self.retry.failed(context, pending, failure);
    }

    pub(super) fn next_deadline(&self) -> Time {
        self.retry.next_deadline()
    }
}
