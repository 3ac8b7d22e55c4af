//! The future of one who waits.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use lessor_proto::Time;

use super::{Ticket, Waiting};
use crate::denied::Denied;

/// The view of time that a waiter needs. The shell has the process's own; a simulation brings another.
pub trait Clock {
    /// The moment.
    fn now(&self) -> Time;
    /// Ends at that moment, or a little later.
    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> + Send;
}

/// The object of a wait, with a queue of its own.
pub(crate) trait QueueGate {
    /// The pass that one who is let in takes along.
    type Pass;
    /// Lets `ticket` in if it is at the head and there is room; else remembers whom to wake.
    fn step(&self, ticket: Ticket, now: Time, waker: &Waker) -> Step<Self::Pass>;
    /// `ticket` does not wait any more and was not let in.
    fn leave(&self, ticket: Ticket);
}

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step<P> {
    /// Let in; the place is gone.
    Granted(P),
    /// Not yet. There is reason to ask again at that moment, or only when woken.
    Wait(Option<Time>),
}

/// A place that is left when this is dropped.
struct Place<'a, D: QueueGate> {
    door: &'a D,
    ticket: Ticket,
    waits: bool,
}

/// Waits in front of `door` until let in, or until `waiting.max_wait` has passed since `since`.
pub(crate) async fn wait<D: QueueGate, C: Clock>(
    door: &D,
    clock: &C,
    ticket: Ticket,
    since: Time,
    waiting: Waiting,
) -> Result<D::Pass, Denied> {
    let mut place = Place { door, ticket, waits: true };
    let give_up = since + waiting.max_wait;
    loop {
        let (step, now) = poll_fn(|cx| {
            let now = clock.now();
            Poll::Ready((door.step(ticket, now, cx.waker()), now))
        })
        .await;
        let due = match step {
            Step::Granted(pass) => {
                place.waits = false;
                return Ok(pass);
            }
            Step::Wait(_) if now >= give_up => return Err(Denied::TimedOut { max_wait: waiting.max_wait }),
            Step::Wait(due) => due.unwrap_or(Time::MAX).min(give_up),
        };
        let mut sleep = pin!(clock.sleep_until(due));
        let mut asleep = false;
        // Polled again, for whatever reason, it is time to ask again: the waker in the queue and the one in the timer
        // are the same.
        poll_fn(|cx| {
            if std::mem::replace(&mut asleep, true) {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(cx)
        })
        .await;
    }
}

// === impl Place ===

impl<D: QueueGate> Drop for Place<'_, D> {
    fn drop(&mut self) {
        if self.waits {
            self.door.leave(self.ticket);
        }
    }
}
