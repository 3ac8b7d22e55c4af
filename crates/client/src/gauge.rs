//! Permits for things in flight, enforced on this machine: never more at a time than whole units are leased.
//!
//! How many are out and how many may be stand in one word, so a permit is one compare-and-swap, and giving it back one
//! subtraction; the end of the lease is compared with the clock each time. A shrink takes effect with the next permit:
//! none is given until enough have come back. What is out at that time stays out, and the session keeps reporting it as
//! held (section 10.2 of the protocol).
//!
//! A permit ends with the lease that it was taken under, at its [`deadline`](Permit::deadline), and what it stands for must
//! be over by then: the units may be somebody else's. Renewals move the deadline until it has passed, and never after that:
//! what is leased later is another lease. A holder can ask ([`Permit::is_expired_at`]) and wait ([`Permit::expired_by`]). Units
//! of a permit that has expired and is still out are not free here: they are given again when the permit is dropped.
//!
//! ```
//! use lessor_client::Denied;
//! use lessor_client::internals::{allowance::Allowance, gauge::Semaphore};
//! use lessor_proto::{Amount, Time};
//!
//! let gauge = Semaphore::default();
//! gauge.allow(Time::ZERO, Allowance::forever(Amount::from_units(2)));
//! let first = gauge.try_acquire(1, || Time::ZERO)?;
//! let second = gauge.try_acquire(1, || Time::ZERO)?;
//! assert_eq!(gauge.try_acquire(1, || Time::ZERO).unwrap_err(), Denied::Full { in_use: 2, limit: 2 });
//! drop(first);
//! assert!(gauge.try_acquire(1, || Time::ZERO).is_ok());
//! # drop(second);
//! # Ok::<(), Denied>(())
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lessor_proto::Time;
use lessor_proto::message::Unenforced;

use self::count::Count;
use self::term::{GaugeTerms, Tenure};
pub(crate) use crate::allowance::Allowance;
use crate::denied::Denied;
use crate::passing::Passing;
use crate::second_limit::SecondLimit;
pub(crate) use crate::waiting::Waiting;
use crate::waiting::{Queue, Ticket};

mod beside;
mod count;
mod term;
#[cfg(test)]
mod tests;
mod wait;

/// Grants permits within an allowance. Clones are the same gauge.
#[derive(Clone, Debug)]
pub struct Semaphore {
    inner: Arc<Inner>,
    waiting: Waiting,
}

#[derive(Debug)]
struct Inner {
    count: Count,
    /// Until when permits are given, and last.
    terms: GaugeTerms,
    /// Units that are waited for; changes under the lock of the queue.
    waited_for: AtomicU64,
    /// The most that was in use, waited for and asked for at a time, since the last [`Semaphore::usage`].
    peak: AtomicU64,
    queue: Mutex<Queue>,
    passing: Passing,
    second: SecondLimit<Semaphore>,
}

/// Units in flight. They come back when this is dropped.
#[derive(Debug)]
#[must_use = "the units come back when the permit is dropped"]
pub struct Permit {
    inner: Arc<Inner>,
    units: u32,
    /// Units that were let pass, beside these, and do not count.
    passed: u32,
    /// The number of the term that they were taken in.
    term: u32,
    /// The end of that, as it was seen last.
    until: AtomicU64,
    /// As many units of the second limit, if one is tried and they were there.
    beside: Option<Box<Permit>>,
}

/// Units that were taken, and when.
#[derive(Clone, Copy, Debug)]
struct TakenUnits {
    units: u32,
    /// Units that were let pass, beside these.
    passed: u32,
    tenure: Tenure,
}

/// The use of a gauge.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GaugeUsage {
    /// Units that are out.
    pub in_use: u64,
    /// Units that are waited for.
    pub waiting: u64,
    /// The most units that were in use, waited for and asked for at one time since the last look.
    pub peak: u64,
}

// === impl Semaphore ===

impl Semaphore {
    /// A gauge that grants nothing yet.
    #[must_use]
    pub fn new(waiting: Waiting) -> Semaphore {
        let inner = Inner {
            count: Count::default(),
            terms: GaugeTerms::default(),
            waited_for: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            queue: Mutex::new(Queue::new()),
            passing: Passing::new(),
            second: SecondLimit::new(),
        };
        Semaphore { inner: Arc::new(inner), waiting }
    }

