//! The bucket behind the shards, and the queue of those who wait for it: all that stands under the limiter's lock.

use std::task::Waker;
use std::time::Duration;

use lessor_algorithms::bucket::Bucket;
use lessor_proto::{Amount, Time};

use super::meter::Terms;
use super::shards::{SHARDS, Shards};
use super::{Denied, Limiter, Usage};
use crate::allowance::Allowance;
use crate::waiting::{Queue, Refused, Step, Ticket, Waiting};

/// Tokens for a shard while there is no limit.
const UNLIMITED_SHARE: u64 = 1024;
/// A shard holds what the rate brings in this many nanoseconds, at most.
const SHARE_NANOS: u128 = 1_000_000;
/// All shards together hold this part of the burst at most.
const SHARDS_PART: u64 = 2;
/// With less in a shard than this, there are none: every other permit would go to the bucket anyway.
const MIN_SHARE: u64 = 2;
/// Nothing is owed that would take longer to come in: a minute.
const MOST_OWED_NANOS: u64 = 60_000_000_000;
/// A batch leaves three quarters of the bucket to others.
const BATCH_PART: u64 = 4;

/// How much may be saved up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Burst {
    /// What the rate brings in this time, or less if the grantor said less; absent: as the grantor said. Where that is less
    /// than a unit, one.
    Time(Option<Duration>),
    /// One unit for each whole part of this size that the rate has, and nothing without a whole one.
    Parts(Amount),
}

#[derive(Debug)]
pub(super) struct Central {
    bucket: Bucket,
    /// From then on nothing is given.
    until: Time,
    unlimited: bool,
    burst: Burst,
    /// The burst, in millionths of a unit; the bucket's capacity unless somebody waits for more.
    burst_micros: u64,
    /// The most tokens one shard may hold.
    share: u64,
    /// At least as many tokens as are in the shards.
    lent: u64,
    /// Tokens that left the bucket and did not come back, without those that were metered.
    drawn: u64,
    /// Units whose waiters were refused or went away.
    given_up: u64,
    queue: Queue,
}

// === impl Central ===

impl Central {
    pub(super) const fn new(burst: Burst) -> Central {
        Central {
            bucket: Bucket::empty(),
            until: Time::ZERO,
            unlimited: false,
            burst,
            burst_micros: 0,
            share: 0,
            lent: 0,
            drawn: 0,
            given_up: 0,
            queue: Queue::new(),
        }
    }

    /// Replaces what may be spent. What the shards hold goes back into the bucket, and with it is truncated.
    pub(super) fn allow(&mut self, now: Time, allowance: Allowance, shards: &Shards) {
        if self.is_open(now) {
            self.bucket.refill(now.as_nanos());
            self.collect(shards);
        } else {
            self.void(shards);
        }
        let rate = allowance.capacity.unwrap_or(Amount::ZERO).as_micros();
        self.unlimited = allowance.capacity.is_none();
        self.until = allowance.until;
        self.burst_micros = self.burst.micros(rate, allowance.burst);
        self.share = match self.burst {
            Burst::Time(_) => share(rate, self.burst_micros),
            // What lies in shards could be spent a little after the end.
            Burst::Parts(_) => 0,
        };
        self.bucket.set(now.as_nanos(), rate, self.brim_micros(), allowance.until.as_nanos());
        self.bucket.let_off(MOST_OWED_NANOS);
    }

    /// Takes units that were spent without being taken, whether they are there or not. Without a lease they are lost.
    pub(super) fn charge_late(&mut self, n: u32, now: Time, shards: &Shards) {
        if !self.is_open(now) {
            return self.void(shards);
        }
        if !self.unlimited {
            self.bucket.refill(now.as_nanos());
            self.collect(shards);
            self.bucket.owe(n.into(), MOST_OWED_NANOS);
        }
        self.drawn += u64::from(n);
    }

    /// Takes `n` tokens, and a batch for this thread's shard where there is plenty.
    pub(super) fn draw(&mut self, n: u32, now: Time, shards: &Shards) -> Result<(), Denied> {
        if !self.is_open(now) {
            self.void(shards);
            return Err(Denied::NothingLeased);
        }
        self.bucket.refill(now.as_nanos());
        if !self.queue.is_empty() || !self.take(n, shards) {
            return Err(self.denial(n, now));
        }
        self.lend(shards);
        Ok(())
    }

