//! A token bucket on integers: so many units a second, so many at once, nothing past the end.
//!
//! The level is kept in *grains*, of which a unit has 10^15: a rate of one millionth of a unit a second brings one
//! grain a nanosecond. Every product of a rate and a time is therefore a whole number, and nothing is rounded, ever: a
//! bucket of 0.3 units a second gives three units in ten seconds and three million in ten million, however often it is
//! asked, as long as it is asked before it runs over.
//!
//! A bucket starts empty. What it gave in any window of length `w` is at most `rate * w + capacity`, and that stays
//! true when rates move between buckets, because a raise brings tokens at the higher rate instead of bringing them at
//! once.
//!
//! Tokens can be *set aside*: taken out to be spent elsewhere, a little later. The bucket then fills up only to its
//! capacity less what is aside, so that both together never exceed the capacity.
//!
//! An amount that was spent already and not taken out can be *owed*: the bucket pays for it first, from what is in and
//! then from all that comes in. So it holds nothing as long as it owes anything, and what it gave and what was spent
//! besides are together never more than came in, and what it owes.
//!
//! A bucket may *lapse*: instead of being full, it loses a whole unit when it would run over, and keeps the fraction. With a
//! capacity of a unit and what comes in within a while, each unit is there for that while and then gone, and the moments at
//! which units come in do not move, whether they are taken or not: they are *due* at equal intervals from one of them.
//!
//! Somebody else can keep the bucket for a while: from what it holds, when that was counted, its rate and its capacity
//! all that follows can be computed elsewhere, and in the end the bucket is *charged* with what was spent there.

#[cfg(test)]
mod tests;

/// Grains in a unit: millionths times nanoseconds in a second.
const UNIT: u128 = 1_000_000 * 1_000_000_000;
/// Grains in a millionth of a unit.
const MICRO: u128 = 1_000_000_000;
/// Grains in a billionth of a unit.
pub const NANO: u64 = 1_000_000;

/// A token bucket. Times are nanoseconds on any clock; times that go backwards bring nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// Millionths of a unit a second, or grains a nanosecond.
    rate: u64,
    /// The most the level and what is aside may be together, in grains.
    capacity: u128,
    /// In grains.
    level: u128,
    /// The amount that was spent before it came in, in grains; while there is any, the level is zero.
    owed: u128,
    /// Tokens that were taken out and may not have been spent yet, in grains.
    aside: u128,
    /// Up to when the level is counted.
    at: u64,
    /// From when on nothing is added.
    end: u64,
    /// Whole units are lost where it would run over.
    lapses: bool,
}

// === impl Bucket ===

impl Bucket {
    /// A bucket without content and without inflow.
    #[must_use]
    pub const fn empty() -> Bucket {
        Bucket { rate: 0, capacity: 0, level: 0, owed: 0, aside: 0, at: 0, end: 0, lapses: false }
    }

    /// From `now` until `end` brings `rate_micros` millionths of a unit a second, up to `capacity_micros` millionths.
    ///
    /// What is in the bucket stays, truncated to the capacity, and so does what is owed; after an end, both are void.
    pub fn set(&mut self, now: u64, rate_micros: u64, capacity_micros: u64, end: u64) {
        self.refill(now);
        if now >= self.end {
            (self.level, self.owed) = (0, 0);
        }
        self.rate = rate_micros;
        self.end = end;
        self.at = self.at.max(now);
        self.set_capacity(capacity_micros);
    }

    /// Takes another capacity, in millionths of a unit; what does not fit is lost.
    pub fn set_capacity(&mut self, capacity_micros: u64) {
        self.capacity = u128::from(capacity_micros) * MICRO;
        self.level = self.level.min(self.brim());
    }

    /// Whether it loses whole units where it would run over.
    pub fn set_lapsing(&mut self, lapses: bool) {
        self.lapses = lapses;
    }

    /// A unit is due at that moment, and one every so long before and after, as the rate says: what is in is what has come
    /// in of the next one. If one was taken that may not have been due, `skip` the next.
    pub fn set_due(&mut self, due: u64, skip: bool) {
        if self.rate == 0 {
            return;
        }
        let rate = u128::from(self.rate);
        let missing = match due.checked_sub(self.at) {
            Some(ahead) => u128::from(ahead) * rate % UNIT,
            None => (UNIT - u128::from(self.at - due) * rate % UNIT) % UNIT,
        };
        let level = (UNIT - missing) % UNIT;
        (self.level, self.owed) = if skip { (0, UNIT - level) } else { (level, 0) };
        self.level = self.level.min(self.brim());
    }

