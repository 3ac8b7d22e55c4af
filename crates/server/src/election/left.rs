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

    /// Returns the record that was left at etcd, as it is read at `now`, after the key of its writer had gone, by a
    /// task that would go on for `authority`; `bounds` are what it knows of the clocks of others. An empty record
    /// says nothing: it may have been lost, with all that was out, and its writer may go on for as long as this
    /// task would.
    #[must_use]
    pub fn left(read: Record, now: Time, bounds: &ClockBounds, authority: Duration, drift: Drift) -> Record {
        if read.is_first() {
            return Record { unknown: Unknown::All, authority, ..Record::default() };
        }
        if read.is_copy {
            // Others may have led since its last leader stopped.
            return read;
        }
        let stop = read.stopped.or_else(|| bounds.stop(read.epoch, now, read.authority, drift));
        read.stopped_at(stop)
    }
}
