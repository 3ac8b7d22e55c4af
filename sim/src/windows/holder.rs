//! A holder: session, keys and window, put together as the driver of a client does it, and the requests that wait in it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lessor_client::internals::limiter::Clock as WaitClock;
use lessor_client::internals::session::{Action, Event, Session, SessionConfig};
use lessor_client::internals::window::{KeysOptions, WindowHolder, WindowKeys};
use lessor_client::{Denied, Transport};
use lessor_proto::{ClientId, Incarnation, Time};

use super::WindowsRun;
use crate::clock::{Clock, PERFECT};
use crate::rng::Rng;

/// The key that all holders have in common.
pub(super) const KEY: &str = "tenant";
/// The error of a clock, in nanoseconds a second: as much as there may be.
const ERROR: u64 = PERFECT / 100;

/// A holder.
pub(super) struct SimulatedHolder {
    session: Session,
    windows: WindowHolder,
    keys: Arc<WindowKeys>,
    pub(super) clock: Clock,
    /// The rate of that, when it runs.
    rate: u64,
    local: LocalClock,
    waiting: VecDeque<WaitingRequest>,
    /// When it is looked at next.
    pub(super) due: Option<Time>,
}

/// A request that waits.
struct WaitingRequest {
    future: Pin<Box<dyn Future<Output = Result<(), Denied>>>>,
}

/// The time on the clock of a holder, as those see it who wait in it.
#[derive(Clone, Default)]
struct LocalClock(Arc<AtomicU64>);

impl WaitClock for LocalClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// A request that waits is looked at with each event of its holder.
    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> + Send {
        let clock = self.clone();
        std::future::poll_fn(move |_| if clock.now() >= at { Poll::Ready(()) } else { Poll::Pending })
    }
}

// === impl SimulatedHolder ===

impl SimulatedHolder {
    /// A holder whose clock is as wrong as it may be, in one direction or the other.
    pub(super) fn new(run: &WindowsRun, number: usize, now: Time, rng: &mut Rng) -> SimulatedHolder {
        let name = ClientId::new(format!("web-{number}"), 256).expect("a name");
        let config = SessionConfig::new(name, Incarnation(rng.number()), vec![Arc::from("root:1")]);
        let session =
            Session::new(SessionConfig { transport: Transport::Stream, rules: run.rules, ..config });
        let keys = WindowKeys::new("api/", KeysOptions::default(), Waker::noop().clone());
        let rate = if number.is_multiple_of(2) { PERFECT + ERROR } else { PERFECT - ERROR };
        SimulatedHolder {
            session,
            windows: WindowHolder::new(),
            keys: Arc::new(keys.with_rules(run.rules)),
            clock: Clock::new(now, Time::ZERO + run.window, rate),
            rate,
            local: LocalClock::default(),
            waiting: VecDeque::new(),
            due: None,
        }
    }

    /// A request, which waits if it must. Whether it was granted at once.
    pub(super) fn request(&mut self, run: &WindowsRun, now: Time) -> Option<bool> {
        self.local.0.store(self.clock.at(now).as_nanos(), Ordering::Relaxed);
        let (keys, clock, waits) = (Arc::clone(&self.keys), self.local.clone(), run.waits);
        if waits.is_zero() {
            return Some(keys.try_acquire(KEY, 1, || clock.now()).is_ok());
        }
        let future = Box::pin(async move { keys.acquire_within(&clock, KEY, 1, waits).await });
        let mut request = WaitingRequest { future };
        let answer = request.poll();
        if answer.is_none() {
            self.waiting.push_back(request);
        }
        answer
    }

    /// The outcomes of requests that waited, of which some are over: how many were granted, and how many were not.
    pub(super) fn settle(&mut self, now: Time) -> [u64; 2] {
        self.local.0.store(self.clock.at(now).as_nanos(), Ordering::Relaxed);
        let mut outcomes = [0, 0];
        // They are served in order, and wait for as long.
        while let Some(is_granted) = self.waiting.front_mut().and_then(WaitingRequest::poll) {
            outcomes[usize::from(!is_granted)] += 1;
            self.waiting.pop_front();
        }
        outcomes
    }

    /// The next thing to be done outside.
    pub(super) fn poll(&mut self, now: Time) -> Option<Action> {
        let local = self.clock.at(now);
        self.local.0.store(local.as_nanos(), Ordering::Relaxed);
        self.windows.hear(local, &self.keys, |_| false, &mut self.session);
        self.windows.observe(local, &mut self.session);
        while let Some(action) = self.session.poll(local) {
            match action {
                Action::Change(change) => {
                    self.windows.apply(local, &change, &mut self.session);
                }
                Action::News(_) => {}
                action => return Some(action),
            }
        }
        None
    }

    /// Something has come from its server.
    pub(super) fn take(&mut self, now: Time, event: Event) {
        self.session.handle(self.clock.at(now), event);
    }

    /// The units in use here.
    pub(super) fn in_use(&self, now: Time) -> u64 {
        self.keys.usage(KEY, self.clock.at(now)).map_or(0, |usage| usage.uses.into())
    }

    /// Its clock shows nothing of what passes from here on.
    pub(super) fn stop_clock(&mut self, now: Time) {
        self.clock.set_rate(now, 0);
    }

    /// It stood still, and its clock did for so long, which the date shows.
    pub(super) fn go_on(&mut self, now: Time, lost: Duration) {
        if !lost.is_zero() {
            self.clock.set_rate(now, self.rate);
            self.session.lose_time(self.clock.at(now), lost.mul_f64(1.01));
        }
        // What has changed comes before the next request.
        let local = self.clock.at(now);
        self.local.0.store(local.as_nanos(), Ordering::Relaxed);
        while let Some(change) = self.session.next_change(local) {
            self.windows.apply(local, &change, &mut self.session);
        }
    }

    /// It lets go of everything, in the order of things.
    pub(super) fn leave(&mut self, now: Time) {
        self.windows.leave(self.clock.at(now), &mut self.session);
    }

    pub(super) fn next_deadline(&self) -> Time {
        let work = self.session.next_deadline().min(self.windows.next_deadline());
        self.clock.when(work)
    }

    /// When the first of the units in use is free.
    pub(super) fn free_at(&self, now: Time) -> Option<Time> {
        let usage = self.keys.usage(KEY, self.clock.at(now))?;
        let frees_in = usage.frees_in.filter(|_| !self.waiting.is_empty())?;
        Some(self.clock.when(self.clock.at(now) + frees_in))
    }
}

// === impl WaitingRequest ===

impl WaitingRequest {
    fn poll(&mut self) -> Option<bool> {
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer.is_ok()),
            Poll::Pending => None,
        }
    }
}
