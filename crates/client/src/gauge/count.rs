//! The count of units in use and the limit on it, in one word.

use std::sync::atomic::{AtomicU64, Ordering};

/// The limit in the upper half, what is in use in the lower.
#[derive(Default, Debug)]
pub(super) struct Count(AtomicU64);

// === impl Count ===

impl Count {
    /// Takes as many as fit of `most`, if that is at least `least`, and returns how many were in use before and how many it
    /// took; else how many are in use, and the limit.
    #[inline]
    pub(super) fn take(&self, least: u32, most: u32) -> Result<(u32, u32), (u32, u32)> {
        let mut word = self.0.load(Ordering::SeqCst);
        loop {
            let (limit, in_use) = split(word);
            let taken = limit.saturating_sub(in_use).min(most);
            if taken < least {
                return Err((in_use, limit));
            }
            let next = join(limit, in_use + taken);
            match self.0.compare_exchange_weak(word, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Ok((in_use, taken)),
                Err(changed) => word = changed,
            }
        }
    }

    /// Brings `n` back that were taken.
    #[inline]
    pub(super) fn give_back(&self, n: u32) {
        let (_, in_use) = split(self.0.fetch_sub(u64::from(n), Ordering::SeqCst));
        assert!(in_use >= n, "{n} come back and {in_use} are out");
    }

    /// Takes another limit; what is in use stays.
    pub(super) fn set_limit(&self, limit: u32) {
        let mut word = self.0.load(Ordering::SeqCst);
        while let Err(changed) =
            self.0.compare_exchange_weak(word, join(limit, split(word).1), Ordering::SeqCst, Ordering::SeqCst)
        {
            word = changed;
        }
    }

    pub(super) fn limit(&self) -> u32 {
        split(self.0.load(Ordering::SeqCst)).0
    }

    pub(super) fn in_use(&self) -> u32 {
        split(self.0.load(Ordering::SeqCst)).1
    }
}

#[inline]
fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[inline]
fn join(limit: u32, in_use: u32) -> u64 {
    u64::from(limit) << 32 | u64::from(in_use)
}
