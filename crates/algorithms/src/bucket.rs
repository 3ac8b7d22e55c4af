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
//! Somebody else can keep the bucket for a while: from what it holds, when that was counted, its rate and its capacity
//! all that follows can be computed elsewhere, and in the end the bucket is *charged* with what was spent there.

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
    /// Tokens that were taken out and may not have been spent yet, in grains.
    aside: u128,
    /// Up to when the level is counted.
    at: u64,
    /// From when on nothing is added.
    end: u64,
}

// === impl Bucket ===

impl Bucket {
    /// A bucket without content and without inflow.
    #[must_use]
    pub const fn empty() -> Bucket {
        Bucket { rate: 0, capacity: 0, level: 0, aside: 0, at: 0, end: 0 }
    }

    /// From `now` until `end` brings `rate_micros` millionths of a unit a second, up to `capacity_micros` millionths.
    ///
    /// What is in the bucket stays, truncated to the capacity; after an end, what was left is void.
    pub fn set(&mut self, now: u64, rate_micros: u64, capacity_micros: u64, end: u64) {
        self.refill(now);
        if now >= self.end {
            self.level = 0;
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

    /// So many tokens are out and not known to be spent. Their number may fall without notice; where it rises, they
    /// must have been taken out of the bucket.
    pub fn set_aside(&mut self, tokens: u64) {
        self.aside = u128::from(tokens) * UNIT;
        self.level = self.level.min(self.brim());
    }

    /// Adds what came in until `now`.
    pub fn refill(&mut self, now: u64) {
        let until = now.min(self.end);
        if until > self.at {
            let income = u128::from(self.rate) * u128::from(until - self.at);
            self.level = self.level.saturating_add(income).min(self.brim());
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

    /// Puts `tokens` back that were taken out and not spent; what does not fit is lost.
    pub fn put_back(&mut self, tokens: u64) {
        self.level = (self.level + u128::from(tokens) * UNIT).min(self.brim());
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

    /// What is in, in grains, of which a unit has 10^15.
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
        let missing = (u128::from(tokens) * UNIT).saturating_sub(self.level);
        if missing == 0 {
            return Some(self.at);
        }
        if self.rate == 0 {
            return None;
        }
        let nanos = missing.div_ceil(u128::from(self.rate));
        Some(self.at.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// How high the level may rise.
    fn brim(&self) -> u128 {
        self.capacity.saturating_sub(self.aside)
    }
}

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket::empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MILLI: u64 = 1_000_000;

    /// A bucket of `rate_micros` from 0 on, without end.
    fn bucket(rate_micros: u64, capacity_micros: u64) -> Bucket {
        let mut bucket = Bucket::empty();
        bucket.set(0, rate_micros, capacity_micros, u64::MAX);
        bucket
    }

    /// Takes all there is, at once and then every `step` until `end`.
    fn drain(bucket: &mut Bucket, step: u64, end: u64) -> u64 {
        let mut taken = 0;
        for now in (0..=end).step_by(usize::try_from(step).unwrap()) {
            bucket.refill(now);
            let there = bucket.tokens();
            assert!(bucket.take(there));
            taken += there;
        }
        taken
    }

    #[test]
    fn rates_from_a_fraction_to_a_million_million_are_exact() {
        assert_eq!(drain(&mut bucket(300_000, 1_003_000), MILLI, 10 * SECOND), 3);
        assert_eq!(drain(&mut bucket(300_000, 1_003_000), MILLI, 100 * SECOND), 30);
        assert_eq!(drain(&mut bucket(300_000_000_000, 3_000_000_000), MILLI, 10 * SECOND), 3_000_000);
        let huge = 1_000_000_000_000 * 1_000_000;
        assert_eq!(drain(&mut bucket(huge, huge / 100), MILLI, 10 * SECOND), 10_000_000_000_000);
    }

    #[test]
    fn starts_empty_and_fills_to_the_brim() {
        let mut bucket = bucket(100_000_000, 5_000_000);
        assert_eq!(bucket.tokens(), 0);
        bucket.refill(3600 * SECOND);
        assert_eq!(bucket.tokens(), 5);
        assert!(!bucket.take(6));
        assert!(bucket.take(5));
        assert!(!bucket.take(1));
    }

    #[test]
    fn shrinking_truncates() {
        let mut bucket = bucket(100_000_000, 100_000_000);
        bucket.set(SECOND, 10_000_000, 10_000_000, u64::MAX);
        assert_eq!(bucket.tokens(), 10);
    }

    #[test]
    fn nothing_comes_past_the_end_and_a_lease_later_starts_empty() {
        let mut bucket = Bucket::empty();
        bucket.set(0, 10_000_000, 100_000_000, SECOND);
        bucket.refill(60 * SECOND);
        assert_eq!(bucket.tokens(), 10);
        bucket.set(60 * SECOND, 10_000_000, 100_000_000, 120 * SECOND);
        assert_eq!(bucket.tokens(), 0);
        bucket.refill(61 * SECOND);
        assert_eq!(bucket.tokens(), 10);
    }

    #[test]
    fn clocks_that_go_backwards_bring_nothing() {
        let mut bucket = bucket(1_000_000, 10_000_000);
        bucket.refill(5 * SECOND);
        bucket.refill(2 * SECOND);
        bucket.refill(5 * SECOND);
        assert_eq!(bucket.tokens(), 5);
        bucket.set(2 * SECOND, 1_000_000, 10_000_000, u64::MAX);
        bucket.refill(5 * SECOND);
        assert_eq!(bucket.tokens(), 5);
    }

    #[test]
    fn tells_when_tokens_will_be_there() {
        let mut bucket = bucket(300_000, 1_000_000);
        assert_eq!(bucket.available_at(1), Some(3_333_333_334));
        assert_eq!(bucket.available_at(3), Some(10 * SECOND));
        bucket.refill(3_333_333_333);
        assert_eq!(bucket.tokens(), 0);
        bucket.refill(3_333_333_334);
        assert_eq!(bucket.tokens(), 1);
        assert_eq!(Bucket::empty().available_at(1), None);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut bucket = bucket(u64::MAX, u64::MAX);
        bucket.refill(u64::MAX);
        bucket.put_back(u64::MAX);
        assert_eq!(bucket.tokens(), u64::MAX / 1_000_000);
        assert!(bucket.available_at(u64::MAX).is_some());
    }

    #[test]
    fn a_charge_is_paid_from_what_is_in_and_then_from_what_comes() {
        let mut bucket = bucket(300_000, 5_000_000);
        bucket.refill(10 * SECOND);
        bucket.charge(1_500_000_000);
        assert_eq!((bucket.at(), bucket.grains()), (10 * SECOND, UNIT * 3 / 2));
        bucket.charge(1_500_000_001);
        // 10^6 grains are missing, and 300,000 come in a nanosecond.
        assert_eq!((bucket.at(), bucket.grains()), (10 * SECOND + 4, 200_000));
        bucket.refill(20 * SECOND);
        assert_eq!(bucket.grains(), 3 * UNIT - u128::from(NANO));
        let mut dry = Bucket::empty();
        dry.charge(u64::MAX);
        assert_eq!(dry, Bucket::empty());
    }

    #[test]
    fn what_is_aside_takes_room() {
        let mut bucket = bucket(10_000_000, 10_000_000);
        bucket.refill(SECOND);
        assert!(bucket.take(4));
        bucket.set_aside(4);
        bucket.refill(9 * SECOND);
        assert_eq!(bucket.tokens(), 6);
        bucket.set_aside(0);
        assert_eq!(bucket.tokens(), 6);
        bucket.refill(10 * SECOND);
        assert_eq!(bucket.tokens(), 10);
    }

    proptest! {
        // In any window, not only in those that begin at zero.
        #[test]
        fn never_gives_more_than_the_rate_and_the_capacity(
            rate in 1u64..10_000_000_000,
            capacity in 1_000_000u64..1_000_000_000,
            steps in prop::collection::vec((0u64..SECOND, 0u64..100), 1..60),
        ) {
            let mut bucket = bucket(rate, capacity);
            let (mut now, mut taken) = (0, Vec::new());
            for (wait, want) in steps {
                now += wait;
                bucket.refill(now);
                let got = bucket.tokens().min(want);
                prop_assert!(bucket.take(got));
                taken.push((now, got));
            }
            for first in 0..taken.len() {
                let mut sum = 0;
                for &(at, got) in &taken[first..] {
                    sum += u128::from(got) * UNIT;
                    let window = u128::from(at - taken[first].0);
                    prop_assert!(sum <= u128::from(rate) * window + u128::from(capacity) * MICRO);
                }
            }
        }

        #[test]
        fn asking_often_changes_nothing(
            rate in 1u64..u64::MAX,
            mut times in prop::collection::vec(0u64..1 << 50, 1..50),
        ) {
            times.sort_unstable();
            let (mut often, mut once) = (bucket(rate, u64::MAX), bucket(rate, u64::MAX));
            for &now in &times {
                often.refill(now);
            }
            once.refill(times[times.len() - 1]);
            prop_assert_eq!(often, once);
        }

        #[test]
        fn available_at_is_the_first_moment(rate in 1u64..100_000_000, tokens in 101u64..1000, begun in 0..SECOND) {
            let mut bucket = bucket(rate, 1_000_000_000);
            bucket.refill(begun);
            let at = bucket.available_at(tokens).unwrap();
            bucket.refill(at - 1);
            prop_assert!(bucket.tokens() < tokens);
            bucket.refill(at);
            prop_assert!(bucket.tokens() >= tokens);
        }
    }
}