    /// Units that can be taken at once, up to `most`; denied if that is less than `least`.
    pub(super) fn room(&mut self, least: u32, most: u32, now: Time, shards: &Shards) -> Result<u32, Denied> {
        if !self.is_open(now) {
            self.void(shards);
            return Err(Denied::NothingLeased);
        }
        self.bucket.refill(now.as_nanos());
        if !self.queue.is_empty() {
            return Err(self.denial(least, now));
        }
        if self.unlimited {
            return Ok(most);
        }
        if self.bucket.tokens() < u64::from(most) {
            self.collect(shards);
        }
        match u32::try_from(self.bucket.tokens()).unwrap_or(u32::MAX).min(most) {
            there if there < least => Err(self.denial(least, now)),
            there => Ok(there),
        }
    }

    /// Takes units for which there is [room](Central::room).
    pub(super) fn spend(&mut self, n: u32, shards: &Shards) {
        let is_taken = self.take(n, shards);
        assert!(is_taken, "{n} units are not there: the bucket has changed since it was asked");
    }

    /// Takes the last place in the queue for `n` tokens that [`Central::draw`] has just denied, if that makes sense.
    pub(super) fn join(&mut self, n: u32, now: Time, waiting: Waiting) -> Result<Ticket, Refused> {
        let Waiting { max_wait, max_waiters } = waiting;
        let wait = self.due(n).filter(|_| self.is_open(now)).map_or(Duration::ZERO, |due| due.since(now));
        let refused = if self.queue.len() >= max_waiters {
            Refused::TooManyWaiters { max_waiters }
        } else if wait > max_wait {
            Refused::TooLong { wait, max_wait }
        } else {
            let ticket = self.queue.join(n);
            self.bucket.set_capacity(self.brim_micros());
            return Ok(ticket);
        };
        self.given_up += u64::from(n);
        Err(refused)
    }

    /// Lets `ticket` in, or says when there is reason to ask again.
    pub(super) fn step(&mut self, ticket: Ticket, now: Time, waker: &Waker, shards: &Shards) -> Step<()> {
        if !self.is_open(now) {
            self.void(shards);
        } else if let Some(n) = self.queue.units_at_head(ticket) {
            self.bucket.refill(now.as_nanos());
            if self.take(n, shards) {
                self.queue.leave(ticket);
                self.bucket.set_capacity(self.brim_micros());
                return Step::Granted(());
            }
            self.queue.park(ticket, waker);
            return Step::Wait(self.bucket.available_at(u64::from(n)).map(Time::from_nanos));
        }
        self.queue.park(ticket, waker);
        Step::Wait(None)
    }

