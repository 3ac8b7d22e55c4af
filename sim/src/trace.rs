//! What happened, as lines: hashed as they come, the last ones kept for whoever has to read what led to a failure.

use std::collections::VecDeque;
use std::fmt;

use lessor_proto::Time;

/// The lines so far.
#[derive(Clone, Debug)]
pub struct Trace {
    hash: u64,
    events: u64,
    last: VecDeque<String>,
}

/// Lines kept.
const KEPT: usize = 60;

// === impl Trace ===

impl Trace {
    /// No lines.
    #[must_use]
    pub fn new() -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, events: 0, last: VecDeque::with_capacity(KEPT) }
    }

    /// One more line.
    pub fn add(&mut self, now: Time, line: impl fmt::Display) {
        let line = format!("{now} {line}");
        // FNV-1a: no table, no seed, the same on every machine.
        for byte in line.bytes().chain([b'\n']) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.events += 1;
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// Of all lines.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The number of them.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The last of them, one below the other.
    #[must_use]
    pub fn story(&self) -> String {
        self.last.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Default for Trace {
    fn default() -> Trace {
        Trace::new()
    }
}
