//! The face of a limiter or a gauge that the driver needs.

use std::task::Waker;

use lessor_proto::message::Unenforced;
use lessor_proto::{Amount, Time};

use crate::allowance::Allowance;
use crate::demand::Estimator;
use crate::demand::haste::KnockGate;
use crate::gauge::Semaphore;
use crate::limiter::{Limiter, SentUnits, UnitWish};

/// The interface to a limiter or a gauge that the driver needs.
pub(super) trait Enforce: Send + Sync {
    fn allow(&self, now: Time, allowance: Allowance);
    fn observe(&self, now: Time, demand: &mut Estimator) -> Amount;
    /// Wakes `waker` when something is refused.
    fn listen(&self, _now: Time, _waker: Waker) {}
    /// Something was refused while `held` was held. Returns what is wanted.
    fn knock(&self, _now: Time, demand: &mut Estimator, _held: Amount) -> Amount {
        demand.wants()
    }
    /// Whether the next refusal is told.
    fn set_gate(&self, _gate: KnockGate) {}
    /// The amount that cannot be given up at this moment.
    fn in_use(&self) -> Amount;
    /// Is woken when there are units to ask for.
    fn call(&self, notifier: Waker);
    /// The units to ask the grantor for, where units are had so.
    fn wish(&self, now: Time) -> Option<UnitWish>;
    /// The units that were asked for while everything was let pass.
    fn unenforced(&self) -> Unenforced;
    /// Takes up units that were sent.
    fn bring(&self, units: SentUnits, now: Time);
    /// The second limit allows so much from here on; absent: none is tried.
    fn try_beside(&self, now: Time, allowance: Option<Allowance>);
    /// The amount of the second limit that is in use.
    fn in_use_beside(&self) -> Amount;
    /// The units that the second limit was asked for, and would have refused.
    fn counted_beside(&self) -> Unenforced;
}

// === impl Enforce ===

impl Enforce for Limiter {
    fn allow(&self, now: Time, allowance: Allowance) {
        Limiter::allow(self, now, allowance);
    }

    fn observe(&self, now: Time, demand: &mut Estimator) -> Amount {
        let attempts = self.attempts(now);
        demand.look(now, self.usage(), &attempts)
    }

    fn listen(&self, now: Time, waker: Waker) {
        Limiter::listen(self, now, waker);
    }

    fn knock(&self, now: Time, demand: &mut Estimator, held: Amount) -> Amount {
        demand.knock(now, &self.attempts(now), held)
    }

    fn set_gate(&self, gate: KnockGate) {
        Limiter::set_gate(self, gate);
    }

    fn in_use(&self) -> Amount {
        Amount::ZERO
    }

    fn call(&self, notifier: Waker) {
        Limiter::call(self, notifier);
    }

    fn wish(&self, now: Time) -> Option<UnitWish> {
        Limiter::wish(self, now)
    }

    fn unenforced(&self) -> Unenforced {
        self.unenforced_counts()
    }

    fn bring(&self, units: SentUnits, now: Time) {
        Limiter::bring(self, units, now);
    }

    fn try_beside(&self, now: Time, allowance: Option<Allowance>) {
        Limiter::try_beside(self, now, allowance);
    }

    fn in_use_beside(&self) -> Amount {
        Amount::ZERO
    }

    fn counted_beside(&self) -> Unenforced {
        self.usage_beside().counts()
    }
}

impl Enforce for Semaphore {
    fn allow(&self, now: Time, allowance: Allowance) {
        Semaphore::allow(self, now, allowance);
    }

    fn observe(&self, now: Time, demand: &mut Estimator) -> Amount {
        demand.observe_gauge(now, self.usage())
    }

    fn in_use(&self) -> Amount {
        Amount::from_units(Semaphore::in_use(self).into())
    }

    fn call(&self, _: Waker) {}

    fn wish(&self, _: Time) -> Option<UnitWish> {
        None
    }

    fn unenforced(&self) -> Unenforced {
        self.unenforced_counts()
    }

    fn bring(&self, _: SentUnits, _: Time) {}

    fn try_beside(&self, now: Time, allowance: Option<Allowance>) {
        Semaphore::try_beside(self, now, allowance);
    }

    fn in_use_beside(&self) -> Amount {
        Amount::from_units(Semaphore::in_use_beside(self).into())
    }

    fn counted_beside(&self) -> Unenforced {
        self.usage_beside().counts()
    }
}
