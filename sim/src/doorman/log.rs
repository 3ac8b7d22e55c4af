//! The hash of all that happened in a run, line by line: two runs are the same when their hashes are.

use std::fmt;

use lessor_proto::Time;

/// The hash of the lines so far. FNV-1a: no table, no seed, the same on every machine.
#[derive(Clone, Debug)]
pub(super) struct EventLog(u64);

// === impl EventLog ===

impl EventLog {
    pub(super) fn new() -> EventLog {
        EventLog(0xcbf2_9ce4_8422_2325)
    }

    /// Adds one more line.
    pub(super) fn add(&mut self, now: Time, line: impl fmt::Display) {
        for byte in format!("{now} {line}\n").bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.0
    }
}
