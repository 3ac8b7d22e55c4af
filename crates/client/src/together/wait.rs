//! Waiting until all parts can be had: in the queue of a gauge, until the time that is named, or else longer and longer.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Time;

use super::{Combination, Of, Part, Refusal, TogetherAnswer, TogetherDenied, TogetherPermit};
use crate::denied::Denied;
use crate::domain::{Bound, Domains, End, Held, Next, Request, until_granted};
use crate::waiting::Clock;
use crate::window::WindowKey;

/// A request that waits, and whom to tell that the domains of a part have something to send.
#[derive(Clone, Copy)]
struct WaitingRequest<'a, F> {
    request: &'a Combination<'a>,
    notify: F,
}

// === impl Combination ===

impl Combination<'_> {
    /// Asks, and again when there is reason to, until something is granted, `max_wait` at most.
    ///
    /// Where only windows refuse it asks again as soon as the lease of one of them is larger, or units come back to it, and at the
    /// time that they name; where they name none, as a first lease is on its way, after 10, 20, 40 ms and so on, up to 0.64 s.
    ///
    /// Else nothing is asked before the time that a part names. Where a gauge refuses and no part names a time, it waits in the
    /// queue of that gauge, and asks for all the rest when it is let in; if that is refused, the units go to the next in the
    /// queue. In other cases it asks again after 1, 2, 4 and so on seconds, each less by up to a quarter, and once more at the
    /// end. So nothing is held while it waits, and the future can be dropped at any time; but of rates and domains it holds
    /// no place, and whoever asks at the right moment is granted what there is.
    ///
    /// Before it is refused because of what a domain did that others use too, the server is asked, as by
    /// [`Domains::confirmed_by`]. `notify` is to see to it that there is somebody who sends what the domains of that part have
    /// to send.
    ///
    /// # Errors
    /// At once if the time that is named is too late, if the least that is wanted is more than a lease ever holds at once, if
    /// too many wait for a gauge, or if the request cannot be; else when `max_wait` has passed.
    pub async fn acquire_by<C: Clock>(
        &self,
        clock: &C,
        max_wait: Duration,
        notify: impl Fn(usize),
    ) -> Result<TogetherPermit, TogetherDenied> {
        self.check()?;
        until_granted(&WaitingRequest { request: self, notify }, clock, max_wait).await
    }

    /// The parts whose domains have something to send earlier than they had before: see [`Domains::take_earlier`].
    pub fn earlier(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().enumerate().filter_map(|(index, part)| match part.of {
            Of::Domain { domains, .. } => domains.take_earlier().then_some(index),
            Of::Gauge(_) | Of::Rate(_) | Of::Window { .. } => None,
        })
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

// === impl WaitingRequest ===

impl<F> WaitingRequest<'_, F> {
    /// The parts that refuse.
    fn refusing(&self, refusal: &Refusal) -> impl Iterator<Item = &Part<'_>> {
        let parts = self.request.parts.iter().zip(&refusal.answers);
        parts.filter_map(|(part, answer)| answer.is_refusal().then_some(part))
    }
}

impl<F: Fn(usize)> Request for WaitingRequest<'_, F> {
    type Granted = TogetherPermit;
    type Refusal = Refusal;
    type Denied = TogetherDenied;

    fn attempt(&self, held: Held, clock: &dyn Fn() -> Time) -> Result<TogetherPermit, Refusal> {
        self.request.attempt(held, clock)
    }

    fn doubtful(&self, refusal: &Refusal) -> Vec<&Domains> {
        let parts = self.request.parts.iter().zip(&refusal.answers);
        let doubtful = parts.filter_map(|(part, answer)| match (part.of, answer) {
            (Of::Domain { domains, .. }, TogetherAnswer::Domain(decision)) => {
                decision.is_doubtful().then_some(domains)
            }
            _ => None,
        });
        doubtful.collect()
    }

    fn notify(&self) {
        self.request.earlier().for_each(&self.notify);
    }

    fn windows(&self, refusal: &Refusal, now: Time) -> Vec<(Arc<WindowKey>, u32)> {
        let windows = self.refusing(refusal).map(|part| match part.of {
            Of::Window { keys, key } => {
                let found = keys.find(key, &|| now).ok()?;
                Some((found, part.price.units(self.request.min)))
            }
            _ => None,
        });
        windows.collect::<Option<_>>().unwrap_or_default()
    }

    fn next(&self, refusal: &Refusal) -> Option<Next<'_>> {
        if refusal.is_for_good() {
            return None;
        }
        let is_window = |part: &Part<'_>| matches!(part.of, Of::Window { .. });
        let is_any = self.refusing(refusal).any(is_window);
        match refusal.retry_at {
            at if is_any && self.refusing(refusal).all(is_window) => return Some(Next::Uses(at)),
            Some(at) => return Some(Next::At(at)),
            None if is_any => return Some(Next::Uses(None)),
            None => {}
        }
        let mut parts = self.request.parts.iter().zip(&refusal.answers).enumerate();
        let queue = parts.find_map(|(index, (part, answer))| match (part.of, answer) {
            (Of::Gauge(gauge), TogetherAnswer::Denied(_)) => {
                Some(Next::Gauge(gauge, part.price.units(self.request.min), index))
            }
            _ => None,
        });
        Some(queue.unwrap_or_else(|| Next::Unknown(self.request.name())))
    }

    fn denied(&self, refusal: Refusal, end: End, _: Time) -> TogetherDenied {
        match end {
            End::Never => TogetherDenied::Refused(refusal),
            End::TooLate(max_wait) => TogetherDenied::TooLate { refusal, max_wait },
            End::Crowded { part, max_waiters } => TogetherDenied::TooManyWaiters { part, max_waiters },
        }
    }
}

// === impl Refusal ===

impl Refusal {
    /// Whether waiting cannot help as long as leases are what they are.
    fn is_for_good(&self) -> bool {
        self.answers.iter().any(|answer| match answer {
            TogetherAnswer::Domain(decision) => matches!(decision.bound, Some(Bound::Burst { .. })),
            TogetherAnswer::Denied(denied) => matches!(denied, Denied::AboveBurst { .. } | Denied::Closed),
            _ => false,
        })
    }
}
