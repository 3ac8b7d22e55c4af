//! The bucket behind the shards, and the queue of those who wait for it: all that stands under the limiter's lock.

use std::task::Waker;
use std::time::Duration;

use lessor_algorithms::bucket::Bucket;
use lessor_proto::{Amount, Time};

use super::burst::Burst;
use super::meter::MeterTerms;
use super::shards::{Shards, share};
use super::units::{SentUnits, UnitWish, Units};
use super::{Denied, RateUsage};
use crate::allowance::Allowance;
use crate::waiting::{Queue, Step, Ticket, Waiting};

/// Nothing is owed that would take longer to come in: a minute.
const MOST_OWED_NANOS: u64 = 60_000_000_000;
/// Of a smaller bucket it is not told that it is half empty.
const LEAST_TOLD: u64 = 4;
/// A batch leaves three quarters of the bucket to others.
const BATCH_PART: u64 = 4;

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
    tokens: TokenCounts,
    /// Units are due at equal intervals, and none is saved up.
    is_phased: bool,
    /// The units that the grantor is asked for one by one, and what came of that.
    units: Units,
    queue: Queue,
    /// Half of the bucket was there since the allowance last changed.
    was_half_full: bool,
}

/// The tokens that are not in the bucket.
#[derive(Debug)]
struct TokenCounts {
    /// At least as many tokens as are in the shards.
    lent: u64,
    /// Tokens that left the bucket and did not come back, without those that were metered.
    drawn: u64,
    /// Units whose waiters were refused or went away.
    given_up: u64,
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
            tokens: TokenCounts { lent: 0, drawn: 0, given_up: 0 },
            is_phased: false,
            units: Units::new(),
            queue: Queue::new(),
            was_half_full: false,
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
        let capacity = allowance.capacity.unwrap_or(Amount::ZERO);
        let rate = capacity.saturating_sub(allowance.asked).as_micros();
        let flowed = self.bucket.rate_micros() > 0;
        self.unlimited = allowance.capacity.is_none();
        self.until = allowance.until;
        self.burst_micros = self.burst.micros(rate, allowance.burst);
        self.share = match self.burst {
            Burst::Time(_) => share(rate, self.burst_micros),
            // What lies in shards could be spent a little after the end.
            Burst::Parts(_) => 0,
        };
        let due = allowance.due.filter(|_| self.burst.is_small(rate, allowance.burst));
        self.units.ask(allowance.asked.as_micros());
        let (before, was_phased) = (self.bucket.rate_micros(), self.is_phased);
        self.is_phased = due.is_some();
        self.bucket.set_lapsing(false);
        self.bucket.set(now.as_nanos(), rate, self.brim_micros(), allowance.until.as_nanos());
        if let Some(due) = due {
            // What says the same as before is only told a little earlier or later.
            if !(was_phased && before == rate && self.bucket.is_due_about(due.as_nanos())) {
                self.bucket.set_due(due.as_nanos(), flowed);
            }
        } else {
            if was_phased {
                // A unit that was due was ahead of what the lease had brought: none lies on top of what is saved up now.
                self.bucket.clear();
            }
            self.bucket.let_off(MOST_OWED_NANOS);
        }
        self.was_half_full = false;
        self.lapse();
    }

    /// Lets units lapse that are not taken in time, unless somebody waits for them.
    fn lapse(&mut self) {
        self.bucket.set_lapsing(self.is_phased && self.queue.is_empty());
    }

    /// The grantor has sent units. Who waits for them is to be woken.
    pub(super) fn bring(&mut self, sent: SentUnits, now: Time) {
        let waited = self.queue.units();
        self.units.bring(sent, now, waited);
    }

    /// Units that were waited for are of no use: who waits next is to be woken. Units of a lease that flows in are lost.
    pub(super) fn give_back(&mut self, n: u32) {
        self.tokens.drawn -= u64::from(n);
        self.tokens.given_up += u64::from(n);
        self.units.give_back(n, self.queue.units());
    }

    /// The burst that it was made for.
    pub(super) fn burst(&self) -> Burst {
        self.burst
    }

    pub(super) fn is_by_request(&self) -> bool {
        self.units.is_asking()
    }

    /// The units to ask the grantor for, if that is how units are had.
    pub(super) fn wish(&mut self, now: Time) -> Option<UnitWish> {
        let waited = if self.is_open(now) { self.queue.units() } else { 0 };
        self.units.wish(now, waited)
    }

    /// Whether there is something to ask for that was not looked at.
    pub(super) fn take_notifier(&mut self) -> Option<Waker> {
        self.units.take_notifier(self.queue.units())
    }

    /// Is woken when there is something to ask for.
    pub(super) fn call(&mut self, notifier: Waker) {
        self.units.call(notifier);
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
        self.tokens.drawn += u64::from(n);
    }

    /// Takes `n` tokens, and a batch for this thread's shard where there is plenty.
    pub(super) fn draw(&mut self, n: u32, now: Time, shards: &Shards) -> Result<(), Denied> {
        if !self.is_open(now) {
            self.void(shards);
            return Err(Denied::NothingLeased);
        }
        if !self.fetch(n, now, shards) {
            return Err(self.deny(n, now));
        }
        self.units.granted(now);
        Ok(())
    }

    /// The same, for who will wait otherwise: whether they were there.
    pub(super) fn fetch(&mut self, n: u32, now: Time, shards: &Shards) -> bool {
        if !self.is_open(now) {
            self.void(shards);
            return false;
        }
        self.refill(now);
        let is_taken = self.queue.is_empty() && self.take(n, shards);
        if is_taken {
            self.lend(shards);
        }
        is_taken
    }

    /// Units that can be taken at once, up to `most`; denied if that is less than `least`.
    pub(super) fn room(&mut self, least: u32, most: u32, now: Time, shards: &Shards) -> Result<u32, Denied> {
        if !self.is_open(now) {
            self.void(shards);
            return Err(Denied::NothingLeased);
        }
        self.refill(now);
        if !self.queue.is_empty() {
            return Err(self.deny(least, now));
        }
        if self.unlimited {
            return Ok(most);
        }
        if self.bucket.tokens() < u64::from(most) {
            self.collect(shards);
        }
        let there = self.bucket.tokens().saturating_add(self.units.there().into());
        match u32::try_from(there).unwrap_or(u32::MAX).min(most) {
            there if there < least => Err(self.deny(least, now)),
            there => Ok(there),
        }
    }

    /// Adds what came in, and drops units that were not taken in time.
    fn refill(&mut self, now: Time) {
        self.bucket.refill(now.as_nanos());
        self.units.drop_stale(now, self.queue.units());
    }

    /// Why not, and a wish for the next time where units are asked for.
    fn deny(&mut self, n: u32, now: Time) -> Denied {
        match self.units.try_later(n, now) {
            Some(retry_after) if n == 1 => Denied::Spent { retry_after },
            Some(_) if self.bucket.rate_micros() == 0 => Denied::AboveBurst { n, burst: 1 },
            _ => self.denial(n, now),
        }
    }

    /// Takes units for which there is [room](Central::room).
    pub(super) fn spend(&mut self, n: u32, shards: &Shards) {
        let is_taken = self.take(n, shards);
        assert!(is_taken, "{n} units are not there: the bucket has changed since it was asked");
    }

    /// Takes the last place in the queue for `n` tokens that [`Central::draw`] has just denied, if that makes sense.
    pub(super) fn join(&mut self, n: u32, now: Time, waiting: Waiting) -> Result<Ticket, Denied> {
        let Waiting { max_wait, max_waiters } = waiting;
        let wait = self.due(n).filter(|_| self.is_open(now)).map_or(Duration::ZERO, |due| due.since(now));
        let refused = if self.queue.len() >= max_waiters {
            Denied::TooManyWaiters { max_waiters }
        } else if wait > max_wait {
            Denied::TooLong { wait, max_wait }
        } else {
            self.units.waits_instead();
            let ticket = self.queue.join(n);
            self.bucket.set_capacity(self.brim_micros());
            self.lapse();
            return Ok(ticket);
        };
        self.tokens.given_up += u64::from(n);
        Err(refused)
    }

    /// Lets `ticket` in, or says when there is reason to ask again.
    pub(super) fn step(&mut self, ticket: Ticket, now: Time, waker: &Waker, shards: &Shards) -> Step<()> {
        if !self.is_open(now) {
            self.void(shards);
        } else if let Some(n) = self.queue.units_at_head(ticket) {
            self.refill(now);
            if self.take(n, shards) {
                self.queue.leave(ticket);
                self.bucket.set_capacity(self.brim_micros());
                self.lapse();
                return Step::Granted(());
            }
            self.queue.park(ticket, waker);
            let missing = n.saturating_sub(self.units.there());
            return Step::Wait(self.bucket.available_at(u64::from(missing)).map(Time::from_nanos));
        }
        self.queue.park(ticket, waker);
        Step::Wait(None)
    }

    /// Grants units that the bucket has not, and takes nothing of it.
    pub(super) fn grant_freely(&mut self, n: u32) {
        self.tokens.drawn += u64::from(n);
    }

    /// Lets the head of the queue in without taking anything of the bucket. Returns whether `ticket` is that.
    pub(super) fn let_in(&mut self, ticket: Ticket) -> bool {
        let Some(n) = self.queue.units_at_head(ticket) else { return false };
        self.queue.leave(ticket);
        self.grant_freely(n);
        self.bucket.set_capacity(self.brim_micros());
        self.lapse();
        true
    }

    /// `ticket` went away.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.tokens.given_up += self.queue.leave(ticket).map_or(0, u64::from);
        self.bucket.set_capacity(self.brim_micros());
        self.lapse();
    }

    pub(super) fn head_waker(&mut self) -> Option<Waker> {
        self.queue.head_waker()
    }

    /// Before then nobody needs to ask for a token: zero if there are some, `None` if an allowance must come first.
    pub(super) fn ready_at(&self, now: Time) -> Option<Time> {
        if !self.is_open(now) {
            None
        } else if self.unlimited
            || (self.queue.is_empty() && (self.tokens.lent > 0 || self.bucket.tokens() > 0))
        {
            Some(Time::ZERO)
        } else if self.units.is_asking() {
            // Whoever comes is to be asked for.
            Some(self.units.asked_until().min(self.due(1).unwrap_or(Time::MAX)))
        } else {
            self.due(1)
        }
    }

    /// The terms that a meter may go by until the next change here. Where there are shards, while somebody waits,
    /// and while something is owed, there is nothing to meter.
    pub(super) fn terms(&self, now: Time) -> Option<MeterTerms> {
        let low = self.share == 0 && !self.unlimited && self.queue.is_empty() && self.is_open(now);
        let low = low && !self.is_phased && !self.units.is_asking();
        if low && !self.bucket.is_indebted() { MeterTerms::of(&self.bucket, self.until) } else { None }
    }

    /// Takes back the bucket from a meter that counted so many billionths of a unit.
    pub(super) fn charge(&mut self, nanos: u64) {
        self.bucket.charge(nanos);
    }

    /// Whether less than half is left of a bucket of at least four units that had more. One that has just been allowed more has
    /// not filled yet.
    pub(super) fn is_running_low(&mut self, now: Time, shards: &Shards) -> bool {
        let burst = self.burst_micros / Amount::MICROS_PER_UNIT;
        if self.unlimited || !self.is_open(now) || burst < LEAST_TOLD {
            return false;
        }
        self.bucket.refill(now.as_nanos());
        let is_half_full = (self.bucket.tokens() + shards.total()) * 2 >= burst;
        std::mem::replace(&mut self.was_half_full, is_half_full) && !is_half_full
    }

    pub(super) fn usage(&self, shards: &Shards) -> RateUsage {
        let granted = self.tokens.drawn - shards.total() + shards.metered();
        let waiting = self.queue.units();
        RateUsage { attempted: granted + shards.denied() + self.tokens.given_up + waiting, granted, waiting }
    }

    fn is_open(&self, now: Time) -> bool {
        now < self.until
    }

    fn take(&mut self, n: u32, shards: &Shards) -> bool {
        let sent = if self.unlimited { 0 } else { n.min(self.units.there()) };
        let (n, rest) = (u64::from(n), u64::from(n - sent));
        if !self.unlimited && !self.bucket.take(rest) {
            self.collect(shards);
            if !self.bucket.take(rest) {
                return false;
            }
        }
        self.units.take(sent);
        self.tokens.drawn += n;
        true
    }

    /// Fills this thread's shard up, and notes what all shards hold: it cannot grow until the next time.
    fn lend(&mut self, shards: &Shards) {
        let room = self.share.saturating_sub(shards.in_mine());
        let batch = if self.unlimited { room } else { room.min(self.bucket.tokens() / BATCH_PART) };
        if batch > 0 && (self.unlimited || self.bucket.take(batch)) {
            shards.lend(batch);
            self.tokens.drawn += batch;
        } else if self.tokens.lent == 0 {
            return;
        }
        self.tokens.lent = shards.total();
        self.bucket.set_aside(self.tokens.lent);
    }

    /// Brings back what the shards hold.
    fn collect(&mut self, shards: &Shards) {
        let back = self.recall(shards);
        self.bucket.put_back(back);
    }

    /// The lease has ended: what the shards hold is void.
    fn void(&mut self, shards: &Shards) {
        self.units.ask(0);
        self.recall(shards);
    }

    fn recall(&mut self, shards: &Shards) -> u64 {
        if self.tokens.lent == 0 {
            return 0;
        }
        let back = shards.collect();
        self.tokens.drawn -= back;
        self.tokens.lent = 0;
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
