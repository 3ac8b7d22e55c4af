//! A limit on the uses in any window, kept exactly over any number of holders: so many units as are leased, each of which is kept
//! for the window after its use.
//!
//! The lease is of a gauge, and a use is a unit of it that comes back by itself when the window has passed. Who holds how many
//! units is the grantor's to say; where each of them lies at the last instant of a window, a use of that window lies on it, so
//! there are never more uses in it than units. Four rules of this file see to that (`docs/leases.md` has the proof):
//!
//! 1. Units are taken first, under the lock under which the lease is changed, and the clock is read with that lock held. What
//!    it shows is when the use was made.
//! 2. A use is granted only if the lease lasts until the unit is free again. So whoever is cut off stops in time, and when the
//!    lease of a dead one ends, all of its uses are over.
//! 3. The unit stays in use for the window, as long as the clock must show for that, whatever becomes of the lease.
//! 4. A refund frees the unit that would be free first, as nobody knows which use it undoes.
//!
//! A refusal takes nothing. It is told to whoever drives this, which asks for more: units may lie elsewhere.
//!
//! ```
//! use std::time::Duration;
//!
//! use lessor_client::Denied;
//! use lessor_client::internals::allowance::Allowance;
//! use lessor_client::internals::window::ExactWindow;
//! use lessor_proto::message::UseWindow;
//! use lessor_proto::{Amount, Drift, Time};
//!
//! let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
//! let window = ExactWindow::new(Drift::DEFAULT);
//! // All of two a minute is leased, for two minutes.
//! let in_window = Some(UseWindow { length: Duration::from_secs(60), limit: 2 });
//! let lease = Allowance::new(Some(Amount::from_units(2)), at(120));
//! window.allow(at(0), Allowance { window: in_window, ..lease });
//! window.try_acquire(1, || at(0))?;
//! window.try_acquire(1, || at(1))?;
//! let denied = window.try_acquire(1, || at(2)).unwrap_err();
//! assert!(matches!(denied, Denied::WindowFull { uses: 2, leased: 2, .. }));
//! // Clocks may run 1 % fast, so a unit is kept for 60.6 s on this one.
//! assert!(denied.retry_after() > Some(Duration::from_millis(58_600)));
//! // A use at 61 s would outlast the lease.
//! assert_eq!(window.try_acquire(1, || at(61)), Err(Denied::NothingLeased));
//! # Ok::<(), Denied>(())
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_proto::message::{Unenforced, UseWindow};
use lessor_proto::{Amount, Drift, Time};

use self::kept::KeptUses;
pub use self::want::WindowWant;
use crate::allowance::Allowance;
use crate::denied::Denied;
use crate::fault::Fault;
use crate::mutation::{HolderRule, HolderRules};
use crate::passing::Passing;
use crate::waiting::{Queue, Ticket, Waiting};

mod holder;
mod kept;
mod keys;
mod locked;
mod missing;
#[cfg(test)]
mod tests;
mod wait;
mod want;
mod watchers;

pub use self::holder::WindowHolder;
pub use self::keys::{KeysOptions, WindowKey, WindowKeys};
pub(crate) use self::locked::LockedWindow;
use self::missing::Missing;
use self::watchers::{WindowWatch, WindowWatchers};

/// A limit on uses in any window, enforced on this machine within what is leased.
#[derive(Debug)]
pub struct ExactWindow {
    drift: Drift,
    rules: HolderRules,
    state: Mutex<WindowState>,
    /// Uses that were let pass; they do not count.
    passing: Passing,
    watchers: WindowWatchers,
}

#[derive(Debug)]
struct WindowState {
    /// The units that are leased.
    limit: u32,
    /// When the lease ends.
    until: Time,
    /// The window in which uses count; absent: it was not said, and nothing is granted.
    window: Option<UseWindow>,
    kept: KeptUses,
    /// Those who wait for units; there are none as long as it is absent.
    queue: Option<Box<Queue>>,
    missing: Missing,
    /// When it was last asked for anything.
    asked: Time,
    attention: Attention,
    /// The units that were wanted before all else when it was looked at last.
    said: u64,
    /// The uses that may be made before that is to be looked at again.
    quiet: u32,
    /// Nothing can be had any more: somebody else in this process holds the resource, or it is given back.
    is_barred: bool,
    /// Why nothing is leased, where that is known.
    unserved: Option<Box<Unserved>>,
}

/// The uses that can be made at a moment, and until when they are kept.
#[derive(Clone, Copy, Debug)]
struct WindowRoom {
    units: u32,
    until: Time,
}

