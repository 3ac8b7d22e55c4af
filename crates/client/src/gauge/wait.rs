//! Permits that are waited for.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::Duration;

use lessor_proto::Time;

use super::{Denied, Inner, Permit, Semaphore, TakenUnits, Waiting};
use crate::waiting::{Clock, QueueGate, Step, Ticket, wait};

impl Semaphore {
    /// Waits for a permit for `n` units, in order, within the bounds given to [`Semaphore::new`].
    ///
    /// While less than `n` is leased it waits for a greater lease. Dropping the future gives up the place and takes
    /// nothing.
    ///
    /// # Errors
    ///
    /// See [`Denied`].
    #[cfg(feature = "shell")]
    pub async fn acquire(&self, n: u32) -> Result<Permit, Denied> {
        self.acquire_by(&crate::waiting::Boot, n).await
    }

    /// The same on another clock.
    ///
    /// # Errors
    ///
    /// See [`Denied`].
    pub async fn acquire_by<C: Clock>(&self, clock: &C, n: u32) -> Result<Permit, Denied> {
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
    ) -> Result<Permit, Denied> {
        if let Ok(permit) = self.try_acquire(n, || clock.now()) {
            return Ok(permit);
        }
        let mut permit = self.queue(clock, n, max_wait).await?;
        permit.pass_on(|| clock.now());
        Ok(permit)
    }

    /// Takes a place in the queue, whatever there is, and waits no longer than `max_wait`. A second limit is asked for the units
    /// when they are granted.
    pub(crate) async fn queue<C: Clock>(
        &self,
        clock: &C,
        n: u32,
        max_wait: Duration,
    ) -> Result<Permit, Denied> {
        let waiting = Waiting { max_wait, ..self.waiting };
        if self.inner.passing.lets(n) {
            return Ok(self.permit(TakenUnits { passed: n, ..TakenUnits::NONE }));
        }
        let ticket = self.inner.join(n, waiting)?;
        let taken = wait(&*self.inner, clock, ticket, clock.now(), waiting).await?;
        Ok(self.permit(taken))
    }
}

impl Permit {
    /// Waits until the permit has ended: what it stands for must be over by then. Without an end, it waits for ever.
    #[cfg(feature = "shell")]
    pub async fn expired(&self) {
        self.expired_by(&crate::waiting::Boot).await;
    }

    /// The same on another clock.
    pub async fn expired_by<C: Clock>(&self, clock: &C) {
        let watch = self.inner.terms.watch();
        loop {
            // In this order: an end that comes sooner wakes, or is read.
            poll_fn(|cx| {
                watch.park(cx.waker());
                Poll::Ready(())
            })
            .await;
            let deadline = self.deadline().unwrap_or(Time::MAX);
            if self.is_expired_at(clock.now()) {
                return;
            }
            let mut sleep = pin!(clock.sleep_until(deadline));
            let mut asleep = false;
            // Polled again, for whatever reason, it is time to look again.
            poll_fn(|cx| match std::mem::replace(&mut asleep, true) {
                true => Poll::Ready(()),
                false => sleep.as_mut().poll(cx),
            })
            .await;
        }
    }
}

impl Inner {
    fn join(&self, n: u32, waiting: Waiting) -> Result<Ticket, Denied> {
        let Waiting { max_wait, max_waiters } = waiting;
        let mut queue = self.lock();
        if queue.len() >= max_waiters {
            return Err(Denied::TooManyWaiters { max_waiters });
        }
        if max_wait.is_zero() {
            return Err(Denied::TimedOut { max_wait });
        }
        let ticket = queue.join(n);
        let waiting = self.waited_for.fetch_add(u64::from(n), Ordering::SeqCst) + u64::from(n);
        self.note_peak(u64::from(self.count.in_use()) + waiting);
        Ok(ticket)
    }
}

impl QueueGate for Inner {
    type Pass = TakenUnits;

    fn step(&self, ticket: Ticket, now: Time, waker: &Waker) -> Step<TakenUnits> {
        let mut queue = self.lock();
        let take = |n| match self.take(n, n, now) {
            Err(_) if self.passing.lets(n) => Some(TakenUnits { passed: n, ..TakenUnits::NONE }),
            taken => taken.ok(),
        };
        let Some(taken) = queue.units_at_head(ticket).and_then(take) else {
            // Nobody knows when a permit comes back.
            queue.park(ticket, waker);
            return Step::Wait(None);
        };
        self.strike(&mut queue, ticket);
        let waker = queue.head_waker();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
        Step::Granted(taken)
    }

    fn leave(&self, ticket: Ticket) {
        let mut queue = self.lock();
        self.strike(&mut queue, ticket);
        let waker = queue.head_waker();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
