//! Waiting until all parts can be had: in the queue of a gauge, until the time that is named, or else longer and longer.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lessor_proto::Time;

use super::attempt::Held;
use super::{Of, Refusal, Together, TogetherAnswer, TogetherDenied, TogetherPermit};
use crate::domain::{self, Bound, Domains, HEARING};
use crate::gauge::Gauge;
use crate::limiter;
use crate::waiting::{Clock, Refused};

/// The event to wait for.
enum Next<'a> {
    /// That moment.
    At(Time),
    /// This number of units of a gauge, and the index of the part.
    Gauge(&'a Gauge, u32, usize),
}

// === impl Together ===

impl Together<'_> {
    /// Asks, and again when there is reason to, until something is granted, `max_wait` at most.
    ///
    /// While a part names a time nothing is asked before it. Where a gauge refuses and no part names a time, it waits in the
    /// queue of that gauge, and asks for all the rest when it is let in; if that is refused, the units go to the next in the
    /// queue. In other cases it asks again after 1, 2, 4 and so on seconds, each less by up to a quarter, and once more at the
    /// end. So nothing is held while it waits, and the future can be dropped at any time; but of rates and domains it holds
    /// no place, and whoever asks at the right moment is granted what there is.
    ///
    /// Before it is refused because of what a domain did that others use too, the server is asked, as by
    /// [`Domains::confirmed_by`]. `call` is to see to it that there is somebody who tells the server, for the domains of that
    /// part.
    ///
    /// # Errors
    /// At once if the time that is named is too late, if the least that is wanted is more than a lease ever holds at once, if
    /// too many wait for a gauge, or if the request cannot be; else when `max_wait` has passed.
    pub async fn acquire_by<C: Clock>(
        &self,
        clock: &C,
        max_wait: Duration,
        call: impl Fn(usize),
    ) -> Result<TogetherPermit, TogetherDenied> {
        self.check()?;
        let limit = clock.now() + max_wait;
        let (mut held, mut failures) = (None, 0);
        loop {
            let refusal = match self.confirmed(held.take(), clock, &call).await {
                Ok(permit) => return Ok(permit),
                Err(refusal) if refusal.is_for_good() => return Err(TogetherDenied::Refused(refusal)),
                Err(refusal) => refusal,
            };
            let now = clock.now();
            if now >= limit || refusal.retry_at.is_some_and(|at| at > limit) {
                return Err(TogetherDenied::TooLate { refusal, max_wait });
            }
            match self.next(&refusal, &mut failures, now) {
                Next::At(at) => clock.sleep_until(at.min(limit)).await,
                Next::Gauge(gauge, units, part) => match gauge.queue(clock, units, limit.since(now)).await {
                    Ok(permit) => held = Some(Held { part, permit }),
                    Err(Refused::TooManyWaiters { max_waiters }) => {
                        return Err(TogetherDenied::TooManyWaiters { part, max_waiters });
                    }
                    Err(_) => return Err(TogetherDenied::TooLate { refusal, max_wait }),
                },
            }
        }
    }

    /// Asks once, and where others may have done what is not known here, the servers and then once more.
    async fn confirmed<C: Clock>(
        &self,
        held: Option<Held>,
        clock: &C,
        call: &impl Fn(usize),
    ) -> Result<TogetherPermit, Refusal> {
        let now = clock.now();
        let answer = self.attempt(held, now);
        let questions = answer.as_ref().err().map(|refusal| self.ask(refusal)).unwrap_or_default();
        self.calls().for_each(call);
        if questions.is_empty() {
            return answer;
        }
        let mut late = pin!(clock.sleep_until(now + HEARING));
        for (domains, question) in questions {
            let mut heard = pin!(domains.heard(question));
            poll_fn(|cx| match heard.as_mut().poll(cx) {
                Poll::Pending if clock.now() < now + HEARING => late.as_mut().poll(cx),
                _ => Poll::Ready(()),
            })
            .await;
        }
        let answer = self.attempt(None, clock.now());
        self.calls().for_each(call);
        answer
    }

    /// Asks the servers about the domains of which more may be known there.
    fn ask(&self, refusal: &Refusal) -> Vec<(&Domains, u64)> {
        let parts = self.parts.iter().zip(&refusal.answers);
        let doubtful = parts.filter_map(|(part, answer)| match (part.of, answer) {
            (Of::Domain { domains, .. }, TogetherAnswer::Domain(decision))
                if domains.is_doubtful(decision) =>
            {
                domains.ask().map(|question| (domains, question))
            }
            _ => None,
        });
        doubtful.collect()
    }

    /// The parts whose domains have something to tell a server earlier than they had before: see [`Domains::take_call`].
    pub fn calls(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().enumerate().filter_map(|(index, part)| match part.of {
            Of::Domain { domains, .. } => domains.take_call().then_some(index),
            Of::Gauge(_) | Of::Rate(_) => None,
        })
    }

    /// The event to wait for after a refusal.
    fn next(&self, refusal: &Refusal, failures: &mut u32, now: Time) -> Next<'_> {
        if let Some(at) = refusal.retry_at {
            return Next::At(at.max(now + domain::LEAST));
        }
        for (index, (part, answer)) in self.parts.iter().zip(&refusal.answers).enumerate() {
            if let (Of::Gauge(gauge), TogetherAnswer::GaugeDenied(_)) = (part.of, answer) {
                return Next::Gauge(gauge, part.price.units(self.min), index);
            }
        }
        *failures += 1;
        Next::At(now + domain::back_off(self.name(), now, *failures))
    }

    /// The name of the waiter, so that those who were refused together come back apart.
    fn name(&self) -> &str {
        let names = self.parts.iter().find_map(|part| match part.of {
            Of::Domain { name, .. } => Some(name),
            _ => None,
        });
        names.unwrap_or_default()
    }
}

// === impl Refusal ===

impl Refusal {
    /// Whether waiting cannot help as long as leases are what they are.
    fn is_for_good(&self) -> bool {
        self.answers.iter().any(|answer| match answer {
            TogetherAnswer::Domain(decision) => matches!(decision.bound, Some(Bound::Burst { .. })),
            TogetherAnswer::RateDenied(denied) => matches!(denied, limiter::Denied::AboveBurst { .. }),
            _ => false,
        })
    }
}