/// Why nothing is leased.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unserved {
    Fault(Arc<Fault>),
    /// The server learns what is out, until then; [`Time::MAX`] where it has not said.
    Learning(Time),
}

/// The look that whoever drives a window should have at it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Attention {
    /// None: nothing has changed.
    #[default]
    None,
    /// Now and then: units are in use that were not.
    Soon,
    /// At once: something was refused, or is waited for.
    Now,
}

/// The use of a window at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowUsage {
    /// The units in use here: uses in the window that passes.
    pub uses: u32,
    /// The units that are leased here, of those in `limit`.
    pub leased: u32,
    /// The window and its limit for all holders; absent: nothing has been leased yet.
    pub window: Option<UseWindow>,
    /// The time until the first of the units in use here is free; absent: none is in use.
    pub frees_in: Option<Duration>,
}

/// The bounds of the time after which one who was refused asks again, as units may come from elsewhere: half of the time for which
/// something has been missing.
const AGAIN: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

// === impl ExactWindow ===

impl ExactWindow {
    /// A window in which nothing is granted yet.
    #[must_use]
    pub fn new(drift: Drift) -> ExactWindow {
        ExactWindow::with_rules(drift, HolderRules::default(), Time::ZERO)
    }

    /// The same by these rules, asked for first at `now`.
    #[must_use]
    pub fn with_rules(drift: Drift, rules: HolderRules, now: Time) -> ExactWindow {
        let state = WindowState {
            limit: 0,
            until: Time::ZERO,
            window: None,
            kept: KeptUses::default(),
            queue: None,
            missing: Missing::default(),
            asked: now,
            attention: Attention::None,
            said: 0,
            quiet: 0,
            is_barred: false,
            unserved: None,
        };
        ExactWindow {
            drift,
            rules,
            state: Mutex::new(state),
            passing: Passing::new(),
            watchers: WindowWatchers::default(),
        }
    }

    /// Replaces what is leased. What is in use stays so.
    pub fn allow(&self, now: Time, allowance: Allowance) {
        let units = allowance.capacity.map_or(u64::MAX, Amount::floor_units);
        let mut state = self.lock();
        let before = if now < state.until { state.limit } else { 0 };
        // The limit and the end change in one step, as no use is made meanwhile.
        state.limit = if now < allowance.until { u32::try_from(units).unwrap_or(u32::MAX) } else { 0 };
        state.until = allowance.until;
        state.window = allowance.window.or(state.window);
        self.passing.set(allowance.unenforced);
        state.kept.end_until(now);
        let more = match (self.passing.is_on(), state.limit > before) {
            (true, _) => u32::MAX,
            (false, true) => state.limit.saturating_sub(state.kept.units()),
            (false, false) => 0,
        };
        let waker = state.queue.as_mut().and_then(|queue| queue.head_waker());
        drop(state);
        waker.into_iter().for_each(std::task::Waker::wake);
        self.watchers.call(more);
    }

    /// Makes `n` uses at once, or none. Zero uses are always granted.
    ///
    /// # Errors
    ///
    /// See [`Denied`]. Nothing is taken then.
    #[inline]
    pub fn try_acquire(&self, n: u32, clock: impl Fn() -> Time) -> Result<(), Denied> {
        self.attempt(n, clock).0
    }

    /// The same, with the look that it asks for.
    #[inline]
    fn attempt(&self, n: u32, clock: impl Fn() -> Time) -> (Result<(), Denied>, Attention) {
        let mut state = self.lock();
        let now = clock();
        state.asked = now;
        if n == 0 {
            return (Ok(()), Attention::None);
        }
        let waiting = state.queue.as_ref().map_or(0, |queue| queue.units());
        let made = match waiting {
            0 => state.make(now, n, self.drift, self.rules),
            waiting => Err(Denied::OthersWait { waiting }),
        };
        let attention = match &made {
            Ok(()) => state.used(n),
            Err(Denied::AboveBurst { .. }) => Attention::None,
            Err(_) => {
                state.missing.refuse(now, n);
                state.missing_is_news()
            }
        };
        (self.let_pass(n, made), state.call(attention))
    }

