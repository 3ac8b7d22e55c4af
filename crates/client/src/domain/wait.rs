//! Waiting for hits that a domain is refused.

use std::time::Duration;

use lessor_algorithms::tiers::Ask;
use lessor_proto::Time;

use super::retry::{End, Held, Next, Request, confirmed, until_granted};
use super::store::Domains;
use crate::decision::{Bound, Decision};
use crate::denied::Denied;
use crate::limiter::Limiter;
use crate::waiting::Clock;

/// The hits that are waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainWish<'a> {
    /// Whose hits.
    pub domain: &'a str,
    /// The most that are wanted.
    pub copies: u32,
    /// The least that are of use.
    pub min: u32,
    /// The longest time that it may take.
    pub max_wait: Duration,
}

/// The request of one domain, and whom to tell that it has something to send.
#[derive(Clone, Copy)]
struct One<'a, F> {
    domains: &'a Domains,
    lease: &'a Limiter,
    wish: DomainWish<'a>,
    notify: F,
}

// === impl Domains ===

impl Domains {
    /// Asks for hits, and again when the answer says, until some are granted. Where it names no time, the request is made
    /// again after 1, 2, 4 and so on seconds, each less by up to a quarter, and once more at the end. Where units of the lease
    /// are asked for one by one ([`Allowance::asked`](crate::allowance::Allowance::asked)), it waits in the queue of the lease
    /// once policies agree, with all others; else who waits holds no place: whoever asks at the right moment is granted what
    /// there is. Dropping the future takes nothing.
    ///
    /// Before it is refused what others use too the server is asked: see [`Domains::confirmed_by`].
    ///
    /// # Errors
    /// When nothing is granted in time, and at once if the time that is named is too late, or the lease can never hold `min`.
    pub async fn acquire_by<C: Clock>(
        &self,
        lease: &Limiter,
        wish: DomainWish<'_>,
        clock: &C,
        notify: impl Fn(),
    ) -> Result<Decision, Denied> {
        until_granted(&One { domains: self, lease, wish, notify }, clock, wish.max_wait).await
    }

    /// Asks for hits once. If they are refused and others use the domain too, the server is asked for what is not known here
    /// before that is the answer, which takes a round trip, and [`UNREACHABLE_AFTER`](super::UNREACHABLE_AFTER) at the longest.
    ///
    /// `notify` is to see to it that there is somebody who [sends](Domains::next_message) what there is.
    pub async fn confirmed_by<C: Clock>(
        &self,
        lease: &Limiter,
        wish: &DomainWish<'_>,
        clock: &C,
        notify: &impl Fn(),
    ) -> Decision {
        let one = One { domains: self, lease, wish: *wish, notify };
        match confirmed(&one, Held::Nothing, clock).await {
            Ok(decision) | Err(decision) => decision,
        }
    }
}

// === impl One ===

impl<F: Fn()> Request for One<'_, F> {
    type Granted = Decision;
    type Refusal = Decision;
    type Denied = Denied;

    fn attempt(&self, held: Held, clock: &dyn Fn() -> Time) -> Result<Decision, Decision> {
        let DomainWish { domain, copies, min, .. } = self.wish;
        let paid = if let Held::Paid(units) = held { units } else { 0 };
        let ask = Ask::between(min.min(copies), copies);
        let decision = self.domains.request_paid(self.lease, paid, domain, ask, clock());
        if decision.is_granted() || copies == 0 { Ok(decision) } else { Err(decision) }
    }

    fn doubtful(&self, refusal: &Decision) -> Vec<&Domains> {
        if refusal.is_doubtful() { vec![self.domains] } else { Vec::new() }
    }

    fn notify(&self) {
        if self.domains.take_earlier() {
            (self.notify)();
        }
    }

    fn next(&self, refusal: &Decision) -> Option<Next<'_>> {
        let DomainWish { domain, copies, min, .. } = self.wish;
        match (refusal.bound, refusal.retry_at) {
            (Some(Bound::Burst { .. }), _) => None,
            (Some(Bound::Lease), _) if self.lease.is_by_request() => {
                Some(Next::Lease(self.lease, min.clamp(1, copies)))
            }
            (_, Some(at)) => Some(Next::At(at)),
            (_, None) => Some(Next::Unknown(domain)),
        }
    }

    fn denied(&self, decision: Decision, _: End, now: Time) -> Denied {
        Denied::domain(decision, now)
    }
}
