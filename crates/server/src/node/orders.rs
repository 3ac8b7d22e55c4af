//! The orders of operators that a node goes by: recalls, overrides and seizures.

use lessor_proto::Time;

use super::recalls::Recalls;
use super::seizures::Seizures;
use crate::overrides::Overrides;
use crate::resource::earliest;

/// The orders that are in force.
#[derive(Clone, Default, Debug)]
pub(super) struct OperatorOrders {
    /// The holders that get nothing of a resource for a while.
    pub(super) recalls: Recalls,
    pub(super) overrides: Overrides,
    /// The lives whose leases were seized.
    pub(super) seizures: Seizures,
}

// === impl OperatorOrders ===

impl OperatorOrders {
    /// Whether there are none, as hardly ever any.
    pub(super) fn is_empty(&self) -> bool {
        self.recalls.is_empty() && self.overrides.is_empty() && self.seizures.is_empty()
    }

    /// When the first of them ends.
    pub(super) fn next_end(&self) -> Option<Time> {
        earliest([self.recalls.next_deadline(), self.overrides.next_end(), self.seizures.next_end()])
    }
}