    /// The same of one that asks again in another way where it is refused, and misses nothing yet: with the use after it, absent
    /// where it is refused.
    fn take_at_hand(&self, n: u32, clock: impl Fn() -> Time) -> (Option<WindowUsage>, Attention) {
        let mut state = self.lock();
        let now = clock();
        state.asked = now;
        let waiting = state.queue.as_ref().map_or(0, |queue| queue.units());
        let is_made = waiting == 0 && (n == 0 || state.make(now, n, self.drift, self.rules).is_ok());
        let attention = if is_made && n > 0 { state.used(n) } else { Attention::None };
        if is_made {
            self.passing.note_granted(n);
        }
        (is_made.then(|| state.usage(now)), state.call(attention))
    }

    /// The same of one that gives up after it: it wants nothing any more.
    fn last_attempt(&self, n: u32, clock: impl Fn() -> Time) -> (Result<(), Denied>, Attention) {
        let mut state = self.lock();
        let made = match state.queue.as_ref().map_or(0, |queue| queue.units()) {
            0 => state.make(clock(), n, self.drift, self.rules),
            waiting => Err(Denied::OthersWait { waiting }),
        };
        let attention = if made.is_ok() { Attention::Soon } else { Attention::None };
        (self.let_pass(n, made), state.call(attention))
    }

    /// Undoes up to `n` uses, and returns how many: as many as count here. The units of those are free that would be so first.
    pub fn refund(&self, n: u32, now: Time) -> u32 {
        let mut state = self.lock();
        state.kept.end_until(now);
        #[cfg(feature = "mutations")]
        if !self.rules.keep(HolderRule::RefundFirst) {
            return state.kept.refund_last(n);
        }
        let undone = state.kept.refund(n);
        let waker = state.queue.as_mut().and_then(|queue| queue.head_waker());
        drop(state);
        waker.into_iter().for_each(std::task::Waker::wake);
        self.watchers.call(undone);
        undone
    }

    /// The units in use at `now`: what a report must promise at least, if it is built of what is read after the last
    /// [`ExactWindow::allow`].
    #[must_use]
    pub fn in_use(&self, now: Time) -> u32 {
        let mut state = self.lock();
        state.kept.end_until(now);
        state.kept.units()
    }

    /// The use at `now`.
    #[must_use]
    pub fn usage(&self, now: Time) -> WindowUsage {
        self.lock().usage(now)
    }

    /// The uses that were let pass, as the grantor [lets everything pass](Allowance::unenforced).
    #[must_use]
    pub fn unenforced(&self) -> u64 {
        self.passing.units()
    }

    /// The uses that were asked for while everything was let pass, those among them.
    #[must_use]
    pub fn unenforced_counts(&self) -> Unenforced {
        self.passing.counts()
    }

    /// Lets `n` uses pass that are not made, where that is so with everything.
    fn let_pass(&self, n: u32, made: Result<(), Denied>) -> Result<(), Denied> {
        match made {
            Err(_) if self.passing.lets(n) => Ok(()),
            Ok(()) => {
                self.passing.note_granted(n);
                made
            }
            Err(_) => made,
        }
    }

    /// Nothing is granted from here on: the program holds the resource in another way, or gives it back. What is in use stays so.
    pub(crate) fn bar(&self) {
        self.lock().is_barred = true;
    }

    /// Bars it if it is idle at `now`, in one step: whoever has found it before makes no use of what is given back.
    fn bar_idle(&self, now: Time) -> bool {
        let mut state = self.lock();
        let is_idle = state.is_idle(now);
        state.is_barred |= is_idle;
        is_idle
    }

    /// The reason why nothing is leased, if it is known.
    pub(crate) fn explain(&self, unserved: Option<Unserved>) {
        self.lock().unserved = unserved.map(Box::new);
    }

    /// No code of others runs under this lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl WindowState ===

impl WindowState {
    /// The use at `now`.
    fn usage(&mut self, now: Time) -> WindowUsage {
        self.kept.end_until(now);
        WindowUsage {
            uses: self.kept.units(),
            leased: if now < self.until { self.limit } else { 0 },
            window: self.window,
            frees_in: self.kept.first_end().map(|end| end.since(now)),
        }
    }

    /// Makes `n` uses at `now`.
    fn make(&mut self, now: Time, n: u32, drift: Drift, rules: HolderRules) -> Result<(), Denied> {
        let room = self.room(now, n, drift, rules)?;
        self.take(n, room);
        Ok(())
    }

