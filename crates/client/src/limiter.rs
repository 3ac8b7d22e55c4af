//! Permits for a rate, enforced on this machine in a few nanoseconds.
//!
//! # How it works
//!
//! The leased rate flows into a central [`Bucket`](lessor_algorithms::bucket::Bucket), which holds at most what the
//! rate brings in the *burst* time, or one unit if that is more. The burst is the operator's: it comes with the lease, and is
//! 50 ms where nothing is said. Threads take tokens from it in batches into *shards*, one cache line
//! for each of 16 lanes. The fast path is one compare-and-swap on the own shard: no lock, no clock, no allocation,
//! nothing shared. One permit in a batch goes to the bucket instead: it reads the clock and takes a mutex for some 50
//! ns. While the bucket is empty, a permit for one unit is denied without the mutex, by the clock and one word. A batch
//! is what the rate brings in a millisecond, at most a 32nd of the burst: 1,000 tokens at 1,000,000 a second.
//!
//! Below 2,000 a second a batch would be less than two tokens, and there are no shards. A *meter*
//! keeps the bucket instead, in one word that all threads share: a permit reads the clock and is one compare-and-swap,
//! a denial reads the clock and the word, and neither takes the mutex. The mutex is for what changes the meter: an
//! allowance, one who waits, the end, and 18,000 units of income since it was last started. While somebody waits the
//! meter stands still, and all go to the bucket.
//!
//! # What it promises
//!
//! In any window `w`, at most `rate * (w + burst)` units; where the burst is less than a unit, one more: tokens in shards count against the bucket's capacity, so
//! batches add nothing to this. A request for more than the burst is a burst of its own size; it is only granted to one
//! who waited for it. A bucket starts empty, and what it brings is exact, so capacity that moves from one client to
//! another is not spent twice; only a bucket that ran over may lack a billionth of a unit. A rate of 0.3 a second gives
//! three permits in ten seconds, not two and not four, to one who comes at most the burst time late for each.
//!
//! When [`Limiter::allow`] returns, the allowance before it is over: every shard has been emptied into the bucket, and
//! the bucket truncated to the burst at the present rate. A shard is emptied by one swap of the word that permits are
//! taken from, so no permit of the old allowance can follow.
//!
//! Nothing flows in past the end of the allowance, and nothing is taken from the bucket after it: that path asks the
//! clock, and whoever finds that the end has passed voids the shards. The fast path does not ask. Its tokens were
//! admitted when their batch was taken, under the lease (assumption A9 of the protocol: the property is about
//! admission). They end when the driver says [`Allowance::NOTHING`] at the end of the lease; should the driver be late,
//! what can still be spent is what was in the shards, at most half of the burst.
//!
//! # Small rates
//!
//! Where the burst is less than a unit, one unit is saved up, unless the allowance says how units are had instead: all clients
//! together could spend what each has saved in one instant, so by default grantors say so. Then one is
//! [due](Allowance::due) at equal intervals, to be taken within the burst, by this one at other moments than by others; or each
//! is [asked for](Allowance::asked). What to ask for is the limiter's [wish](Limiter::wish): whoever has made it
//! [is woken](Limiter::call) when that is news, and [brings](Limiter::bring) what was sent. Who waits has it in order. Who
//! does not wait is denied, and finds a unit about a round trip later, if it comes again when it is told.
//!
//! # Costs that are known afterwards
//!
//! A request that turns out to have cost more than it was granted is [charged](Limiter::charge): the bucket owes it, so
//! that over any longer time no more is spent than came in, though it was spent too early.
//!
//! # Waiting
//!
//! [`Limiter::acquire`] waits in order, and while somebody waits nothing goes to the shards and nobody else is served,
//! so no one is overtaken. A request for more than the burst saves up at the head of the queue, and so pays its full
//! price in time.
//!
//! # Example
//!
//! ```
//! use lessor_client::Denied;
//! use lessor_client::internals::{allowance::Allowance, limiter::Limiter};
//! use lessor_proto::{Amount, Time};
//! use std::time::Duration;
//!
//! let limiter = Limiter::new(Limiter::DEFAULT_BURST);
//! let second = Time::from_nanos(1_000_000_000);
//! assert_eq!(limiter.try_acquire(1, || Time::ZERO), Err(Denied::NothingLeased));
//!
//! limiter.allow(Time::ZERO, Allowance::forever(Amount::from_units(200)));
//! assert_eq!(limiter.try_acquire(10, || second), Ok(())); // what comes in 50 ms
//! let denied = limiter.try_acquire(1, || second).unwrap_err();
//! assert_eq!(denied.retry_after(), Some(Duration::from_millis(5)));
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use lessor_proto::message::Unenforced;
use lessor_proto::{Amount, Time};

