//! The lease of a resource, as a program sees it.

use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::clock;
use crate::allowance::Allowance;
use crate::holding::Rung;
use crate::session::Fault;

/// The lease of a resource, as a program sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct LeaseView {
    /// The capacity that is allowed, in units (a second); `None` is without limit.
    pub capacity: Option<Amount>,
    /// Until when, if nothing is renewed.
    pub until: Time,
    /// Where the allowance comes from.
    pub rung: Rung,
    /// The amount that was asked for last, in units (a second).
    pub wants: f64,
    /// The fault when it was last to be renewed; nothing if the last answer was good.
    pub last_error: Option<Fault>,
}

// === impl LeaseView ===

impl LeaseView {
    pub(super) fn waiting(wants: f64) -> LeaseView {
        let Allowance { capacity, until, .. } = Allowance::NOTHING;
        LeaseView { capacity, until, rung: Rung::Waiting, wants, last_error: None }
    }

    /// The time for which the lease, or the floor, lasts if nothing is renewed: nothing without either, and on
    /// advice for ever.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.since(clock::now())
    }
}
