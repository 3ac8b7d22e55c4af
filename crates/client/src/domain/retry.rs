//! The one loop of those who wait for what no single queue gives out: they ask, and ask again when there is reason to.
//!
//! Who is refused waits until the time that the answer names or the windows that refuse have more, or in the queue of the one thing
//! that is missing, or else for 1, 2, 4 and so on seconds, each less by up to a quarter, and asks once more at the end. Nothing is
//! held meanwhile, and the future can be dropped at any time.
//!
//! Before it is refused because of what a domain did that others use too, the server is asked for what is not known here.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lessor_proto::{BackOff, Time};

use super::store::Domains;
use super::sync::UNREACHABLE_AFTER;
use crate::denied::Denied;
use crate::gauge::{self, Semaphore};
use crate::limiter::Limiter;
use crate::waiting::Clock;
use crate::window::WindowKey;

/// The least time between two requests of one who waits.
const LEAST: Duration = Duration::from_millis(1);
/// The waits where no answer names a time.
const BACK_OFF: BackOff = BackOff::new(Duration::from_secs(1), 20, 0.25);

/// The waits for what may come from elsewhere: a round trip at first.
const SOON: BackOff = BackOff::new(Duration::from_millis(10), 6, 0.0);

/// Something that can be asked for any number of times.
pub(crate) trait Request {
    type Granted;
    type Refusal;
    /// Why nothing was granted in the end.
    type Denied;
    /// Asks for it, and uses what is `held` of it already, or gives that back.
    fn attempt(&self, held: Held, clock: &dyn Fn() -> Time) -> Result<Self::Granted, Self::Refusal>;
    /// The domains whose server may know something that changes a refusal.
    fn doubtful(&self, refusal: &Self::Refusal) -> Vec<&Domains>;
    /// Says to whoever drives its domains that there is something to send, if there is.
    fn notify(&self);
    /// The windows that refuse, where only windows do, and the units that are wanted of each.
    fn windows(&self, _: &Self::Refusal, _: Time) -> Vec<(Arc<WindowKey>, u32)> {
        Vec::new()
    }
    /// The event to wait for after a refusal; nothing if it is for good.
    fn next(&self, refusal: &Self::Refusal) -> Option<Next<'_>>;
    /// The error of a refusal.
    fn denied(&self, refusal: Self::Refusal, end: End, now: Time) -> Self::Denied;
}

/// The units that were waited for in a queue.
#[derive(Debug)]
pub(crate) enum Held {
    Nothing,
    /// This number of units of the lease of a domain.
    Paid(u32),
    /// Units of a gauge, and which part of a request that is.
    Permit(usize, gauge::Permit),
}

