//! The state directory of a server that is alone, and the journal of the epoch that writes it.

use lessor_server::election::state::{Clock, FileWrite, Growth, State};
use lessor_server::record::{Record, RecordChange};

use crate::disk::Disk;

/// The disk of the machine on which a server is alone.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) disk: Disk,
    /// The number of times that the machine has started.
    pub(crate) boot: u32,
    /// The record that a successor would read, once the last write is done.
    pub(crate) stored: Record,
    /// The text that stands in the file if nothing has damaged it.
    pub(crate) written: String,
    /// The write that is under way.
    pub(crate) pending: Option<FileWrite>,
}

/// The state of its directory that an epoch has.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) state: State,
    pub(crate) growth: Growth,
    /// The write that is under way, as the node calls it.
    pub(crate) ticket: Option<u64>,
}

// === impl Journal ===

impl Journal {
    pub(crate) fn new(state: State, growth: Growth) -> Journal {
        Journal { state, growth, ticket: None }
    }

    /// The write for `change`, which is taken up; absent: the last.
    pub(crate) fn next(&mut self, change: Option<&RecordChange>, clock: &Clock) -> FileWrite {
        self.growth.next(&self.state, change, clock)
    }
}
