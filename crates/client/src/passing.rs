//! Units that pass although what is leased does not allow them, where the grantor lets everything pass: a limit that is tried, or
//! one that is switched off. The lease decides as ever, and what it would have refused is counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lessor_proto::message::Unenforced;

/// The switch, and the counts of the units that were asked for while it was on.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    is_on: AtomicBool,
    /// Units that have passed by it.
    units: AtomicU64,
    /// Units that were granted meanwhile. Of who counts all that is granted: without those that were granted before it was
    /// switched on.
    granted: AtomicU64,
}

// === impl Passing ===

impl Passing {
    pub(crate) const fn new() -> Passing {
        Passing { is_on: AtomicBool::new(false), units: AtomicU64::new(0), granted: AtomicU64::new(0) }
    }

    /// Lets everything pass from here on, or nothing.
    pub(crate) fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// The same of who counts all that is granted, `granted` units so far, and does this and [`Passing::counts_at`] one at a time.
    pub(crate) fn set_at(&self, is_on: bool, granted: u64) {
        match (self.is_on.swap(is_on, Ordering::Relaxed), is_on) {
            (false, true) => _ = self.granted.fetch_sub(granted, Ordering::Relaxed),
            (true, false) => _ = self.granted.fetch_add(granted, Ordering::Relaxed),
            _ => {}
        }
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

    /// Counts `n` units that were granted, if everything is let pass.
    #[inline]
    pub(crate) fn note_granted(&self, n: u32) {
        if self.is_on() {
            self.granted.fetch_add(n.into(), Ordering::Relaxed);
        }
    }

    /// The units that have passed.
    pub(crate) fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }

    /// The units that were asked for while everything was let pass.
    pub(crate) fn counts(&self) -> Unenforced {
        self.counts_of(self.granted.load(Ordering::Relaxed))
    }

    /// The same of who counts all that is granted, `granted` units so far.
    pub(crate) fn counts_at(&self, granted: u64) -> Unenforced {
        let until = if self.is_on() { granted } else { 0 };
        self.counts_of(self.granted.load(Ordering::Relaxed).wrapping_add(until))
    }

    fn counts_of(&self, granted: u64) -> Unenforced {
        let passed = self.units();
        Unenforced { asked: granted.saturating_add(passed), passed, silent: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_counts_while_everything_is_let_pass() {
        let (passing, counted) = (Passing::new(), |asked, passed| Unenforced { asked, passed, silent: 0 });
        passing.set_at(false, 7);
        assert_eq!(passing.counts_at(9), counted(0, 0));
        passing.set_at(true, 10);
        passing.set_at(true, 12);
        assert!(passing.lets(3));
        assert_eq!(passing.counts_at(14), counted(7, 3));
        passing.set_at(false, 15);
        assert!(!passing.lets(3));
        assert_eq!(passing.counts_at(99), counted(8, 3));
        passing.set_at(true, 100);
        assert_eq!(passing.counts_at(102), counted(10, 3));
    }
}