use self::attempts::Slots;
use self::burst::Burst;
use self::central::Central;
pub(crate) use self::hold::Hold;
use self::knocker::Knocker;
use self::meter::{Meter, MeterAnswer};
use self::shards::Shards;
pub use self::units::{SentUnits, UnitWish};
pub(crate) use crate::allowance::Allowance;
use crate::demand::haste::KnockGate;
use crate::demand::peak::Attempts;
use crate::denied::Denied;
use crate::passing::Passing;
use crate::second_limit::SecondLimit;
pub(crate) use crate::waiting::Waiting;

mod attempts;
mod beside;
mod burst;
mod central;
mod hold;
mod knocker;
mod meter;
mod shards;
#[cfg(test)]
mod tests;
mod units;
mod wait;

/// Grants permits within an allowance. Shared by reference, usually in an [`Arc`](std::sync::Arc).
#[derive(Debug)]
pub struct Limiter {
    shards: Shards,
    /// Keeps the bucket where there are no shards and nobody waits. It stands still while the lock is held to change
    /// something.
    meter: Meter,
    /// Nanoseconds before which the central bucket has no token, or [`NEVER`]. It errs only towards zero, and is zero
    /// while the meter runs.
    ready_at: AtomicU64,
    central: Mutex<Central>,
    waiting: Waiting,
    slots: Slots,
    knocker: Knocker,
    passing: Passing,
    second: SecondLimit<Limiter>,
}

/// There will be no token until the allowance changes.
const NEVER: u64 = u64::MAX;

/// The units that were asked of a limiter and that it gave, since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RateUsage {
    /// Granted, denied and waited for. Who asks again after a denial counts again.
    pub attempted: u64,
    /// Granted.
    pub granted: u64,
    /// Waited for at this moment; part of `attempted`.
    pub waiting: u64,
}

// === impl Limiter ===

impl Limiter {
    /// A twentieth of a second, where the grantor says nothing: the target sees at most 5 % more than the rate in any one
    /// second, and a thread may come 50 ms late without loss.
    pub const DEFAULT_BURST: Duration = Duration::from_millis(50);

    /// A limiter that grants nothing yet, and later at most what the rate brings in `burst` at once, or one unit if that is
    /// more. What the grantor allows to be saved up is less where that is [less](Allowance::burst); a limiter by
    /// [default](Limiter::default) goes by that alone.
    #[must_use]
    pub const fn new(burst: Duration) -> Limiter {
        Limiter::saving(Burst::Time(Some(burst)))
    }

    /// A limiter for a rate that is leased in whole parts of this size, of which many clients have some. For each part it may
    /// save up one unit, and no more than that, so that all of them together save up no more than there are parts. In any
    /// window `w` it grants at most `rate * w` units, and one for each part; nobody may wait in its queue for more. Once the
    /// lease has ended it grants nothing, however late it is told so.
    pub(crate) const fn in_parts(part: Amount) -> Limiter {
        Limiter::saving(Burst::Parts(part))
    }

    const fn saving(burst: Burst) -> Limiter {
        Limiter {
            shards: Shards::new(),
            meter: Meter::new(),
            ready_at: AtomicU64::new(NEVER),
            central: Mutex::new(Central::new(burst)),
            waiting: Waiting::DEFAULT,
            slots: Slots::new(),
            knocker: Knocker::new(),
            passing: Passing::new(),
            second: SecondLimit::new(),
        }
    }

    /// The same with other bounds on waiting.
    #[must_use]
    pub fn with_waiting(self, waiting: Waiting) -> Limiter {
        Limiter { waiting, ..self }
    }

    /// Replaces what may be spent. Tokens that were brought before stay, up to the burst of the new rate.
    pub fn allow(&self, now: Time, allowance: Allowance) {
        let mut central = self.take_over();
        central.allow(now, allowance, &self.shards);
        self.passing.set_at(allowance.unenforced, central.usage(&self.shards).granted);
        self.settle(central, now);
    }

    /// Takes a permit for `n` units, or says why not. Zero units are always granted.
    ///
    /// `now` is asked for the time only when this thread's shard is empty.
    ///
    /// # Errors
    ///
    /// See [`Denied`]. Nothing is taken then.
    #[inline]
    pub fn try_acquire(&self, n: u32, now: impl Fn() -> Time) -> Result<(), Denied> {
        if !self.shards.spend(n) {
            self.try_central(n, &now)?;
        }
        self.pass_on(n, now);
        Ok(())
    }