/// The event that one waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next<'a> {
    /// That moment.
    At(Time),
    /// This number of units of a lease, in its queue.
    Lease(&'a Limiter, u32),
    /// This number of units of a gauge, in its queue, and which part of the request that is.
    Gauge(&'a Semaphore, u32, usize),
    /// Units of [windows](Request::windows), or that moment. Where there is none they come from elsewhere within a few round trips,
    /// if they come.
    Uses(Option<Time>),
    /// None is known; those of the same name come back apart.
    Unknown(&'a str),
}

/// Why one waits no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It cannot be granted.
    Never,
    /// It was not granted in this time.
    TooLate(Duration),
    /// As many wait for that part as may.
    Crowded { part: usize, max_waiters: usize },
}

/// Asks until something is granted, `max_wait` at most.
pub(crate) async fn until_granted<R: Request, C: Clock>(
    request: &R,
    clock: &C,
    max_wait: Duration,
) -> Result<R::Granted, R::Denied> {
    let limit = clock.now() + max_wait;
    let (mut held, mut failures) = (Held::Nothing, 0);
    loop {
        let refusal = match confirmed(request, held, clock).await {
            Ok(granted) => return Ok(granted),
            Err(refusal) => refusal,
        };
        held = Held::Nothing;
        let now = clock.now();
        let Some(next) = request.next(&refusal) else { return Err(request.denied(refusal, End::Never, now)) };
        let queued = match next {
            _ if now >= limit => return Err(request.denied(refusal, End::TooLate(max_wait), now)),
            Next::At(at) | Next::Uses(Some(at)) if at > limit => {
                return Err(request.denied(refusal, End::TooLate(max_wait), now));
            }
            Next::At(at) => {
                clock.sleep_until(at.max(now + LEAST).min(limit)).await;
                continue;
            }
            Next::Uses(at) => {
                failures += u32::from(at.is_none());
                let at = at.unwrap_or_else(|| now + SOON.wait(failures - 1, Duration::MAX, 1.0));
                let windows = request.windows(&refusal, now);
                changed(&windows, clock, at.max(now + LEAST).min(limit)).await;
                continue;
            }
            Next::Unknown(name) => {
                failures += 1;
                clock.sleep_until((now + back_off(name, now, failures)).min(limit)).await;
                continue;
            }
            Next::Lease(lease, units) => {
                lease.queue(clock, units, limit.since(now)).await.map(|()| Held::Paid(units))
            }
            Next::Gauge(gauge, units, part) => {
                let permit = gauge.queue(clock, units, limit.since(now)).await;
                permit.map(|permit| Held::Permit(part, permit))
            }
        };
        held = match (queued, next) {
            (Ok(held), _) => held,
            (Err(Denied::TooManyWaiters { max_waiters }), Next::Gauge(_, _, part)) => {
                return Err(request.denied(refusal, End::Crowded { part, max_waiters }, clock.now()));
            }
            (Err(_), _) => return Err(request.denied(refusal, End::TooLate(max_wait), clock.now())),
        };
    }
}

/// Waits until the lease of one of the windows is larger, or some of its units are given back; until `end` at most, and not at all if
/// all are to be had by now.
async fn changed<C: Clock>(windows: &[(Arc<WindowKey>, u32)], clock: &C, end: Time) {
    // Who watches already misses nothing that comes between a look and the wait.
    let mut watches: Vec<_> = windows.iter().map(|(key, _)| key.watch()).collect();
    let are_there =
        |(key, units): &(Arc<WindowKey>, u32)| key.locked().room(clock.now(), *units, *units).is_ok();
    if !windows.is_empty() && windows.iter().all(are_there) {
        return;
    }
    let mut sleep = pin!(clock.sleep_until(end));
    poll_fn(|cx| {
        let mut is_called = false;
        for watch in &mut watches {
            is_called |= watch.poll(cx).is_ready();
        }
        if is_called { Poll::Ready(()) } else { sleep.as_mut().poll(cx) }
    })
    .await;
}

/// Asks once, and where others may have done what is not known here, their servers and then once more. That takes a round trip,
/// and [`UNREACHABLE_AFTER`] at the longest.
pub(crate) async fn confirmed<R: Request, C: Clock>(
    request: &R,
    held: Held,
    clock: &C,
) -> Result<R::Granted, R::Refusal> {
    let now = clock.now();
    let answer = request.attempt(held, &|| clock.now());
    let doubtful = answer.as_ref().err().map(|refusal| request.doubtful(refusal)).unwrap_or_default();
    let ask = |domains| Domains::ask(domains).map(|question| (domains, question));
    let questions: Vec<_> = doubtful.into_iter().filter_map(ask).collect();
    request.notify();
    if questions.is_empty() {
        return answer;
    }
    let late = now + UNREACHABLE_AFTER;
    let mut sleep = pin!(clock.sleep_until(late));
    for (domains, question) in questions {
        let mut acked = pin!(domains.acked(question));
        poll_fn(|cx| match acked.as_mut().poll(cx) {
            Poll::Pending if clock.now() < late => sleep.as_mut().poll(cx),
            _ => Poll::Ready(()),
        })
        .await;
    }
    let answer = request.attempt(Held::Nothing, &|| clock.now());
    request.notify();
    answer
}

/// The wait after so many failures, at least one: 2^(n-1) seconds, less by up to a quarter of that. The part is drawn from who
/// waits since when, so that those who were refused together come back apart.
fn back_off(domain: &str, now: Time, failures: u32) -> Duration {
    let bytes = domain.bytes().chain(now.as_nanos().to_le_bytes()).chain(failures.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The upper bits are mixed best.
    let draw = 1.0 - f64::from((hash >> 32) as u32) / f64::from(u32::MAX);
    BACK_OFF.wait(failures - 1, Duration::MAX, draw)
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