    /// A gauge that goes by these rules, in tests.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub fn with_rules(rules: crate::mutation::HolderRules) -> Semaphore {
        let gauge = Semaphore::default();
        gauge.inner.terms.set_broken(!rules.keep(crate::mutation::HolderRule::DeadlineStays));
        gauge
    }

    /// Replaces what may be in flight: the whole units of the capacity.
    pub fn allow(&self, now: Time, allowance: Allowance) {
        let Allowance { capacity, until, unenforced, .. } = allowance;
        self.inner.passing.set(unenforced);
        let units = capacity.map_or(u64::MAX, lessor_proto::Amount::floor_units);
        let limit = if now < until { u32::try_from(units).unwrap_or(u32::MAX) } else { 0 };
        let mut queue = self.inner.lock();
        // In an order in which no mixture of the two allowances gives more than the more generous of them.
        let grows = limit > self.inner.count.limit();
        if !grows {
            self.inner.count.set_limit(limit);
        }
        let watchers = self.inner.terms.allow(now, until);
        if grows {
            self.inner.count.set_limit(limit);
        }
        let waker = queue.head_waker();
        drop(queue);
        watchers.chain(waker).for_each(std::task::Waker::wake);
    }

    /// Takes a permit for `n` units, or says why not. Zero units are always granted.
    ///
    /// # Errors
    ///
    /// See [`Denied`].
    #[inline]
    pub fn try_acquire(&self, n: u32, now: impl Fn() -> Time) -> Result<Permit, Denied> {
        self.try_acquire_between(n, n, now)
    }

    /// Takes a permit for as many as there are of `most` units, if that is at least `least`.
    ///
    /// # Errors
    ///
    /// See [`Denied`]. Nothing is taken then.
    #[inline]
    pub fn try_acquire_between(
        &self,
        least: u32,
        most: u32,
        now: impl Fn() -> Time,
    ) -> Result<Permit, Denied> {
        let mut permit = self.take_between(least, most, &now)?;
        permit.pass_on(now);
        Ok(permit)
    }

    /// The same, of which the second limit does not hear: who grants them tells it.
    #[inline]
    pub(crate) fn take_between(
        &self,
        least: u32,
        most: u32,
        now: impl Fn() -> Time,
    ) -> Result<Permit, Denied> {
        let most = most.max(least);
        let taken = self.inner.let_in(most).and_then(|()| self.inner.take(least, most, now()));
        let missing = taken.as_ref().map_or(most, |taken| most - taken.units);
        match missing > 0 && self.inner.passing.lets(missing) {
            false => taken.map(|taken| self.permit(taken)),
            true => Ok(self.permit(TakenUnits { passed: missing, ..taken.unwrap_or(TakenUnits::NONE) })),
        }
    }

    /// Units of permits that the lease would have refused, as its grantor [lets everything pass](Allowance::unenforced).
    #[must_use]
    pub fn unenforced(&self) -> u64 {
        self.inner.passing.units()
    }

    /// Units of permits that were asked for while everything was let pass, those among them.
    #[must_use]
    pub fn unenforced_counts(&self) -> Unenforced {
        self.inner.passing.counts()
    }

    #[inline]
    fn permit(&self, TakenUnits { units, passed, tenure }: TakenUnits) -> Permit {
        self.inner.passing.note_granted(units);
        let until = AtomicU64::new(tenure.until);
        Permit { inner: Arc::clone(&self.inner), units, passed, term: tenure.number, until, beside: None }
    }

    /// By which gauges that are the same are known, and by which several are put in order.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// Units that are out.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.inner.count.in_use()
    }

    /// The present use and its peak, which begins anew.
    #[must_use]
    pub fn usage(&self) -> GaugeUsage {
        let in_use = u64::from(self.inner.count.in_use());
        let waiting = self.inner.waited_for.load(Ordering::SeqCst);
        let peak = self.inner.peak.swap(0, Ordering::Relaxed).max(in_use + waiting);
        GaugeUsage { in_use, waiting, peak }
    }
}

impl Default for Semaphore {
    fn default() -> Semaphore {
        Semaphore::new(Waiting::DEFAULT)
    }
}

// === impl Inner ===

impl Inner {
    /// Whether one who does not wait may ask for `n` units: nobody is overtaken.
    #[inline]
    fn let_in(&self, n: u32) -> Result<(), Denied> {
        let waiting = self.waited_for.load(Ordering::Relaxed);
        if waiting == 0 || n == 0 {
            return Ok(());
        }
        self.note_peak(u64::from(self.count.in_use()) + waiting + u64::from(n));
        Err(Denied::OthersWait { waiting })
    }

