//! The progress of a simulation: what has happened so far, in figures, and in the event that happens now.

use super::observer::News;
use crate::counts::Counts;
use crate::faults::Tally;

/// The events so far, and the one that happens.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) counts: Counts,
    pub(crate) tally: Tally,
    events: u64,
    /// The number of them at this very moment.
    at_once: u32,
    /// The number of events to come that were looked at ahead of their time.
    pub(super) looked_at: u32,
    /// The changes of what clients believe in the event that happens.
    pub(super) news: Vec<News>,
}

// === impl Progress ===

impl Progress {
    /// Another event happens, at the same moment as the one before if `is_at_once`. Returns the number of them at this moment,
    /// without the first.
    pub(super) fn step(&mut self, is_at_once: bool) -> u32 {
        self.events += 1;
        self.at_once = if is_at_once { self.at_once + 1 } else { 0 };
        self.at_once
    }

    /// The number of events.
    pub(super) fn events(&self) -> u64 {
        self.events
    }
}
