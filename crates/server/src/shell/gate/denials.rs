//! Denials: counted by kind, and logged, at most one a second of a kind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use tracing::warn;

use super::super::caller::Caller;
use crate::access::{Denial, Tempo, Why};

/// The counts of what was denied, or would have been, by kind.
#[derive(Debug)]
pub struct Denials {
    kinds: [DenialCounts; Why::ALL.len()],
}

/// The counts of one kind.
#[derive(Debug)]
struct DenialCounts {
    refused: AtomicU64,
    noted: AtomicU64,
    log: Mutex<Log>,
}

/// The lines of the log about one kind.
#[derive(Debug)]
struct Log {
    pace: Tempo,
    left_out: u64,
}

// === impl Denials ===

impl Denials {
    /// The number of things of that kind that were refused.
    #[must_use]
    pub fn refused(&self, why: Why) -> u64 {
        self.of(why).refused.load(Ordering::Relaxed)
    }

    /// The number of things of that kind that were allowed, or counted for less, and noted.
    #[must_use]
    pub fn noted(&self, why: Why) -> u64 {
        self.of(why).noted.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, denial: &Denial, is_refused: bool, identity: &str, caller: &Caller) {
        let counts = self.of(denial.why);
        let count = if is_refused { &counts.refused } else { &counts.noted };
        count.fetch_add(1, Ordering::Relaxed);
        let Some(left_out) = counts.line() else { return };
        let (why, address, outcome) =
            (denial.why.as_str(), caller.address, if is_refused { "denied" } else { "noted" });
        warn!(target: "lessor::audit", outcome, why, identity, %address, left_out, "{denial}");
    }

    fn of(&self, why: Why) -> &DenialCounts {
        &self.kinds[why as usize]
    }
}

impl Default for Denials {
    fn default() -> Denials {
        Denials { kinds: Why::ALL.map(|_| DenialCounts::new()) }
    }
}

// === impl DenialCounts ===

impl DenialCounts {
    fn new() -> DenialCounts {
        let log = Log { pace: Tempo::new(1.0, Duration::ZERO), left_out: 0 };
        DenialCounts { refused: AtomicU64::new(0), noted: AtomicU64::new(0), log: Mutex::new(log) }
    }

    /// Whether there is room for another line, with the number of those that were left out before it.
    fn line(&self) -> Option<u64> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        match log.pace.take(clock::now()) {
            Ok(()) => Some(std::mem::take(&mut log.left_out)),
            Err(_) => {
                log.left_out += 1;
                None
            }
        }
    }
}
