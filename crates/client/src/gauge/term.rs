//! The terms of permits: from the first grant of a lease over its renewals to its end.
//!
//! A permit ends with the term in which it was taken. Renewals move the end of a term as long as it has not passed. What is
//! allowed after that is another term, so the end of a permit never moves ahead once it has passed; nor does it when
//! somebody was told so, whatever a renewal says that was read a moment earlier.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use lessor_proto::Time;

use crate::waiting::Watchers;

/// The end of what is not leased and has none: safe capacity, for one.
const ENDLESS: u64 = Time::MAX.as_nanos();

/// The term that runs, and what is known of those before it.
#[derive(Default, Debug)]
pub(super) struct GaugeTerms {
    /// The number of the term that runs.
    number: AtomicU32,
    /// When it ends: from then on no permit is given.
    until: AtomicU64,
    /// When the one before it had ended.
    ended: AtomicU64,
    /// All terms below this number are over, and somebody may have been told so.
    over: AtomicU32,
    watchers: Mutex<Watchers>,
    /// One term goes on for ever: a rule taken out.
    #[cfg(feature = "mutations")]
    is_broken: std::sync::atomic::AtomicBool,
}

/// The term in which units are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tenure {
    pub(super) number: u32,
    /// Its end, as it was then.
    pub(super) until: u64,
}

/// A place among the watchers, left when this is dropped.
#[derive(Debug)]
pub(super) struct TermWatch<'a> {
    terms: &'a GaugeTerms,
    watcher: u64,
}

// === impl Tenure ===

impl Tenure {
    /// That of what is not leased.
    pub(super) const ENDLESS: Tenure = Tenure { number: 0, until: ENDLESS };
}

// === impl GaugeTerms ===

impl GaugeTerms {
    /// The term that runs, to be read before units are taken: they may be those of a term that has ended in this instant,
    /// never those of a later one.
    #[inline]
    pub(super) fn tenure(&self) -> Tenure {
        let number = self.number.load(Ordering::SeqCst);
        Tenure { number, until: self.until.load(Ordering::SeqCst) }
    }

    /// Allows units to be taken until `until`. Returns the wakers to be woken, outside of all locks.
    pub(super) fn allow(&self, now: Time, until: Time) -> impl Iterator<Item = Waker> + use<> {
        let (now, until) = (now.as_nanos(), until.as_nanos());
        let mut watchers = self.lock();
        let Tenure { number, until: before } = self.tenure();
        let is_over = !self.is_broken() && (before <= now || self.over.load(Ordering::SeqCst) > number);
        let is_other = !self.is_broken() && (before == ENDLESS) != (until == ENDLESS);
        let sooner = match (is_over, is_other) {
            (true, _) if until <= now => false,
            (true, _) | (false, true) => {
                // No mixture of the two is later than what is right: a term that is over has no end in the future.
                self.until.store(0, Ordering::SeqCst);
                self.ended.store(before.min(now), Ordering::SeqCst);
                self.number.store(number.wrapping_add(1), Ordering::SeqCst);
                self.until.store(until, Ordering::SeqCst);
                true
            }
            (false, false) => {
                let until = until.max(now);
                self.until.store(until, Ordering::SeqCst);
                until < before
            }
        };
        watchers.call(if sooner { usize::MAX } else { 0 }).into_values()
    }

    /// When a permit of `tenure` ends, or has ended, as far as is known; nothing if it was not leased.
    pub(super) fn end_of(&self, tenure: Tenure) -> Option<Time> {
        if tenure.until == ENDLESS {
            return None;
        }
        // In this order: who reads the end of a later term also sees its number.
        let until = self.until.load(Ordering::SeqCst);
        let end = match self.number.load(Ordering::SeqCst) == tenure.number {
            true => until,
            false => tenure.until.min(self.ended.load(Ordering::SeqCst)),
        };
        Some(Time::from_nanos(end))
    }

    /// Whether a permit of `tenure` has ended by `now`. Once it has, it has for ever.
    pub(super) fn is_over(&self, tenure: Tenure, now: Time) -> bool {
        if tenure.until == ENDLESS {
            return false;
        }
        let runs = || self.over.load(Ordering::SeqCst) <= tenure.number && now < self.until_of(tenure.number);
        if runs() || self.is_broken() {
            return false;
        }
        let _watchers = self.lock();
        // A renewal may have been first.
        if runs() {
            return false;
        }
        self.over.fetch_max(tenure.number.saturating_add(1), Ordering::SeqCst);
        true
    }

    #[cfg(feature = "mutations")]
    pub(super) fn set_broken(&self, is_broken: bool) {
        self.is_broken.store(is_broken, Ordering::SeqCst);
    }

    #[cfg(feature = "mutations")]
    fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
    }

    #[cfg(not(feature = "mutations"))]
    #[expect(clippy::unused_self, reason = "the same call with the feature and without")]
    const fn is_broken(&self) -> bool {
        false
    }

    /// A place to leave a waker in.
    pub(super) fn watch(&self) -> TermWatch<'_> {
        TermWatch { terms: self, watcher: self.lock().join() }
    }

    /// When the term of that number ends; what does not run has.
    fn until_of(&self, number: u32) -> Time {
        let until = self.until.load(Ordering::SeqCst);
        let runs = self.number.load(Ordering::SeqCst) == number;
        if runs { Time::from_nanos(until) } else { Time::ZERO }
    }

    /// No code of others runs under this lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, Watchers> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl TermWatch ===

impl TermWatch<'_> {
    /// Remembers whom to wake when an end is to come sooner.
    pub(super) fn park(&self, waker: &Waker) {
        self.terms.lock().park(self.watcher, waker);
    }
}

impl Drop for TermWatch<'_> {
    fn drop(&mut self) {
        self.terms.lock().leave(self.watcher);
    }
}
