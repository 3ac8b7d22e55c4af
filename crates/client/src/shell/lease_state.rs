//! The state of a resource's lease, as a program sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::BoundBy;
use lessor_proto::{Amount, Time};

use super::clock;
use crate::allowance::Allowance;
use crate::denied::Denied;
use crate::fault::{Failure, Fault};
use crate::holding::Rung;
use crate::session::Change;
use crate::shortness::ShortBy;

/// The state of a resource's lease at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct LeaseState {
    /// The capacity that is allowed, in units (a second); `None` is without limit.
    pub capacity: Option<Amount>,
    /// The time at which that ends if nothing is renewed, by the process's own clock; `None` where it has no end, as safe
    /// capacity that is advised and not leased.
    pub until: Option<Time>,
    /// Where the allowance comes from.
    pub rung: Rung,
    /// Whether the server that granted the lease was learning what is out: for a while after its start it grants no more than
    /// what was held before.
    pub is_learning: bool,
    /// The time until which that server learns, as far as it knows, by the process's own clock; `None` where it does not know,
    /// or is not learning.
    pub learns_until: Option<Time>,
    /// The bound of the last lease's amount, if the server that granted it says so.
    pub bound_by: Option<BoundBy>,
    /// Whether everything is let pass and counted that this would refuse, as the grantor says.
    pub unenforced: bool,
    /// The amount that was asked for last, in units (a second).
    pub wants: f64,
    /// The fault when the lease was last to be renewed; nothing if the last answer was good.
    pub last_error: Option<Arc<Fault>>,
    /// Whether the client was closed.
    is_closed: bool,
}

// === impl LeaseState ===

impl LeaseState {
    pub(super) fn waiting(wants: f64) -> LeaseState {
        LeaseState {
            capacity: Allowance::NOTHING.capacity,
            until: end(Allowance::NOTHING.until),
            rung: Rung::Waiting,
            is_learning: false,
            learns_until: None,
            bound_by: None,
            unenforced: false,
            wants,
            last_error: None,
            is_closed: false,
        }
    }

    /// The state after the client was closed, or the last handle is gone.
    pub(super) fn closed() -> LeaseState {
        LeaseState { is_closed: true, ..LeaseState::waiting(0.0) }
    }

    /// Takes up a change. Whether it is more than a renewal.
    pub(super) fn apply(&mut self, change: Change) -> bool {
        let Change { allowance, rung, fault, learns_until, bound_by, .. } = change;
        let is_learning = learns_until.is_some();
        let is_news = self.capacity != allowance.capacity
            || self.rung != rung
            || self.is_learning != is_learning
            || self.unenforced != allowance.unenforced
            || self.last_error.as_deref() != fault.as_ref();
        if self.last_error.as_deref() != fault.as_ref() {
            self.last_error = fault.map(Arc::new);
        }
        self.capacity = allowance.capacity;
        self.until = end(allowance.until);
        self.rung = rung;
        self.is_learning = is_learning;
        self.learns_until = learns_until.and_then(end);
        self.bound_by = bound_by;
        self.unenforced = allowance.unenforced;
        is_news
    }

    /// The time for which the lease, or the floor, lasts if nothing is renewed: zero without either, `None` where it has no
    /// end.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.until.map(|until| until.since(clock::now()))
    }

    /// The reason why less is held than is wanted; `None` where it is not less.
    #[must_use]
    pub fn short_by(&self) -> Option<ShortBy> {
        let capacity = self.capacity.filter(|_| !self.is_closed)?;
        if capacity >= Amount::from_f64(self.wants) {
            return None;
        }
        Some(match (self.rung, self.bound_by) {
            (Rung::Leased, Some(BoundBy::Wants)) => ShortBy::Asked,
            (Rung::Leased, Some(by)) => ShortBy::Bound(by),
            (Rung::Leased, None) => ShortBy::Unsaid,
            _ => ShortBy::NoLease,
        })
    }

    /// The reason why there is nothing to wait for: the client was closed, or the server refuses the resource.
    pub(super) fn hopeless(&self) -> Option<Denied> {
        match &self.last_error {
            _ if self.is_closed => Some(Denied::Closed),
            Some(fault) if matches!(**fault, Fault::Failed(Failure::Refused(_))) => self.unserved(),
            _ => None,
        }
    }

    /// The reason why nothing is leased, if that is so and the reason is known.
    pub(super) fn unserved(&self) -> Option<Denied> {
        match &self.last_error {
            _ if self.is_closed => Some(Denied::Closed),
            _ if self.capacity != Some(Amount::ZERO) => None,
            Some(fault) => Some(Denied::Unserved(Arc::clone(fault))),
            None if self.is_learning => Some(Denied::Learning { retry_after: self.learning_left() }),
            None => None,
        }
    }

    /// The time for which the server goes on learning, as far as it knows.
    fn learning_left(&self) -> Option<Duration> {
        self.learns_until.map(|until| until.since(clock::now()))
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.capacity {
            Some(capacity) => write!(f, "{capacity}, {}", self.rung)?,
            None => write!(f, "without limit, {}", self.rung)?,
        }
        if let Some(left) = self.remaining().filter(|left| !left.is_zero()) {
            write!(f, " for {:.1} s", left.as_secs_f64())?;
        }
        match self.learning_left() {
            Some(left) => write!(f, ", the server is learning for another {:.1} s", left.as_secs_f64())?,
            None if self.is_learning => f.write_str(", the server is learning")?,
            None => {}
        }
        if self.unenforced {
            f.write_str(", and everything passes")?;
        }
        match &self.last_error {
            _ if self.is_closed => f.write_str(", closed"),
            Some(fault) => write!(f, ", {fault}"),
            None => Ok(()),
        }
    }
}

/// An end that comes.
fn end(until: Time) -> Option<Time> {
    (until < Time::MAX).then_some(until)
}