    /// The room for uses at `now`, if there is any for `least` of them.
    fn room(
        &mut self,
        now: Time,
        least: u32,
        drift: Drift,
        rules: HolderRules,
    ) -> Result<WindowRoom, Denied> {
        self.kept.end_until(now);
        let Some(window) = self.window.filter(|_| now < self.until && !self.is_barred) else {
            return Err(self.unserved(now));
        };
        if least > window.limit {
            return Err(Denied::AboveBurst { n: least, burst: window.limit.into() });
        }
        if self.limit == 0 && self.unserved.is_some() {
            return Err(self.unserved(now));
        }
        let units = self.limit.saturating_sub(self.kept.units());
        if units < least {
            return Err(self.full(now, least, window));
        }
        let hold = match rules.keep(HolderRule::WindowOutlasted) {
            true => drift.outlasting(window.length),
            false => window.length,
        };
        let until = KeptUses::end_of(now, hold);
        if until > self.until && rules.keep(HolderRule::LeaseOutlives) {
            return Err(Denied::NothingLeased);
        }
        Ok(WindowRoom { units, until })
    }

    /// Makes `n` uses, for which there is `room`.
    fn take(&mut self, n: u32, room: WindowRoom) {
        if n == 0 {
            return;
        }
        self.kept.keep(n, room.until);
        self.missing.grant(n, self.queue.is_some());
    }

    /// The denial of `n` uses where too many count, with the time after which that may be otherwise: when the units here are
    /// free, or sooner where there are others elsewhere.
    fn full(&self, now: Time, n: u32, window: UseWindow) -> Denied {
        let (uses, leased) = (self.kept.units(), self.limit);
        let missing = (u64::from(uses) + u64::from(n)).saturating_sub(leased.into());
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let here = self.kept.end_of_first(missing).map(|end| end.since(now));
        let elsewhere = (leased < window.limit).then(|| self.again(now));
        let retry_after = here.into_iter().chain(elsewhere).min().unwrap_or(window.length);
        Denied::WindowFull { uses, leased, retry_after }
    }

    /// The denial where nothing is leased.
    #[cold]
    fn unserved(&self, now: Time) -> Denied {
        match self.unserved.as_deref() {
            None => Denied::NothingLeased,
            Some(Unserved::Fault(fault)) => Denied::Unserved(Arc::clone(fault)),
            Some(Unserved::Learning(Time::MAX)) => Denied::Learning { retry_after: None },
            Some(Unserved::Learning(until)) => Denied::Learning { retry_after: Some(until.since(now)) },
        }
    }

    fn again(&self, now: Time) -> Duration {
        let [least, most] = AGAIN;
        let waited = self.missing.since.map_or(Duration::ZERO, |since| now.since(since));
        (waited / 2).clamp(least, most)
    }

    /// The units that are wanted before all else: those in use, and what is missing, roughly, as whoever does not wait comes again
    /// and again for the same.
    fn urgent(&self) -> u64 {
        let waiting = self.queue.as_ref().map_or(0, |queue| queue.units());
        let missing = waiting.max(self.missing.units().into());
        let missing = if missing > 0 { missing.checked_next_power_of_two().unwrap_or(missing) } else { 0 };
        let most = self.window.map_or(u64::MAX, |window| window.limit.into());
        u64::from(self.kept.units()).saturating_add(missing).min(most)
    }

    /// The look that `n` uses ask for that were made.
    #[inline]
    fn used(&mut self, n: u32) -> Attention {
        match self.quiet.checked_sub(n) {
            Some(left) => {
                self.quiet = left;
                Attention::None
            }
            None => Attention::Soon,
        }
    }

    /// The look that something missing asks for: at once if more is wanted by that than was said.
    fn missing_is_news(&self) -> Attention {
        if self.urgent() > self.said { Attention::Now } else { Attention::Soon }
    }

    /// Asks for that look, unless it has been asked for already.
    #[inline]
    fn call(&mut self, attention: Attention) -> Attention {
        if attention <= self.attention {
            return Attention::None;
        }
        self.attention = attention;
        attention
    }

    /// Takes a place in the queue.
    fn join(&mut self, now: Time, n: u32, waiting: Waiting) -> Result<Ticket, Denied> {
        let Waiting { max_wait, max_waiters } = waiting;
        if self.queue.as_ref().map_or(0, |queue| queue.len()) >= max_waiters {
            return Err(Denied::TooManyWaiters { max_waiters });
        }
        self.missing.begin(now);
        if max_wait.is_zero() {
            return Err(Denied::TimedOut { max_wait });
        }
        Ok(self.queue.get_or_insert_default().join(n))
    }

    /// Gives up a place in the queue.
    fn leave(&mut self, ticket: Ticket) {
        let Some(queue) = &mut self.queue else { return };
        queue.leave(ticket);
        if queue.is_empty() {
            self.queue = None;
        }
    }
}