    /// Units that were granted although the lease would have refused them, as its grantor [lets everything
    /// pass](Allowance::unenforced).
    pub fn unenforced(&self) -> u64 {
        self.passing.units()
    }

    /// Units that were asked for while everything was let pass, those among them. This takes the central lock.
    pub fn unenforced_counts(&self) -> Unenforced {
        let central = self.lock();
        self.passing.counts_at(central.usage(&self.shards).granted)
    }

    /// Takes as much as can be had at once of `most` units, if that is at least `least`, and says how much it took. Where all
    /// can be had this is [`Limiter::try_acquire`]; else it asks for parts, some twenty times at the most. Of several who do
    /// so at the same time none may get all that there is.
    ///
    /// # Errors
    ///
    /// See [`Denied`], for `least` units. Nothing is taken then.
    pub fn try_acquire_between(&self, least: u32, most: u32, now: impl Fn() -> Time) -> Result<u32, Denied> {
        if least >= most {
            return self.try_acquire(most, now).map(|()| most);
        }
        let taken = match self.shards.spend(most) || self.draw(most, &now).is_ok() {
            true => Ok(most),
            false => self.take_parts(least, most, &now),
        };
        let missing = taken.as_ref().map_or(most, |taken| most - taken);
        let taken = if missing > 0 && self.let_pass(missing) { Ok(most) } else { taken };
        if let Ok(taken) = taken {
            self.pass_on(taken, now);
        }
        taken
    }

    /// Takes as much as there is of `most` units, which are not all there, if that is at least `least`.
    fn take_parts(&self, least: u32, most: u32, now: impl Fn() -> Time) -> Result<u32, Denied> {
        if !self.shards.spend(least) {
            self.draw_now(least, &now)?;
        }
        let mut taken = least;
        for step in (0..u32::BITS - (most - least).leading_zeros()).rev().map(|bit| 1 << bit) {
            if step <= most - taken && self.draw(step, &now).is_ok() {
                taken += step;
            }
        }
        self.shards.count_denied(most - taken);
        Ok(taken)
    }

    /// The number of units that can be taken at `now`, by one who is the only one to take any and does so before
    /// the allowance changes.
    ///
    /// # Errors
    ///
    /// See [`Denied`], if it is not even one.
    pub(crate) fn ready(&self, now: Time) -> Result<u32, Denied> {
        let mut central = self.take_over();
        let ready = central.room(1, u32::MAX, now, &self.shards);
        self.publish(&central, now);
        notify(central);
        ready
    }

    /// Counts `n` units that were wanted and not asked for here, as it was known that they would be denied.
    pub(crate) fn count_denied(&self, n: u32) {
        self.shards.count_denied(n);
    }

    /// Takes `n` units that were spent without having been granted, as what was granted as less turned out to cost so much.
    /// What is not there is owed: nobody is granted anything until as much has come in, a minute at the most; what would take
    /// longer is let off. Without a lease, or with one that has no limit, nothing is owed.
    ///
    /// There is no way to give back what was granted and not used: what came in meanwhile may have run over for it, and would
    /// be there twice.
    pub fn charge(&self, n: u32, now: Time) {
        let mut central = self.take_over();
        central.charge_late(n, now, &self.shards);
        self.publish(&central, now);
        drop(central);
        if let Some(second) = self.second.tried() {
            second.charge(n, now);
        }
    }

    /// Is woken whenever it has something to [ask for](Limiter::wish) that was not looked at.
    pub fn call(&self, notifier: Waker) {
        self.lock().call(notifier);
    }

    /// The units to ask the grantor for, where units are had so ([`Allowance::asked`]). The answer holds until the
    /// next such question.
    pub fn wish(&self, now: Time) -> Option<UnitWish> {
        self.lock().wish(now)
    }

    /// The grantor has sent units. Those who wait have them first.
    pub fn bring(&self, sent: SentUnits, now: Time) {
        let mut central = self.take_over();
        central.bring(sent, now);
        self.settle(central, now);
    }

    /// The units asked for and granted so far. This takes the central lock, so it is for now and then, not for
    /// every permit.
    #[must_use]
    pub fn usage(&self) -> RateUsage {
        self.lock().usage(&self.shards)
    }

    /// Counts attempts by the millisecond from here on, and wakes `waker` when something is refused or half of the bucket is
    /// gone: once, until the next [`Limiter::set_gate`].
    pub fn listen(&self, now: Time, waker: Waker) {
        self.slots.hear(now, self.usage().attempted);
        self.knocker.set_waker(waker);
    }

