//! Uses that are waited for: in order, and until units are free here or come from elsewhere.

use std::task::Waker;

use lessor_proto::Time;

use super::{Attention, ExactWindow};
use crate::denied::Denied;
use crate::waiting::{Clock, QueueGate, Step, Ticket, Waiting, wait};

// === impl ExactWindow ===

impl ExactWindow {
    /// Waits for `n` uses, in order and within `waiting`; `call` is called when there is something to ask a grantor for.
    pub(super) async fn wait_for<C: Clock>(
        &self,
        clock: &C,
        n: u32,
        waiting: Waiting,
        call: impl Fn(Attention),
    ) -> Result<(), Denied> {
        let ticket = {
            let mut state = self.lock();
            let ticket = state.join(clock.now(), n, waiting)?;
            let attention = state.missing_is_news();
            let attention = state.call(attention);
            drop(state);
            call(attention);
            ticket
        };
        wait(self, clock, ticket, clock.now(), waiting).await
    }
}

impl QueueGate for ExactWindow {
    type Pass = ();

    fn step(&self, ticket: Ticket, now: Time, waker: &Waker) -> Step<()> {
        let mut state = self.lock();
        state.asked = now;
        let units = state.queue.as_ref().and_then(|queue| queue.units_at_head(ticket));
        let made = units.is_some_and(|n| state.make(now, n, self.drift, self.rules).is_ok());
        if !made {
            // Units may be free here before others come.
            let until = state.kept.first_end().filter(|_| units.is_some());
            if let Some(queue) = &mut state.queue {
                queue.park(ticket, waker);
            }
            return Step::Wait(until);
        }
        self.passing.note_granted(units.unwrap_or_default());
        state.leave(ticket);
        let waker = state.queue.as_mut().and_then(|queue| queue.head_waker());
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Step::Granted(())
    }

    fn leave(&self, ticket: Ticket) {
        let mut state = self.lock();
        state.leave(ticket);
        let waker = state.queue.as_mut().and_then(|queue| queue.head_waker());
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}
