//! An allowance: the amount that may be spent, and until when. It is all that a limiter or a gauge needs to know of a
//! lease.

use std::time::Duration;

use lessor_proto::message::UseWindow;
use lessor_proto::{Amount, Time};

/// The amount that may be spent, and the time until which it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Units a second for a limiter, units in flight for a gauge; `None` is without limit, the optimistic rung of the
    /// ladder.
    pub capacity: Option<Amount>,
    /// From then on nothing may be spent.
    pub until: Time,
    /// Of a rate: what may be saved up, as the time in which the capacity brings it; absent: it was not said.
    pub burst: Option<Duration>,
    /// Of a rate that brings less than a unit in the burst, where it is a part of what all share: one is due at that moment,
    /// and then at equal intervals, each to be taken within the burst. Those of others are due at other moments, so that they
    /// cannot all be spent at once, as they could if each were saved up.
    pub due: Option<Time>,
    /// Of a rate: so much of the capacity does not come in by itself: the grantor is asked for each unit.
    pub asked: Amount,
    /// Of a gauge: each unit is a use in this window. Absent: it is in use until it is given back.
    pub window: Option<UseWindow>,
    /// Whether what it does not allow is let pass, and counted.
    pub unenforced: bool,
    /// Whether a second limit is tried beside it, which is leased as the companion of the resource.
    pub beside: bool,
}

// === impl Allowance ===

impl Allowance {
    /// Nothing at all.
    pub const NOTHING: Allowance = Allowance::new(Some(Amount::ZERO), Time::ZERO);

    /// An allowance of `capacity` until `until`.
    #[must_use]
    pub const fn new(capacity: Option<Amount>, until: Time) -> Allowance {
        Allowance {
            capacity,
            until,
            burst: None,
            due: None,
            asked: Amount::ZERO,
            window: None,
            unenforced: false,
            beside: false,
        }
    }

    /// This and `other` together, as long as both last.
    #[must_use]
    pub fn and(self, other: Allowance) -> Allowance {
        let capacity = self.capacity.zip(other.capacity).map(|(one, other)| one.saturating_add(other));
        Allowance {
            capacity,
            until: self.until.min(other.until),
            burst: self.burst.or(other.burst),
            due: self.due.or(other.due),
            asked: self.asked.saturating_add(other.asked),
            window: self.window.or(other.window),
            unenforced: self.unenforced,
            beside: self.beside,
        }
    }

    /// An allowance of `capacity` for ever.
    #[must_use]
    pub const fn forever(capacity: Amount) -> Allowance {
        Allowance::new(Some(capacity), Time::MAX)
    }
}