    /// `ticket` went away.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.given_up += self.queue.leave(ticket).map_or(0, u64::from);
        self.bucket.set_capacity(self.brim_micros());
    }

    pub(super) fn head_waker(&mut self) -> Option<Waker> {
        self.queue.head_waker()
    }

    /// Before then nobody needs to ask for a token: zero if there are some, `None` if an allowance must come first.
    pub(super) fn ready_at(&self, now: Time) -> Option<Time> {
        if !self.is_open(now) {
            None
        } else if self.unlimited || (self.queue.is_empty() && (self.lent > 0 || self.bucket.tokens() > 0)) {
            Some(Time::ZERO)
        } else {
            self.due(1)
        }
    }

    /// What a meter may go by until the next change here. Where there are shards, while somebody waits, and while something
    /// is owed, there is nothing to meter.
    pub(super) fn terms(&self, now: Time) -> Option<Terms> {
        let low = self.share == 0 && !self.unlimited && self.queue.is_empty() && self.is_open(now);
        if low && !self.bucket.is_indebted() { Terms::of(&self.bucket, self.until) } else { None }
    }

    /// Takes back the bucket from a meter that counted so many billionths of a unit.
    pub(super) fn charge(&mut self, nanos: u64) {
        self.bucket.charge(nanos);
    }

    pub(super) fn usage(&self, shards: &Shards) -> Usage {
        let granted = self.drawn - shards.total() + shards.metered();
        let waiting = self.queue.units();
        Usage { attempted: granted + shards.denied() + self.given_up + waiting, granted, waiting }
    }

    fn is_open(&self, now: Time) -> bool {
        now < self.until
    }

    fn take(&mut self, n: u32, shards: &Shards) -> bool {
        let n = u64::from(n);
        if !self.unlimited && !self.bucket.take(n) {
            self.collect(shards);
            if !self.bucket.take(n) {
                return false;
            }
        }
        self.drawn += n;
        true
    }

    /// Fills this thread's shard up, and notes what all shards hold: it cannot grow until the next time.
    fn lend(&mut self, shards: &Shards) {
        let room = self.share.saturating_sub(shards.in_mine());
        let batch = if self.unlimited { room } else { room.min(self.bucket.tokens() / BATCH_PART) };
        if batch > 0 && (self.unlimited || self.bucket.take(batch)) {
            shards.lend(batch);
            self.drawn += batch;
        } else if self.lent == 0 {
            return;
        }
        self.lent = shards.total();
        self.bucket.set_aside(self.lent);
    }

    /// Brings back what the shards hold.
    fn collect(&mut self, shards: &Shards) {
        let back = self.recall(shards);
        self.bucket.put_back(back);
    }

    /// The lease has ended: what the shards hold is void.
    fn void(&mut self, shards: &Shards) {
        self.recall(shards);
    }

    fn recall(&mut self, shards: &Shards) -> u64 {
        if self.lent == 0 {
            return 0;
        }
        let back = shards.collect();
        self.drawn -= back;
        self.lent = 0;
        self.bucket.set_aside(0);
        back
    }

    fn denial(&self, n: u32, now: Time) -> Denied {
        let above_burst = u64::from(n) > self.burst_micros / Amount::MICROS_PER_UNIT;
        match self.due(n) {
            None if self.unlimited => Denied::Spent { retry_after: Duration::ZERO },
            None => Denied::NothingLeased,
            Some(_) if above_burst => {
                Denied::AboveBurst { n, burst: self.burst_micros / Amount::MICROS_PER_UNIT }
            }
            Some(due) => Denied::Spent { retry_after: due.since(now) },
        }
    }

    /// When `n` more tokens than are waited for will be there.
    fn due(&self, n: u32) -> Option<Time> {
        let tokens = self.queue.units().saturating_add(u64::from(n));
        self.bucket.available_at(tokens).map(Time::from_nanos)
    }

    /// The capacity of the bucket: the burst, or what the head of the queue saves for.
    fn brim_micros(&self) -> u64 {
        let head = self.queue.head_units().map_or(Amount::ZERO, |n| Amount::from_units(u64::from(n)));
        if self.burst_micros == 0 { 0 } else { self.burst_micros.max(head.as_micros()) }
    }
}

// === impl Burst ===

impl Burst {
    /// In millionths of a unit, where the grantor `said` so much; nothing without a rate.
    fn micros(self, rate: u64, said: Option<Duration>) -> u64 {
        match self {
            Burst::Time(_) if rate == 0 => 0,
            Burst::Time(own) => match brings(rate, agreed(own, said)) {
                // Units are indivisible. What comes in while one lies there is kept, so that it may be fetched so late.
                burst if burst < Amount::MICROS_PER_UNIT => burst + Amount::MICROS_PER_UNIT,
                burst => burst,
            },
            Burst::Parts(part) => (rate / part.as_micros().max(1)).saturating_mul(Amount::MICROS_PER_UNIT),
        }
    }
}

/// What may be saved up: less than the grantor `said` if the program has asked for less, and never more.
fn agreed(own: Option<Duration>, said: Option<Duration>) -> Duration {
    own.into_iter().chain(said).min().unwrap_or(Limiter::DEFAULT_BURST)
}

/// What `rate` brings in that time, in millionths of a unit.
fn brings(rate: u64, time: Duration) -> u64 {
    let income = u128::from(rate).saturating_mul(time.as_nanos()) / 1_000_000_000;
    u64::try_from(income).unwrap_or(u64::MAX)
}

/// How many tokens a shard may hold.
fn share(rate: u64, burst_micros: u64) -> u64 {
    if rate == 0 {
        return UNLIMITED_SHARE;
    }
    let income = u128::from(rate) * SHARE_NANOS / 1_000_000_000 / u128::from(Amount::MICROS_PER_UNIT);
    let part = burst_micros / Amount::MICROS_PER_UNIT / (SHARDS as u64 * SHARDS_PART);
    let share = u64::try_from(income).unwrap_or(u64::MAX).min(part);
    if share < MIN_SHARE { 0 } else { share }
}