    /// Whether a unit is due about then, give or take half of what the capacity is above a unit.
    #[must_use]
    pub fn is_due_about(&self, due: u64) -> bool {
        let mut other = self.clone();
        other.aside = 0;
        other.set_due(due, false);
        let mine = (self.level + UNIT - self.owed.min(UNIT)) % UNIT;
        let apart = mine.abs_diff(other.level % UNIT);
        apart.min(UNIT - apart) <= self.capacity.saturating_sub(UNIT) / 2
    }

    /// Sets the number of tokens that are out and not known to be spent. It may fall without notice; where it
    /// rises, they must have been taken out of the bucket.
    pub fn set_aside(&mut self, tokens: u64) {
        self.aside = u128::from(tokens) * UNIT;
        self.level = self.level.min(self.brim());
    }

    /// Adds what came in until `now`.
    pub fn refill(&mut self, now: u64) {
        let until = now.min(self.end);
        if until > self.at {
            let income = u128::from(self.rate) * u128::from(until - self.at);
            self.add(income);
            self.at = until;
        }
    }

    /// Whole tokens that are in.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        u64::try_from(self.level / UNIT).unwrap_or(u64::MAX)
    }

    /// Takes `tokens` out if they are there.
    #[must_use]
    pub fn take(&mut self, tokens: u64) -> bool {
        let cost = u128::from(tokens) * UNIT;
        let enough = self.level >= cost;
        if enough {
            self.level -= cost;
        }
        enough
    }

    /// Loses what is in; what is owed stays.
    pub fn clear(&mut self) {
        self.level = 0;
    }

    /// Puts `tokens` back that were taken out and not spent; what does not fit is lost.
    pub fn put_back(&mut self, tokens: u64) {
        self.add(u128::from(tokens) * UNIT);
    }

    /// Takes out `tokens` that were spent already: from what is in, and the rest is owed, up to what comes in within
    /// `most_nanos`; what is more is let off.
    pub fn owe(&mut self, tokens: u64, most_nanos: u64) {
        let cost = u128::from(tokens) * UNIT;
        let paid = cost.min(self.level);
        self.level -= paid;
        self.owed = self.owed.saturating_add(cost - paid);
        self.let_off(most_nanos);
    }

    /// Lets off what is owed beyond what comes in within `most_nanos`.
    pub fn let_off(&mut self, most_nanos: u64) {
        self.owed = self.owed.min(u128::from(self.rate) * u128::from(most_nanos));
    }

    /// Whether anything is owed.
    #[must_use]
    pub fn is_indebted(&self) -> bool {
        self.owed > 0
    }

    /// Takes out what was spent elsewhere, in billionths of a unit, from what is in and from the income since.
    ///
    /// The bucket then stands at the first moment at which all of that had come in, if it was not all in already.
    pub fn charge(&mut self, nanos: u64) {
        let cost = u128::from(nanos) * u128::from(NANO);
        let owed = cost.saturating_sub(self.level);
        self.level = self.level.saturating_sub(cost);
        if owed > 0 && self.rate > 0 {
            let wait = owed.div_ceil(u128::from(self.rate));
            self.level = wait * u128::from(self.rate) - owed;
            self.at = self.at.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX));
        }
    }

    /// The level, in grains, of which a unit has 10^15.
    #[must_use]
    pub fn grains(&self) -> u128 {
        self.level
    }

    /// Up to when the level is counted.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Millionths of a unit a second, or grains a nanosecond.
    #[must_use]
    pub fn rate_micros(&self) -> u64 {
        self.rate
    }

    /// The most that can be in, in millionths of a unit.
    #[must_use]
    pub fn capacity_micros(&self) -> u64 {
        u64::try_from(self.brim() / MICRO).unwrap_or(u64::MAX)
    }

    /// When `tokens` would be there if nobody took any, the end did not come and the bucket had no brim: the moment for
    /// whoever is promised them to come back. `None` without inflow.
    #[must_use]
    pub fn available_at(&self, tokens: u64) -> Option<u64> {
        let missing = (u128::from(tokens) * UNIT).saturating_add(self.owed).saturating_sub(self.level);
        if missing == 0 {
            return Some(self.at);
        }
        if self.rate == 0 {
            return None;
        }
        let nanos = missing.div_ceil(u128::from(self.rate));
        Some(self.at.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Pays what is owed, and puts the rest in; what does not fit is lost.
    fn add(&mut self, grains: u128) {
        let paid = grains.min(self.owed);
        self.owed -= paid;
        let level = self.level.saturating_add(grains - paid);
        let over = level.saturating_sub(self.brim());
        let lost = if self.lapses { over.div_ceil(UNIT) * UNIT } else { over };
        self.level = level.saturating_sub(lost);
    }

    /// The greatest level to which it may rise.
    fn brim(&self) -> u128 {
        self.capacity.saturating_sub(self.aside)
    }
}

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket::empty()
    }
}
