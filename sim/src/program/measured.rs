//! The demand of a program that does not state it, and what its driver has to say of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::demand::{DemandOptions, Estimator, SOON};
use lessor_client::internals::limiter::Limiter;
use lessor_proto::{Amount, Time};

/// The time between two looks at a demand.
const LOOK: Duration = Duration::from_millis(250);

/// The estimator behind a limiter, as the driver of a client keeps it.
#[derive(Debug)]
pub(crate) struct Measured {
    demand: Estimator,
    knocked: Arc<Knocked>,
    next_look: Time,
    capacity: Amount,
}

/// The statement of a driver about a demand, in units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Said {
    pub(crate) wants: f64,
    pub(crate) peak: Option<f64>,
}

#[derive(Debug, Default)]
struct Knocked(AtomicBool);

impl Wake for Knocked {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// === impl Measured ===

impl Measured {
    pub(crate) fn new(now: Time, limiter: &Limiter) -> Measured {
        let knocked = Arc::new(Knocked::default());
        limiter.listen(now, Waker::from(knocked.clone()));
        let demand = Estimator::new(DemandOptions::default()).with_claims(None);
        Measured { demand, knocked, next_look: now, capacity: Amount::ZERO }
    }

    /// Whether something was refused of which the driver has not heard.
    pub(crate) fn has_knocked(&self) -> bool {
        self.knocked.0.load(Ordering::Relaxed)
    }

    pub(crate) fn next_look(&self) -> Time {
        self.next_look
    }

    /// More or less is allowed.
    pub(crate) fn follow(&mut self, now: Time, allowance: Allowance, limiter: &Limiter) {
        self.demand.follow_burst(allowance.burst);
        let capacity = allowance.capacity.unwrap_or(Amount::MAX);
        if capacity > self.capacity {
            self.demand.open_gate();
            limiter.set_gate(self.demand.gate(now));
        }
        self.capacity = capacity;
    }

    /// The program states what it wants from here on.
    pub(crate) fn state(&mut self, wants: f64) -> Said {
        self.demand.set(Some(Amount::from_f64(wants)));
        self.said()
    }

    /// Returns what there is to say at `now`, if something was refused or it is time to look. One that is at rest
    /// is not looked at again.
    pub(crate) fn say(&mut self, now: Time, limiter: &Limiter, rests: bool) -> Option<Said> {
        let knocks = self.knocked.0.swap(false, Ordering::Relaxed) && self.demand.peak().is_some();
        if knocks {
            self.demand.knock(now, &limiter.attempts(now), self.capacity);
            self.next_look = self.next_look.min(now + SOON);
        }
        let looks = now >= self.next_look;
        if looks {
            self.demand.look(now, limiter.usage(), &limiter.attempts(now));
            self.next_look = now + self.demand.look_again(now).unwrap_or(LOOK);
        }
        if rests && self.said() == Said::NOTHING {
            self.next_look = Time::MAX;
        }
        if !knocks && !looks {
            return None;
        }
        limiter.set_gate(self.demand.gate(now));
        Some(self.said())
    }

    pub(crate) fn said(&self) -> Said {
        Said { wants: self.demand.wants().as_f64(), peak: self.demand.peak().map(Amount::as_f64) }
    }
}

// === impl Said ===

impl Said {
    /// The statement about a program that attempts nothing.
    pub(crate) const NOTHING: Said = Said { wants: 1.0, peak: Some(0.0) };
}
