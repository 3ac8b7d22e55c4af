//! The outbox of a candidate: actions, which are numbered here, and events.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::Time;

use super::call::{Action, Call, Class, Failure};
use super::event::Event;

/// The actions and events that are to leave.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    pub(super) actions: VecDeque<Action>,
    pub(super) events: VecDeque<Event>,
    timeout: Duration,
    numbered: u64,
    /// The kind of calls that fails, which has been told of.
    failing: Option<Class>,
}

/// A call that has not been answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PendingCall {
    pub(super) id: u64,
    class: Class,
    /// Before it left.
    pub(super) sent: Time,
    /// When it counts as failed.
    pub(super) until: Time,
}

// === impl PendingCall ===

impl PendingCall {
    /// It was sent earlier by time that the clock did not show; it counts as failed if that was before the zero of the clock.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        match self.sent.checked_earlier(lost) {
            Some(sent) => self.sent = sent,
            None => self.until = Time::ZERO,
        }
    }
}

// === impl Outbox ===

impl Outbox {
    /// Calls have so much time to be answered.
    pub(super) fn new(timeout: Duration) -> Outbox {
        Outbox { actions: VecDeque::new(), events: VecDeque::new(), timeout, numbered: 0, failing: None }
    }

    pub(super) fn call(&mut self, now: Time, call: Call) -> PendingCall {
        let class = call.class();
        self.numbered += 1;
        self.actions.push_back(Action::Call { id: self.numbered, call });
        PendingCall { id: self.numbered, class, sent: now, until: now + self.timeout }
    }

    pub(super) fn watch(&mut self, key: String, from_revision: u64) -> u64 {
        self.numbered += 1;
        self.actions.push_back(Action::Watch { id: self.numbered, key, from_revision });
        self.numbered
    }

    pub(super) fn unwatch(&mut self, watch: Option<u64>) {
        self.actions.extend(watch.map(|id| Action::Unwatch { id }));
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// A call was answered.
    pub(super) fn succeeded(&mut self, pending: PendingCall) {
        if self.failing == Some(pending.class) {
            self.is_well();
        }
    }

    /// A call has failed.
    pub(super) fn failed(&mut self, pending: PendingCall, why: &Failure) {
        self.fault(pending.class, why.to_string());
    }

    /// Tells of the first fault, and of others only after it has gone.
    pub(super) fn fault(&mut self, class: Class, why: String) {
        if self.failing.replace(class).is_none() {
            self.tell(Event::Faulty(why));
        }
    }

    /// Nothing that matters at present fails.
    pub(super) fn is_well(&mut self) {
        if self.failing.take().is_some() {
            self.tell(Event::Healthy);
        }
    }
}
