//! Turns: what the driver's own task does for everybody, a slice at a time.
//!
//! A caller has the lock for what it says and what that brings about. Pushes that are due, and streams that take something
//! again, are for the task: one look at one resource, or so many streams, and others are heard before it goes on. So the
//! lock is held for no longer than one look takes, and who calls does not pay for what is due to others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Time;
use lessor_proto::message::Down;
use tokio::sync::{Notify, watch};
use tracing::warn;

use super::hold_kind::HoldKind;
use super::leader_state::LeaderState;
use super::stream_key::StreamKey;
use super::watchdog::Watchdog;
use super::{Driver, TICK, Unanswered};
use crate::node::Node;
use crate::shell::measure::{self, Timing, Timings};

/// The outcome of a call under the lock.
pub(super) struct Held<R> {
    pub(super) outcome: R,
    /// The first message for the stream that takes one at once, if there is any.
    pub(super) taken: Option<Down>,
    /// The time at which the lock was given back.
    pub(super) ended: Time,
}

/// Streams that are heard to take something again in one turn.
const SLICE: usize = 64;
/// Turns in a row, after which a deadline that has passed is left until the next tick.
const MOST_TURNS: usize = 10_000;

/// The work that waits for the driver's task, and how long turns have taken.
#[derive(Debug)]
pub(in crate::shell) struct Turns {
    /// When the node is to be polled if nothing else happens.
    alarm: watch::Sender<Time>,
    /// There is something to do.
    work: Notify,
    /// Streams that have taken what came out for them last, of which the node has not heard.
    taken: Mutex<Vec<StreamKey>>,
    /// Whether there may be any of those.
    is_any_taken: AtomicBool,
    /// Whether something waits for a stream to take something.
    awaited: AtomicBool,
    /// The times for which the lock was held at once, by what for.
    holds: Timings<HoldKind>,
    /// All of them by a second clock, if there is one.
    metered: Option<(fn() -> Duration, Timing)>,
    watchdog: Watchdog,
}

// === impl Turns ===

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            alarm: watch::Sender::new(Time::MAX),
            work: Notify::new(),
            taken: Mutex::default(),
            is_any_taken: AtomicBool::new(false),
            awaited: AtomicBool::new(false),
            holds: Timings::new(measure::PROMPT),
            metered: None,
            watchdog: Watchdog::default(),
        }
    }
}

impl Turns {
    /// The times for which the lock was held at once, by what for.
    pub(in crate::shell) fn holds(&self) -> &Timings<HoldKind> {
        &self.holds
    }

    /// All of them by a second clock, if there is one.
    pub(in crate::shell) fn metered(&self) -> Option<&Timing> {
        self.metered.as_ref().map(|(_, histogram)| histogram)
    }

