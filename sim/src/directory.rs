//! The state directory of a server that is alone, and the journal of the epoch that writes it.

use lessor_server::election::state::State;
use lessor_server::record::Record;

use crate::disk::Disk;

/// The disk of the machine on which a server is alone.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) disk: Disk,
    /// The number of times that the machine has started.
    pub(crate) boot: u32,
    /// The record that a successor would read, once the last write is done.
    pub(crate) stored: Record,
    /// The text that is being written.
    pub(crate) pending: Option<String>,
}

/// The state of its directory that an epoch has.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) state: State,
    /// The write that is under way, as the node calls it.
    pub(crate) ticket: Option<u64>,
}

// === impl Journal ===

impl Journal {
    pub(crate) fn new(state: State) -> Journal {
        Journal { state, ticket: None }
    }
}
