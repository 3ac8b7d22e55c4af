//! The record that was left at etcd, as the leader that has just been elected reads it.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::{Drift, Epoch, Time};

use super::bound::ClockBounds;
use crate::record::{EtcdCluster, Record, RestOver, Unknown};

// === impl Record ===

impl Record {
    /// Returns the record as it was read at the etcd that answers as `read_at`, by a task that would go on for `authority`.
    ///
    /// One that was written elsewhere, or at a later state of this etcd, may be an old copy. Of that only what can do no harm is
    /// taken: it is a lower bound for how long leases last and leaders act, and its marks are what a successor would read. What
    /// is out is not known, nobody in it has certainly stopped, and a line begins of which no leader before is.
    pub(super) fn found_at(self, read_at: Option<EtcdCluster>, authority: Duration) -> Record {
        let has_gone_on = |(wrote, answers): (EtcdCluster, EtcdCluster)| wrote.goes_on_as(answers);
        if self.written_at.zip(read_at).is_none_or(has_gone_on) {
            return Record { read_at, ..self };
        }
        Record {
            read_at,
            is_copy: true,
            unknown: Unknown::All,
            authority: authority.max(self.authority),
            closed: false,
            stopped: None,
            earlier: Vec::new(),
            rests: BTreeMap::new(),
            rest_over: RestOver::default(),
            proofs: BTreeMap::new(),
            line: 0,
            first_epoch: Epoch::default(),
            ..self
        }
    }

    /// Returns the record that was found at etcd, with when its writer had stopped, as far as that is known: its key had gone at
    /// `now`, and `bounds` are what this task knows of the clocks of others.
    pub(super) fn with_stops(self, now: Time, bounds: &ClockBounds, drift: Drift) -> Record {
        if self.is_first() || self.is_copy {
            // Nobody is known to have led, or others may have since its last leader stopped.
            return self;
        }
        let stop = self.stopped.or_else(|| bounds.stop(self.epoch, now, self.authority, drift));
        self.stopped_at(stop)
    }

    /// Returns the record that was left at etcd, as a task goes by it that would go on for `authority`. An empty record says
    /// nothing: it may have been lost, with all that was out, and its writer may go on for as long as this task would.
    #[must_use]
    pub fn left(read: Record, authority: Duration) -> Record {
        match read.is_first() {
            true => Record { unknown: Unknown::All, authority, ..Record::default() },
            false => read,
        }
    }
}
