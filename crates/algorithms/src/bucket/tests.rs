//! The token bucket against a plain model.

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

#[test]
fn what_is_owed_is_paid_first_and_idle_time_pays_it_too() {
    let mut bucket = bucket(10_000_000, 5_000_000);
    bucket.refill(SECOND / 5);
    bucket.owe(12, u64::MAX);
    assert_eq!((bucket.tokens(), bucket.is_indebted()), (0, true));
    assert_eq!(bucket.available_at(1), Some(SECOND * 13 / 10), "two were there, ten are owed, one is wanted");
    assert!(!bucket.take(1));
    bucket.put_back(1);
    assert_eq!(bucket.available_at(1), Some(SECOND * 12 / 10));
    bucket.set(SECOND / 5, 90_000_000, 5_000_000, u64::MAX);
    assert_eq!(bucket.available_at(1), Some((SECOND * 14).div_ceil(45)), "nine and one at the higher rate");
    bucket.refill(9 * SECOND);
    assert_eq!((bucket.tokens(), bucket.is_indebted()), (5, false));
}

#[test]
fn nothing_is_owed_for_longer_than_was_agreed_nor_after_the_end() {
    let mut bucket = Bucket::empty();
    bucket.set(0, 10_000_000, 5_000_000, 9 * SECOND);
    bucket.owe(u64::MAX, SECOND);
    assert_eq!(bucket.available_at(1), Some(SECOND * 11 / 10));
    bucket.set(0, 1_000_000, 5_000_000, 9 * SECOND);
    assert_eq!(bucket.available_at(1), Some(11 * SECOND));
    bucket.let_off(SECOND);
    assert_eq!(bucket.available_at(1), Some(2 * SECOND));
    bucket.owe(100, u64::MAX);
    bucket.set(9 * SECOND, 1_000_000, 5_000_000, 99 * SECOND);
    assert!(!bucket.is_indebted());
    let mut dry = Bucket::empty();
    dry.owe(u64::MAX, u64::MAX);
    assert_eq!(dry, Bucket::empty(), "without a rate nothing is owed");
}

proptest! {
    // The level less what is owed is what a number that may fall below zero would be; and nothing is spent before it came in
    // but what is owed.
    #[test]
    fn what_is_owed_is_a_level_below_zero(
        capacity in 1_000_000u64..1_000_000_000,
        steps in prop::collection::vec((0u64..SECOND, 0u64..100, 0u64..40, 1u64..10_000_000_000), 1..60),
    ) {
        let mut bucket = bucket(steps[0].3, capacity);
        let (mut now, mut rate, brim) = (0, steps[0].3, i128::from(capacity) * 1_000_000_000);
        let (mut level, mut income, mut spent) = (0i128, 0u128, 0u128);
        for (wait, want, debt, next) in steps {
            now += wait;
            income += u128::from(rate) * u128::from(wait);
            level = (level + i128::from(rate) * i128::from(wait)).min(brim);
            bucket.refill(now);
            let got = bucket.tokens().min(want);
            prop_assert!(bucket.take(got));
            bucket.owe(debt, u64::MAX);
            spent += u128::from(got + debt) * UNIT;
            level -= i128::from(got + debt) * 1_000_000_000_000_000;
            prop_assert_eq!(bucket.level.cast_signed() - bucket.owed.cast_signed(), level);
            prop_assert!(bucket.level == 0 || bucket.owed == 0);
            prop_assert!(spent <= income + bucket.owed);
            rate = next;
            bucket.set(now, rate, capacity, u64::MAX);
        }
    }

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

/// A bucket of so many millionths a second that lapses after `nanos`, with a unit due at that moment.
fn lapsing(rate: u64, nanos: u64, due: u64) -> Bucket {
    let mut bucket = Bucket::empty();
    let burst = u128::from(rate) * u128::from(nanos) / 1_000_000_000;
    bucket.set(0, rate, 1_000_000 + u64::try_from(burst).unwrap(), u64::MAX);
    bucket.set_lapsing(true);
    bucket.set_due(due, false);
    bucket
}

#[test]
fn what_lapses_is_there_for_a_while_at_equal_intervals_however_late_somebody_looks() {
    const BURST: u64 = 50_000_000;
    for due in [0, 1, 3 * SECOND, 17 * SECOND, 10 * SECOND - 1] {
        for step in [1_000_000, 37_000_000, 999_000_000, 23_456_789_012] {
            let mut bucket = lapsing(100_000, BURST, due);
            let mut now = 20 * SECOND;
            for _ in 0..200 {
                now += step;
                bucket.refill(now);
                let since = (now + 100 * SECOND - due) % (10 * SECOND);
                assert_eq!(bucket.tokens(), u64::from(since <= BURST), "due at {due}, {now}");
            }
        }
    }
}

#[test]
fn a_due_moment_that_moves_brings_nothing_before_its_time() {
    let mut bucket = lapsing(100_000, 50_000_000, 10 * SECOND);
    bucket.refill(10 * SECOND);
    assert!(bucket.take(1));
    assert!(bucket.is_due_about(20 * SECOND + 20_000_000) && bucket.is_due_about(10 * SECOND - 20_000_000));
    assert!(!bucket.is_due_about(11 * SECOND));
    bucket.set_due(11 * SECOND, true);
    for (now, tokens) in [(11, 0), (20, 0), (21, 1), (30, 0), (31, 1)] {
        bucket.refill(now * SECOND);
        assert_eq!(bucket.tokens(), tokens, "at {now} s");
    }
}
