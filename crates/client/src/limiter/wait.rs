//! Permits that are waited for.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use lessor_proto::Time;

use super::central::Central;
use super::{Denied, Limiter, notify};
use crate::waiting::{Clock, QueueGate, Step, Ticket, Waiting, wait};

impl Limiter {
    /// Waits for a permit for `n` units, in order, within the bounds of [`Limiter::with_waiting`].
    ///
    /// While nothing is leased it waits for a lease. Dropping the future gives up the place and takes nothing.
    ///
    /// # Errors
    ///
    /// See [`Denied`].
    #[cfg(feature = "shell")]
    pub async fn acquire(&self, n: u32) -> Result<(), Denied> {
        self.acquire_by(&crate::waiting::Boot, n).await
    }

    /// The same on another clock.
    ///
    /// # Errors
    ///
    /// See [`Denied`].
    pub async fn acquire_by<C: Clock>(&self, clock: &C, n: u32) -> Result<(), Denied> {
        self.acquire_within(clock, n, self.waiting.max_wait).await
    }

    /// The same with another longest wait.
    ///
    /// # Errors
    ///
    /// See [`Denied`].
    pub async fn acquire_within<C: Clock>(
        &self,
        clock: &C,
        n: u32,
        max_wait: Duration,
    ) -> Result<(), Denied> {
        if self.shards.spend(n) {
            self.pass_on(n, || clock.now());
            return Ok(());
        }
        let now = clock.now();
        if self.slots.is_over(now) {
            self.roll(now);
        }
        if !matches!(self.metered(n, now), Some(Ok(()))) {
            let waiting = Waiting { max_wait, ..self.waiting };
            if let Some(ticket) = self.draw_or_join(n, now, waiting)? {
                wait(self, clock, ticket, now, waiting).await?;
            }
        }
        self.pass_on(n, || clock.now());
        Ok(())
    }

    /// Waits in the queue for so many units, for so long at the most, though some may be there. A second limit is asked for them
    /// when they are used.
    pub(crate) async fn queue<C: Clock>(&self, clock: &C, n: u32, max_wait: Duration) -> Result<(), Denied> {
        let now = clock.now();
        let waiting = Waiting { max_wait, ..self.waiting };
        let ticket = {
            let mut central = self.take_over();
            let ticket = match self.passing.is_on() {
                true => Ok(None),
                false => central.join(n, now, waiting).map(Some),
            };
            if let Ok(None) = ticket {
                central.grant_freely(n);
            }
            self.publish(&central, now);
            notify(central);
            ticket?
        };
        let Some(ticket) = ticket else { return Ok(()) };
        wait(self, clock, ticket, now, waiting).await
    }

    /// Whether units are asked for one by one.
    pub(crate) fn is_by_request(&self) -> bool {
        self.lock().is_by_request()
    }

    /// Units that were waited for turned out to be of no use: they go to who waits next, or are lost.
    pub(crate) fn give_back(&self, n: u32) {
        let mut central = self.take_over();
        central.give_back(n);
        self.let_in_next(central);
    }

    /// Wakes who waits first, without a clock here: zero is always right, the next to ask publishes the true moment and starts
    /// the meter.
    fn let_in_next(&self, mut central: MutexGuard<'_, Central>) {
        self.ready_at.store(0, Ordering::Relaxed);
        let waker = central.head_waker();
        notify(central);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A place in the queue where a permit cannot be had at once.
    fn draw_or_join(&self, n: u32, now: Time, waiting: Waiting) -> Result<Option<Ticket>, Denied> {
        let mut central = self.take_over();
        let is_fetched = central.fetch(n, now, &self.shards);
        let answer = match is_fetched {
            true => Ok(None),
            false if self.passing.lets(n) => {
                self.shards.count_denied(n);
                Ok(None)
            }
            // What is allowed may be as small as what was wanted until now.
            false if self.knocker.is_hopeful() => {
                let waiting = Waiting { max_wait: Duration::MAX, ..waiting };
                central.join(n, now, waiting).map(Some)
            }
            false => central.join(n, now, waiting).map(Some),
        };
        self.publish(&central, now);
        notify(central);
        if !is_fetched {
            self.knocker.knock();
        }
        answer
    }
}

impl QueueGate for Limiter {
    type Pass = ();

    fn step(&self, ticket: Ticket, now: Time, waker: &Waker) -> Step<()> {
        let mut central = self.take_over();
        let mut step = central.step(ticket, now, waker, &self.shards);
        // Whoever has waited until everything was let pass has waited enough.
        if self.passing.is_on() && matches!(step, Step::Wait(_)) && central.let_in(ticket) {
            step = Step::Granted(());
        }
        match step {
            Step::Granted(()) => self.settle(central, now),
            Step::Wait(_) => self.publish(&central, now),
        }
        step
    }

    fn leave(&self, ticket: Ticket) {
        let mut central = self.take_over();
        central.leave(ticket);
        self.let_in_next(central);
    }
}
