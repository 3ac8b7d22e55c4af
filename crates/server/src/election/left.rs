//! The record that was left at etcd, as the leader that has just been elected reads it.

use std::time::Duration;

use lessor_proto::{Drift, Time};

use super::bound::ClockBounds;
use crate::record::Record;

// === impl Record ===

impl Record {
    /// Returns the record that was left at etcd, as it is read at `now`, after the key of its writer had gone, by a
    /// task that would go on for `authority`; `bounds` are what it knows of the clocks of others. An empty record
    /// says nothing: it may have been lost, with all that was out, and its writer may go on for as long as this
    /// task would.
    #[must_use]
    pub fn left(read: Record, now: Time, bounds: &ClockBounds, authority: Duration, drift: Drift) -> Record {
        if read.is_first() {
            return Record { unknown: true, authority, ..Record::default() };
        }
        let stop = read.stopped.or_else(|| bounds.stop(read.epoch, now, read.authority, drift));
        read.stopped_at(stop)
    }
}
