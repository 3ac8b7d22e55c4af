//! Waiting for hits that a domain is refused: until the time that the answer names, or else longer and longer.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lessor_algorithms::tiers::Ask;
use lessor_proto::Time;

use super::deciding::Purse;
use super::decision::{Bound, Decision};
use super::exchange::HEARING;
use super::store::Domains;
use crate::limiter::Limiter;
use crate::waiting::Clock;

/// The least time between two requests of one who waits.
pub(crate) const LEAST: Duration = Duration::from_millis(1);

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

/// Why nothing was granted to one who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotGranted {
    /// There was nothing in time.
    #[error("nothing is granted within {max_wait:?}: bound by {bound}", bound = text(decision))]
    TooLate {
        /// The last answer.
        decision: Decision,
        /// The bound.
        max_wait: Duration,
    },
    /// The least that is of use is more than the lease ever holds at once; waiting does not help.
    #[error("at least {min} of {copies} are wanted, and the lease never holds more than {burst} at once")]
    AboveBurst {
        /// The most that are wanted.
        copies: u32,
        /// The least that are of use.
        min: u32,
        /// The greatest number that can be had at once.
        burst: u64,
    },
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
        call: impl Fn(),
    ) -> Result<Decision, NotGranted> {
        let limit = clock.now() + wish.max_wait;
        let (mut failures, mut paid) = (0, 0);
        loop {
            let decision = self.confirmed(lease, std::mem::take(&mut paid), &wish, clock, &call).await;
            let now = clock.now();
            if decision.is_granted() || wish.copies == 0 {
                return Ok(decision);
            }
            if let Some(Bound::Burst { most: burst }) = decision.bound {
                return Err(NotGranted::AboveBurst {
                    copies: wish.copies,
                    min: wish.min.min(wish.copies),
                    burst,
                });
            }
            let too_late = NotGranted::TooLate { decision, max_wait: wish.max_wait };
            if decision.bound == Some(Bound::Lease) && lease.is_by_request() {
                let units = wish.min.clamp(1, wish.copies);
                if lease.queue(clock, units, limit.since(now)).await.is_err() {
                    return Err(too_late);
                }
                paid = units;
                continue;
            }
            let next = match decision.retry_at {
                Some(at) if at > limit => return Err(too_late),
                Some(at) => at.max(now + LEAST),
                None => {
                    failures += 1;
                    (now + back_off(wish.domain, now, failures)).min(limit)
                }
            };
            if now >= limit {
                return Err(too_late);
            }
            clock.sleep_until(next).await;
        }
    }
}

impl Domains {
    /// Asks for hits once. If they are refused and others use the domain too, the server is asked for what is not known here
    /// before that is the answer, which takes a round trip, and [`HEARING`] at the longest.
    ///
    /// `call` is to see to it that there is somebody who [tells](Domains::tell_at).
    pub async fn confirmed_by<C: Clock>(
        &self,
        lease: &Limiter,
        wish: &DomainWish<'_>,
        clock: &C,
        call: &impl Fn(),
    ) -> Decision {
        self.confirmed(lease, 0, wish, clock, call).await
    }

    /// The same, where so much was taken of the lease already.
    async fn confirmed<C: Clock>(
        &self,
        lease: &Limiter,
        paid: u32,
        wish: &DomainWish<'_>,
        clock: &C,
        call: &impl Fn(),
    ) -> Decision {
        let now = clock.now();
        let ask = Ask::between(wish.min.min(wish.copies), wish.copies);
        let decision = self.request_of(Purse::new(lease, paid), wish.domain, ask, now);
        let question = if self.is_doubtful(&decision) { self.ask() } else { None };
        if self.take_call() {
            call();
        }
        let Some(question) = question else { return decision };
        let mut heard = pin!(self.heard(question));
        let mut late = pin!(clock.sleep_until(now + HEARING));
        poll_fn(|cx| match heard.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => late.as_mut().poll(cx),
        })
        .await;
        let decision = self.request(lease, wish.domain, wish.copies, wish.min, clock.now());
        if self.take_call() {
            call();
        }
        decision
    }
}

/// The wait after so many failures, at least one: 2^(n-1) seconds, less by up to a quarter of that. The part is drawn from who
/// waits since when, so that those who were refused together come back apart.
pub(crate) fn back_off(domain: &str, now: Time, failures: u32) -> Duration {
    let whole = Duration::from_secs(1 << (failures - 1).min(20));
    let bytes = domain.bytes().chain(now.as_nanos().to_le_bytes()).chain(failures.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The upper bits are mixed best.
    whole - whole.mul_f64(f64::from((hash >> 32) as u32) / f64::from(u32::MAX) / 4.0)
}

/// The bound of an answer, in words.
pub(crate) fn text(decision: &Decision) -> &'static str {
    match decision.bound {
        Some(Bound::Debt) => "what it owes",
        Some(Bound::Tiers) => "its tiers",
        Some(Bound::Hard) => "its hard limit",
        Some(Bound::Global) => "the limit of all domains",
        Some(Bound::Lease) => "the lease",
        Some(Bound::Burst { .. }) => "what the lease holds at once",
        Some(Bound::Unconfigured) => "there being no policy for it",
        Some(Bound::Sublease) => "the lease of the domain",
        Some(Bound::Asking) => "the lease of the domain, which has not been granted yet",
        Some(Bound::Crowded) => "there being too many leases of domains",
        Some(Bound::Unleasable) => "there being no lease for a domain of that name",
        None => "nothing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_twofold_and_lie_in_the_last_quarter() {
        for failures in 1..12 {
            let whole = Duration::from_secs(1 << (failures - 1));
            let waits: Vec<_> = (0..200).map(|n| back_off("a", Time::from_nanos(n), failures)).collect();
            assert!(waits.iter().all(|&wait| wait <= whole && wait >= whole.mul_f64(0.749)), "{failures}");
            let spread = *waits.iter().max().unwrap() - *waits.iter().min().unwrap();
            assert!(spread > whole.mul_f64(0.2), "{failures}: {spread:?}");
        }
    }
}
