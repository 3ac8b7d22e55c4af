//! What may be spent, and until when: all that a limiter or a gauge needs to know of a lease.

use lessor_proto::{Amount, Time};

/// What may be spent until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Units a second for a limiter, units in flight for a gauge; `None` is without limit, the optimistic rung of the
    /// ladder.
    pub capacity: Option<Amount>,
    /// From then on nothing may be spent.
    pub until: Time,
}

// === impl Allowance ===

impl Allowance {
    /// Nothing at all.
    pub const NOTHING: Allowance = Allowance { capacity: Some(Amount::ZERO), until: Time::ZERO };

    /// This and `other` together, as long as both last.
    #[must_use]
    pub fn and(self, other: Allowance) -> Allowance {
        let capacity = self.capacity.zip(other.capacity).map(|(one, other)| one.saturating_add(other));
        Allowance { capacity, until: self.until.min(other.until) }
    }

    /// So much for ever.
    #[must_use]
    pub const fn forever(capacity: Amount) -> Allowance {
        Allowance { capacity: Some(capacity), until: Time::MAX }
    }
}
