//! The second limit that is tried beside the enforcer of a program, as the driver of a client tells it.

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::gauge::Semaphore;
use lessor_client::internals::limiter::Limiter;
use lessor_client::{Denied, Permit};
use lessor_proto::message::Unenforced;
use lessor_proto::{Amount, Time};

use super::Program;

/// An enforcer that is told and asked the same as that of a program, and beside which no second limit is tried.
#[derive(Debug, Default)]
pub(super) struct Alone<E> {
    pub(super) enforcer: E,
    /// Whether the two have ever answered otherwise.
    differs: bool,
}

// === impl Alone ===

impl Alone<Limiter> {
    /// It is asked for a hit that the other was asked for.
    pub(super) fn hit(&mut self, other: &Result<(), Denied>, local: Time) {
        self.differs |= self.enforcer.try_acquire(1, || local).is_ok() != other.is_ok();
    }
}

impl Alone<Semaphore> {
    /// It is asked for units that the other was asked for, which has given a permit or none.
    pub(super) fn begin(&mut self, other: Option<&Permit>, most: u32, local: Time) -> Option<Permit> {
        let permit = self.enforcer.try_acquire_between(1, most, || local).ok();
        let said = |permit: &Permit| (permit.units(), permit.unenforced(), permit.deadline());
        self.differs |= permit.as_ref().map(said) != other.map(said);
        permit
    }
}

// === impl Program ===

impl Program {
    /// The same program with an enforcer to compare with, if a second limit may be tried.
    pub(crate) fn compared(mut self, has_second: bool) -> Program {
        match &mut self {
            Program::Hits(hits) => hits.alone = has_second.then(Alone::default),
            Program::Units(units) => units.alone = has_second.then(Alone::default),
            Program::Uses(_) => {}
        }
        self
    }

    /// Whether it was ever let through otherwise than without a second limit.
    pub(crate) fn is_swayed(&self) -> bool {
        match self {
            Program::Hits(hits) => hits.alone.as_ref().is_some_and(|alone| alone.differs),
            Program::Units(units) => units.alone.as_ref().is_some_and(|alone| alone.differs),
            Program::Uses(_) => false,
        }
    }

    /// A second limit is tried that allows so much; absent: none.
    pub(crate) fn try_beside(&self, now: Time, allowance: Option<Allowance>) {
        match self {
            Program::Hits(hits) => hits.limiter.try_beside(now, allowance),
            Program::Units(units) => units.gauge.try_beside(now, allowance),
            Program::Uses(_) => {}
        }
    }

    /// The units of a gauge that are out of it.
    pub(crate) fn in_use_beside(&self) -> Amount {
        match self {
            Program::Units(units) => Amount::from_units(units.gauge.in_use_beside().into()),
            Program::Hits(_) | Program::Uses(_) => Amount::ZERO,
        }
    }

    /// The units that it was asked for, and those that it would have refused.
    pub(crate) fn counted_beside(&self) -> Unenforced {
        match self {
            Program::Hits(hits) => hits.limiter.usage_beside().counts(),
            Program::Units(units) => units.gauge.usage_beside().counts(),
            Program::Uses(_) => Unenforced::default(),
        }
    }
}
