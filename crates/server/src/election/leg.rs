//! One of the two calls on which authority stands: each is made again and again, and counts from before it was sent.

use std::time::Duration;

use lessor_proto::Time;

use super::call::{Call, Failure};
use super::config::ElectionConfig;
use super::outbox::{Outbox, PendingCall};
use super::pace::Pace;

/// A call that is made again and again.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    call: Option<PendingCall>,
    next: Time,
    pace: Pace,
    /// When the last call that succeeded was sent, or rather before.
    pub(super) basis: Option<Time>,
}

// === impl Leg ===

impl Leg {
    /// A call like it, which was sent at `basis`, has succeeded; absent: so long ago that the clock had not begun.
    pub(super) fn new(basis: Option<Time>, config: &ElectionConfig) -> Leg {
        let next = basis.map_or(Time::ZERO, |basis| basis + config.keep_alive);
        Leg { call: None, next, pace: Pace::default(), basis }
    }

    /// Disregards the calls sent so far; another is due at once.
    pub(super) fn restart(&mut self, now: Time) {
        *self = Leg { call: None, next: now, pace: Pace::default(), basis: None };
    }

    pub(super) fn advance(
        &mut self,
        now: Time,
        config: &ElectionConfig,
        out: &mut Outbox,
        call: impl FnOnce() -> Call,
    ) {
        if let Some(pending) = self.call.take_if(|pending| pending.until <= now) {
            self.failed(now, pending, &Failure::Timeout, config, out);
        }
        if self.call.is_none() && self.next <= now {
            self.call = Some(out.call(now, call()));
        }
    }

    /// Takes account of time that the clock did not show: calls were sent earlier by it, and the next is due
    /// earlier.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        self.basis = self.basis.and_then(|basis| basis.checked_earlier(lost));
        self.next = self.next.earlier(lost);
        self.call.iter_mut().for_each(|call| call.lose_time(lost));
    }

    pub(super) fn take(&mut self, id: u64) -> Option<PendingCall> {
        self.call.take_if(|pending| pending.id == id)
    }

    /// Counts from `basis`.
    pub(super) fn succeeded(
        &mut self,
        pending: PendingCall,
        basis: Time,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) {
        out.succeeded(pending);
        self.pace.succeeded();
        self.basis = Some(basis);
        self.next = pending.sent + config.keep_alive;
    }

    pub(super) fn failed(
        &mut self,
        now: Time,
        pending: PendingCall,
        failure: &Failure,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) {
        out.failed(pending, failure);
        self.next = now + self.pace.failed(config.nonce, config.keep_alive);
    }

    pub(super) fn deadline(&self) -> Time {
        self.call.map_or(self.next, |pending| pending.until)
    }
}