    /// Takes as many as there are of `most` units, if that is at least `least`.
    #[inline]
    fn take(&self, least: u32, most: u32, now: Time) -> Result<TakenUnits, Denied> {
        // After the clock: an allowance that ended by `now` is seen here.
        let tenure = self.terms.tenure();
        if most == 0 {
            return Ok(TakenUnits { units: 0, passed: 0, tenure });
        }
        if now.as_nanos() >= tenure.until {
            self.note_peak(u64::from(self.count.in_use()) + u64::from(most));
            return Err(Denied::NothingLeased);
        }
        let (in_use, taken) = match self.count.take(least, most) {
            Ok((in_use, taken)) => (in_use, Ok(taken)),
            Err((in_use, 0)) => (in_use, Err(Denied::NothingLeased)),
            Err((in_use, limit)) => (in_use, Err(Denied::Full { in_use, limit })),
        };
        self.note_peak(u64::from(in_use) + u64::from(most));
        taken.map(|units| TakenUnits { units, passed: 0, tenure })
    }

    #[inline]
    fn give_back(&self, n: u32) {
        self.count.give_back(n);
        // Whoever joined the queue before this load gets woken; who joins after it sees the units.
        if self.waited_for.load(Ordering::SeqCst) > 0 {
            self.wake_head();
        }
    }

    #[cold]
    fn wake_head(&self) {
        let waker = self.lock().head_waker();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A load, most of the time.
    #[inline]
    fn note_peak(&self, units: u64) {
        if units > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(units, Ordering::Relaxed);
        }
    }

    fn strike(&self, queue: &mut Queue, ticket: Ticket) {
        if let Some(n) = queue.leave(ticket) {
            self.waited_for.fetch_sub(u64::from(n), Ordering::SeqCst);
        }
    }

    /// No code of others runs under this lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl TakenUnits ===

impl TakenUnits {
    /// Nothing, of a term that has no end.
    const NONE: TakenUnits = TakenUnits { units: 0, passed: 0, tenure: Tenure::ENDLESS };
}

// === impl Permit ===

impl Permit {
    /// The number of units in this permit.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.units + self.passed
    }

    /// Those of them that the lease would have refused, as its grantor [lets everything pass](Allowance::unenforced).
    #[must_use]
    pub fn unenforced(&self) -> u32 {
        self.passed
    }

    /// When the lease that this was taken under ends, as far as is known: what the permit stands for must be over by then.
    /// A renewal moves it later as long as it has not passed, and nothing does after that. `None` of what is not leased,
    /// such as safe capacity and what was let pass: it has no end.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let deadline = self.inner.terms.end_of(self.tenure());
        if let Some(deadline) = deadline {
            self.until.store(deadline.as_nanos(), Ordering::Relaxed);
        }
        deadline
    }

    /// Whether the permit has ended by `now`. Once it has, it has for ever.
    #[must_use]
    pub fn is_expired_at(&self, now: Time) -> bool {
        self.inner.terms.is_over(self.tenure(), now)
    }

    /// Whether the permit has ended.
    #[cfg(feature = "shell")]
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.is_expired_at(crate::shell::clock::now())
    }

    /// The time until its [deadline](Permit::deadline); `None` where it has none.
    #[cfg(feature = "shell")]
    #[must_use]
    pub fn remaining(&self) -> Option<std::time::Duration> {
        self.deadline().map(|deadline| deadline.since(crate::shell::clock::now()))
    }

    /// A permit of no units that ends when this one does: for who waits for that end and is not to hold the units.
    pub fn without_units(&self) -> Permit {
        let until = AtomicU64::new(self.until.load(Ordering::Relaxed));
        Permit { inner: Arc::clone(&self.inner), units: 0, passed: 0, term: self.term, until, beside: None }
    }

    fn tenure(&self) -> Tenure {
        Tenure { number: self.term, until: self.until.load(Ordering::Relaxed) }
    }

    /// Gives back what is above `units`, what was let pass first.
    pub fn shrink(&mut self, units: u32) {
        self.passed = self.passed.min(units.saturating_sub(self.units));
        if let Some(back @ 1..) = self.units.checked_sub(units) {
            self.units = units;
            self.inner.give_back(back);
        }
        if let Some(beside) = &mut self.beside {
            beside.shrink(units);
        }
    }

    /// Takes as much as there is of what is missing to `units`. Nobody who waits is overtaken, and a permit that has ended
    /// does not grow.
    pub(crate) fn grow(&mut self, units: u32, now: Time) {
        let missing = units.saturating_sub(self.units());
        let taken = self.inner.let_in(missing).and_then(|()| self.inner.take(0, missing, now));
        if let Ok(TakenUnits { units, tenure, .. }) = taken {
            match tenure.number == self.term {
                true => {
                    self.inner.passing.note_granted(units);
                    self.units += units;
                }
                false => self.inner.give_back(units),
            }
        }
        let missing = units.saturating_sub(self.units());
        if missing > 0 && self.inner.passing.lets(missing) {
            self.passed += missing;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.units > 0 {
            self.inner.give_back(self.units);
        }
    }
}