    /// A stream has taken what came out for it last.
    fn take(&self, key: StreamKey) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.push(key);
        self.is_any_taken.store(true, Ordering::Release);
        drop(taken);
        // Whoever says that something waits looks at the list after that, so one of the two sees the other.
        if self.awaited.load(Ordering::SeqCst) {
            self.work.notify_one();
        }
    }

    /// Whether something waits for a stream to take something. Only who has the lock of the node says so: it is written
    /// where it changes, which is rare.
    fn set_awaited(&self, is_awaited: bool) {
        if self.awaited.load(Ordering::Relaxed) != is_awaited {
            self.awaited.store(is_awaited, Ordering::SeqCst);
        }
    }

    /// At most so many of those streams. Where there are none, as with every call of those who only poll, no lock is taken.
    fn next(&self, most: usize) -> Vec<StreamKey> {
        if !self.is_any_taken.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() <= most {
            self.is_any_taken.store(false, Ordering::Release);
            return std::mem::take(&mut *taken);
        }
        taken.drain(..most).collect()
    }

    fn is_any(&self) -> bool {
        !self.taken.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

// === impl Driver ===

impl Driver {
    /// The message that came out last for a stream has been taken. While this task may not act that is kept in mind, or
    /// nothing would come down the stream when it may again.
    pub(in crate::shell) fn ready(&self, key: StreamKey) -> Result<(), Unanswered> {
        self.turns.take(key);
        if self.leader_state.is_poisoned() { Err(Unanswered::Broken) } else { Ok(()) }
    }

    /// The work that waits for the driver's task, and how long turns have taken.
    pub(in crate::shell) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Tells by a second clock as well for how long the lock is held.
    pub(in crate::shell) fn set_meter(&mut self, meter: Option<fn() -> Duration>) {
        self.turns.metered = meter.map(|meter| (meter, Timing::new(measure::PROMPT)));
    }

    /// Takes turns when there is something to do, until stopped.
    pub(crate) async fn keep_time(self: Arc<Driver>, mut stopped: watch::Receiver<bool>) {
        let mut alarm = self.turns.alarm.subscribe();
        loop {
            let at = *alarm.borrow_and_update();
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return,
                // It never errs: the sender is ours.
                _ = alarm.changed() => continue,
                () = self.turns.work.notified() => {}
                () = clock::sleep_until(at) => {}
            }
            for _ in 0..MOST_TURNS {
                match self.turn() {
                    Ok(true) => tokio::task::yield_now().await,
                    Err(Unanswered::Broken) => {
                        warn!("nothing comes out any more: the node is broken");
                        return;
                    }
                    Ok(false) | Err(_) => break,
                }
            }
        }
    }

    /// One turn. Returns whether there is more to do at once.
    pub(super) fn turn(&self) -> Result<bool, Unanswered> {
        self.hold(HoldKind::Turn, |leader_state, now| {
            if !self.leads(leader_state, now) {
                return false;
            }
            leader_state.hear_taken(now, self.turns.next(SLICE));
            if let Some(node) = &mut leader_state.node {
                node.look_next(now);
            }
            let is_due = |node: &Node| node.is_look_due(now);
            leader_state.node.as_ref().is_some_and(is_due) || self.turns.is_any()
        })
    }

    /// Takes the lock for one turn, and hands out what comes of it.
    pub(super) fn hold<R>(
        &self,
        kind: HoldKind,
        turn: impl FnOnce(&mut LeaderState, Time) -> R,
    ) -> Result<R, Unanswered> {
        self.hold_for(kind, None, turn).map(|held| held.outcome)
    }

    /// The same for a stream that is about to take a message.
    fn hold_for<R>(
        &self,
        kind: HoldKind,
        reader: Option<StreamKey>,
        turn: impl FnOnce(&mut LeaderState, Time) -> R,
    ) -> Result<Held<R>, Unanswered> {
        let mut leader_state = self.leader_state()?;
        let metered = self.turns.metered.as_ref().map(|(meter, timing)| (meter, meter(), timing));
        let now = clock::now();
        self.look_at_clocks(&mut leader_state, now);
        self.confirm(&mut leader_state, now);
        let outcome = turn(&mut leader_state, now);
        let (mut deadline, mut taken) = (Time::MAX, None);
        if self.leads(&leader_state, now) {
            let reader = reader.and_then(|key| leader_state.peer(key));
            taken = leader_state.hand_out(now, reader);
            if leader_state.has_noted() {
                self.domains.notifier.notify_one();
            }
            if leader_state.has_look_noted() {
                self.looks.notify();
            }
            let node = leader_state.node.as_ref();
            let due = node.and_then(Node::next_deadline);
            // A deadline that has passed must not keep a processor busy.
            deadline = due.map_or(Time::MAX, |due| due.max(now + TICK));
            self.turns.set_awaited(leader_state.awaits_streams());
            if node.is_some_and(|node| node.is_look_due(now))
                || leader_state.awaits_streams() && self.turns.is_any()
            {
                self.turns.work.notify_one();
            }
        }
        // Under the lock, or an older deadline could take the place of this one.
        if std::mem::replace(&mut leader_state.deadline, deadline) != deadline {
            self.turns.alarm.send_if_modified(|at| std::mem::replace(at, deadline) > deadline);
        }
        let metered = metered.map(|(meter, began, timing)| (meter().saturating_sub(began), timing));
        let measured = leader_state.node.as_mut().map(Node::take_measured);
        let ended = clock::now();
        drop(leader_state);
        let took: Duration = ended.since(now);
        self.turns.holds.note(kind, took);
        self.turns.watchdog.look(ended, kind, took);
        if let Some((took, timing)) = metered {
            timing.note(took);
        }
        self.traffic.note(measured.unwrap_or_default());
        Ok(Held { outcome, taken, ended })
    }

    /// One call, before which the node hears of some streams that take something again, if nothing waits for any: that is
    /// soon done.
    pub(super) fn with_state<R>(
        &self,
        kind: HoldKind,
        with_state: impl FnOnce(&mut LeaderState, Time) -> R,
    ) -> Result<R, Unanswered> {
        self.with_state_for(kind, None, with_state).map(|held| held.outcome)
    }

    /// The same for a stream that is about to take a message.
    pub(super) fn with_state_for<R>(
        &self,
        kind: HoldKind,
        reader: Option<StreamKey>,
        with_state: impl FnOnce(&mut LeaderState, Time) -> R,
    ) -> Result<Held<R>, Unanswered> {
        self.hold_for(kind, reader, |leader_state, now| {
            if self.leads(leader_state, now) && !leader_state.awaits_streams() {
                leader_state.hear_taken(now, self.turns.next(SLICE));
            }
            with_state(leader_state, now)
        })
    }

    fn leads(&self, leader_state: &LeaderState, now: Time) -> bool {
        leader_state.node.as_ref().is_some_and(|node| self.acts(node.epoch(), now))
    }
}

#[cfg(test)]
mod tests;
