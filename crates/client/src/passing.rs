//! Units that pass although what is leased does not allow them, where the grantor lets everything pass: a limit that is tried, or
//! one that is switched off. The lease decides as ever, and what it would have refused is counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The switch, and the count of units that have passed by it.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    is_on: AtomicBool,
    units: AtomicU64,
}

// === impl Passing ===

impl Passing {
    pub(crate) const fn new() -> Passing {
        Passing { is_on: AtomicBool::new(false), units: AtomicU64::new(0) }
    }

    /// Lets everything pass from here on, or nothing.
    pub(crate) fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Lets `n` units pass that were refused, if everything is let pass. Returns whether it is.
    pub(crate) fn lets(&self, n: u32) -> bool {
        let is_on = self.is_on();
        if is_on {
            self.count(n);
        }
        is_on
    }

    /// Counts `n` units that have passed.
    pub(crate) fn count(&self, n: u32) {
        self.units.fetch_add(n.into(), Ordering::Relaxed);
    }

    /// The units that have passed.
    pub(crate) fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }
}
