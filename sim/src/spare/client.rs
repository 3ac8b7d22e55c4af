//! A client: session, estimator and limiter, put together as the client's driver does it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use lessor_client::internals::demand::{DemandOptions, Estimator, SOON};
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::limiter::Limiter;
use lessor_client::internals::session::{Action, Event, Session, SessionConfig};
use lessor_client::{Kind, Transport};
use lessor_proto::{Amount, ClientId, Incarnation, Time};

use super::{SpareRun, resource};
use crate::rng::Rng;

/// The interval at which it looks at its demand.
const LOOK: Duration = Duration::from_millis(250);

/// A client.
#[derive(Debug)]
pub(super) struct SpareClient {
    session: Session,
    demand: Estimator,
    limiter: Limiter,
    knocked: Arc<KnockFlag>,
    next_look: Time,
    /// The amount that it may use.
    pub(super) capacity: Amount,
    /// When it is looked at next.
    pub(super) due: Option<Time>,
}

#[derive(Debug, Default)]
struct KnockFlag(AtomicBool);

impl Wake for KnockFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// === impl SpareClient ===

impl SpareClient {
    pub(super) fn new(run: &SpareRun, number: usize, rng: &mut Rng) -> SpareClient {
        let name = ClientId::new(format!("web-{number}"), 256).expect("a name");
        let config = SessionConfig::new(name, Incarnation(rng.number()), vec![Arc::from("root:1")]);
        let mut session = Session::new(SessionConfig { transport: Transport::Stream, ..config });
        let demand = Estimator::new(DemandOptions::default()).with_claims(Some(run.burst));
        let (limiter, knocked) = (Limiter::new(run.burst), Arc::new(KnockFlag::default()));
        limiter.listen(Time::ZERO, Waker::from(knocked.clone()));
        session.add(Time::ZERO, resource(), HoldingConfig::new(Kind::Rate, demand.wants().as_f64(), 0));
        session.set_peak(Time::ZERO, &resource(), demand.peak().map(Amount::as_f64));
        // They do not all look at the same moment.
        let next_look = Time::ZERO + rng.time(Duration::ZERO, LOOK);
        SpareClient { session, demand, limiter, knocked, next_look, capacity: Amount::ZERO, due: None }
    }

    /// A request. Returns whether it is granted, and whether there is something to do at once.
    pub(super) fn request(&self, now: Time) -> (bool, bool) {
        let is_granted = self.limiter.try_acquire(1, || now).is_ok();
        (is_granted, self.knocked.0.load(Ordering::Relaxed))
    }

    /// The next thing to be done outside.
    pub(super) fn poll(&mut self, now: Time) -> Option<Action> {
        if self.knocked.0.swap(false, Ordering::Relaxed) {
            let wants = self.demand.knock(now, &self.limiter.attempts(now), self.capacity);
            self.next_look = self.next_look.min(now + SOON);
            self.say(now, wants);
        }
        if now >= self.next_look {
            let wants = self.demand.look(now, self.limiter.usage(), &self.limiter.attempts(now));
            self.next_look = now + self.demand.look_again(now).unwrap_or(LOOK);
            self.say(now, wants);
        }
        while let Some(action) = self.session.poll(now) {
            let Action::Change(change) = action else { return Some(action) };
            let capacity = change.allowance.capacity.unwrap_or(Amount::MAX);
            self.limiter.allow(now, change.allowance);
            if capacity > self.capacity {
                self.demand.open_gate();
                self.limiter.set_gate(self.demand.gate(now));
            }
            self.capacity = capacity;
        }
        None
    }

    fn say(&mut self, now: Time, wants: Amount) {
        self.limiter.set_gate(self.demand.gate(now));
        self.session.set_peak(now, &resource(), self.demand.peak().map(Amount::as_f64));
        self.session.set_wants(now, &resource(), wants.as_f64());
    }

    pub(super) fn next_deadline(&self) -> Time {
        self.session.next_deadline().min(self.next_look)
    }

    /// Something has come from the server.
    pub(super) fn take(&mut self, now: Time, event: Event) {
        self.session.handle(now, event);
    }
}
