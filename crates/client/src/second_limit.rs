//! A second limit that is tried beside the one in force: what has passed the one is asked of the other as well, which refuses
//! nothing and counts what it would.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lessor_proto::message::Unenforced;

/// The place of a second limit beside one in force. Where none is tried, it costs one load.
#[derive(Debug)]
pub(crate) struct SecondLimit<E> {
    is_tried: AtomicBool,
    /// Made when one is tried for the first time, and kept.
    limit: OnceLock<Box<E>>,
    asked: AtomicU64,
    refused: AtomicU64,
}

/// The units that were asked of a second limit, since it was first tried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SecondUsage {
    /// Units that have passed the limit in force while there was a lease of the second.
    pub asked: u64,
    /// Those of them that the second would have refused, or would have had somebody wait for.
    pub refused: u64,
    /// Whether it is tried at this moment, and there is a lease of it.
    pub is_tried: bool,
}

// === impl SecondUsage ===

impl SecondUsage {
    /// The same as reports say it.
    #[must_use]
    pub fn counts(self) -> Unenforced {
        Unenforced { asked: self.asked, passed: self.refused, silent: 0 }
    }
}

// === impl SecondLimit ===

impl<E> SecondLimit<E> {
    pub(crate) const fn new() -> SecondLimit<E> {
        SecondLimit {
            is_tried: AtomicBool::new(false),
            limit: OnceLock::new(),
            asked: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The limit, if one is tried.
    #[inline]
    pub(crate) fn tried(&self) -> Option<&E> {
        if !self.is_tried.load(Ordering::Relaxed) {
            return None;
        }
        self.last()
    }

    /// The limit that is tried, or was.
    pub(crate) fn last(&self) -> Option<&E> {
        self.limit.get().map(|limit| &**limit)
    }

    /// Tries one from here on, which is made where there is none, and is told first what it allows.
    pub(crate) fn begin(&self, make: impl FnOnce() -> E, allow: impl FnOnce(&E)) {
        allow(self.limit.get_or_init(|| Box::new(make())));
        self.is_tried.store(true, Ordering::Relaxed);
    }

    /// Tries none from here on, and tells the one that was tried.
    pub(crate) fn end(&self, tell: impl FnOnce(&E)) {
        self.is_tried.store(false, Ordering::Relaxed);
        if let Some(limit) = self.last() {
            tell(limit);
        }
    }

    /// Counts `n` units that were asked of it.
    pub(crate) fn count(&self, n: u32, is_refused: bool) {
        self.asked.fetch_add(n.into(), Ordering::Relaxed);
        if is_refused {
            self.refused.fetch_add(n.into(), Ordering::Relaxed);
        }
    }

    pub(crate) fn usage(&self) -> SecondUsage {
        SecondUsage {
            asked: self.asked.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            is_tried: self.is_tried.load(Ordering::Relaxed),
        }
    }
}
