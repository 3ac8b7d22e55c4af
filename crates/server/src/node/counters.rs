//! The counters of a node: what it has done since it began, and what it measures for those who watch it.

use lessor_proto::message::Refusal;

use super::Tally;
use crate::measured::{Measured, Measurements, RefusalKind};

/// The counters of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeCounters {
    pub(super) tally: Tally,
    /// The measurements that nobody has taken yet.
    pub(super) measured: Measurements,
}

// === impl NodeCounters ===

impl NodeCounters {
    /// A report that came on a stream was refused.
    pub(super) fn refuse(&mut self, why: &Refusal) {
        self.tally.refused += 1;
        self.measured.add(Measured::Refusal(RefusalKind::of(why)));
    }
}