    /// Whether a refusal is told to who listens. While it is, or no answer to that has come, `acquire` refuses nobody for
    /// the rate at which it would wait too long.
    pub fn set_gate(&self, gate: KnockGate) {
        self.knocker.set(gate);
    }

    /// The attempts since this was last asked, by the millisecond; nothing if nobody listens.
    pub fn attempts(&self, now: Time) -> Vec<Attempts> {
        self.slots.take(now, self.usage().attempted)
    }

    /// Notes what was attempted in the millisecond that is over.
    #[cold]
    fn roll(&self, now: Time) {
        let mut central = self.take_over();
        let attempted = central.usage(&self.shards).attempted;
        let is_running_low = central.is_running_low(now, &self.shards);
        self.publish(&central, now);
        drop(central);
        self.slots.roll(now, attempted);
        if is_running_low {
            self.knocker.knock();
        }
    }

    #[inline(never)]
    fn try_central(&self, n: u32, now: impl Fn() -> Time) -> Result<(), Denied> {
        let drawn = self.draw_now(n, now);
        if drawn.is_err() && self.let_pass(n) { Ok(()) } else { drawn }
    }

    /// Lets `n` units pass that were counted as denied, if that is so with everything. Returns whether it is.
    #[cold]
    fn let_pass(&self, n: u32) -> bool {
        self.passing.lets(n)
    }

    fn draw_now(&self, n: u32, now: impl Fn() -> Time) -> Result<(), Denied> {
        let drawn = self.draw(n, now);
        if drawn.is_err() {
            self.shards.count_denied(n);
            self.knocker.knock();
        }
        drawn
    }

    fn draw(&self, n: u32, now: impl Fn() -> Time) -> Result<(), Denied> {
        let ready_at = self.ready_at.load(Ordering::Relaxed);
        if ready_at == NEVER {
            if self.slots.is_heard() && self.slots.is_over(now()) {
                self.roll(now());
            }
            return Err(Denied::NothingLeased);
        }
        let now = now();
        if self.slots.is_over(now) {
            self.roll(now);
        }
        if let Some(answer) = self.metered(n, now) {
            return answer;
        }
        // The common denial, without the lock. For more than one unit the answer must be computed.
        if n == 1 && now.as_nanos() < ready_at {
            return Err(Denied::Spent { retry_after: Time::from_nanos(ready_at).since(now) });
        }
        let mut central = self.lock();
        // Whoever had the lock before may have started the meter: to stop it again would send others here as well.
        if let Some(answer) = self.metered(n, now) {
            return answer;
        }
        self.stop_meter(&mut central);
        let drawn = central.draw(n, now, &self.shards);
        self.publish(&central, now);
        notify(central);
        drawn
    }

    /// The answer of the meter, if it runs and can tell.
    fn metered(&self, n: u32, now: Time) -> Option<Result<(), Denied>> {
        match self.meter.spend(n, now) {
            MeterAnswer::Granted => {
                self.shards.count_metered(n);
                Some(Ok(()))
            }
            MeterAnswer::Denied(denied) => Some(Err(denied)),
            MeterAnswer::AskTheBucket => None,
        }
    }

    /// Publishes what changed under the lock, lets go of it, and wakes who waits first.
    fn settle(&self, mut central: MutexGuard<'_, Central>, now: Time) {
        self.publish(&central, now);
        let waker = central.head_waker();
        notify(central);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Tells those who come without the lock how things stand, and lets the meter run if it may.
    fn publish(&self, central: &Central, now: Time) {
        if let Some(terms) = central.terms(now) {
            self.ready_at.store(0, Ordering::Relaxed);
            return self.meter.start(terms);
        }
        let ready_at = central.ready_at(now).map_or(NEVER, |at| at.as_nanos().min(NEVER - 1));
        self.ready_at.store(ready_at, Ordering::Relaxed);
    }

    /// The lock, with the bucket as it is: the meter stands still until [`Limiter::publish`].
    fn take_over(&self) -> MutexGuard<'_, Central> {
        let mut central = self.lock();
        self.stop_meter(&mut central);
        central
    }

    /// Stops the meter and takes what it counted out of the bucket.
    fn stop_meter(&self, central: &mut Central) {
        if let Some(spent) = self.meter.stop() {
            central.charge(spent);
        }
    }

    /// No code of others runs under this lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, Central> {
        self.central.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Limiter {
    fn default() -> Limiter {
        Limiter::saving(Burst::Time(None))
    }
}

/// Lets go of the lock, and says that there is something to ask for if there is.
fn notify(mut central: MutexGuard<'_, Central>) {
    let notifier = central.take_notifier();
    drop(central);
    if let Some(notifier) = notifier {
        notifier.wake();
    }
}
