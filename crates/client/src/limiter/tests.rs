//! The limiter: never more than the lease brings, from any number of threads.

mod histories;
mod small_rates;
mod waiting;

use std::sync::atomic::{AtomicU64, Ordering};

use lessor_proto::Amount;

use super::shards::sit;
use super::*;
use crate::waiting::fake::{FakeClock, Tasks};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const BURST: Duration = Duration::from_millis(10);
/// Millionths of a unit times nanoseconds in a second.
const UNIT: u128 = 1_000_000 * 1_000_000_000;

type Waiters<'a> = Tasks<'a, Result<(), Denied>>;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn rate(micros: u64, until: u64) -> Allowance {
    Allowance::new(Some(Amount::from_micros(micros)), at(until))
}

/// A limiter with so many units a second from zero on.
fn limiter(units: u64) -> Limiter {
    let limiter = Limiter::new(BURST);
    limiter.allow(Time::ZERO, Allowance::forever(Amount::from_units(units)));
    limiter
}

/// The amount that may be saved up at that rate, in grains.
fn saved(micros: u64, burst: Duration) -> u128 {
    match u128::from(micros) * burst.as_nanos() {
        0 => 0,
        burst if burst < UNIT => burst + UNIT,
        burst => burst,
    }
}

/// Takes single units until denied.
fn drain(limiter: &Limiter, now: u64) -> u64 {
    (0..).take_while(|_| limiter.try_acquire(1, || at(now)).is_ok()).count() as u64
}

#[test]
fn three_tenths_a_second_are_three_in_ten_seconds() {
    let limiter = Limiter::new(BURST);
    limiter.allow(Time::ZERO, rate(300_000, u64::MAX));
    let taken: u64 = (0..=10_000).map(|milli| drain(&limiter, milli * MILLI)).sum();
    assert_eq!(taken, 3);
    let taken: u64 = (10_001..=1_000_000).map(|milli| drain(&limiter, milli * MILLI)).sum();
    assert_eq!(taken, 297);
}

#[test]
fn a_million_million_a_second_works_as_well() {
    let limiter = limiter(1_000_000_000_000);
    assert_eq!(limiter.try_acquire(1_000_000_000, || at(MILLI)), Ok(()));
    assert!(limiter.try_acquire(1, || at(MILLI)).is_err());
    assert_eq!(limiter.try_acquire(1, || at(MILLI + 1)), Ok(()));
    assert_eq!(limiter.usage().granted, 1_000_000_001);
}

#[test]
fn the_fast_path_asks_no_clock() {
    let limiter = limiter(1_000_000);
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Ok(()));
    for _ in 0..312 {
        assert_eq!(limiter.try_acquire(1, || unreachable!("a token is in the shard")), Ok(()));
    }
}

#[test]
fn denials_say_why_and_when_to_come_back() {
    let limiter = Limiter::new(BURST * 2);
    assert_eq!(limiter.try_acquire(1, || unreachable!()), Err(Denied::NothingLeased));
    assert_eq!(limiter.try_acquire(0, || unreachable!()), Ok(()));
    limiter.allow(Time::ZERO, Allowance::forever(Amount::from_units(100)));
    let spent = |millis| Err(Denied::Spent { retry_after: Duration::from_millis(millis) });
    assert_eq!(limiter.try_acquire(1, || at(0)), spent(10));
    assert_eq!(limiter.try_acquire(2, || at(4 * MILLI)), spent(16));
    assert_eq!(limiter.try_acquire(1, || at(4 * MILLI)), spent(6));
    assert_eq!(limiter.try_acquire(3, || at(SECOND)), Err(Denied::AboveBurst { n: 3, burst: 2 }));
    assert_eq!(limiter.try_acquire(2, || at(SECOND)), Ok(()));
    assert_eq!(limiter.usage(), RateUsage { attempted: 10, granted: 2, waiting: 0 });
}

#[test]
fn a_token_that_idles_in_another_shard_is_found() {
    let limiter = limiter(1_000_000);
    sit(0);
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Ok(()));
    sit(1);
    assert_eq!(drain(&limiter, SECOND), 9_999);
}

#[test]
fn shrinking_truncates_what_the_shards_hold() {
    let limiter = limiter(1_000_000);
    for lane in 0..16 {
        sit(lane);
        assert_eq!(limiter.try_acquire(1, || at(SECOND)), Ok(()));
    }
    limiter.allow(at(SECOND), rate(1_000_000, u64::MAX));
    let left: u64 = (0..16).map(|lane| (sit(lane), drain(&limiter, SECOND)).1).sum();
    assert_eq!(left, 1);
}

#[test]
fn a_renewal_loses_nothing() {
    let limiter = Limiter::new(BURST);
    let mut granted = 0;
    for second in 0..100 {
        limiter.allow(at(second * SECOND), rate(333_333_333_333, (second + 10) * SECOND));
        for milli in 0..1000 {
            granted += drain(&limiter, second * SECOND + milli * MILLI);
        }
    }
    granted += drain(&limiter, 100 * SECOND);
    assert_eq!(granted, 33_333_333);
}

#[test]
fn nothing_is_granted_after_the_end() {
    let limiter = Limiter::new(BURST);
    limiter.allow(Time::ZERO, rate(1_000_000_000, SECOND));
    assert_eq!(limiter.try_acquire(10, || at(SECOND - 1)), Ok(()));
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Err(Denied::NothingLeased));
    assert_eq!(limiter.try_acquire(1, || unreachable!("it is known")), Err(Denied::NothingLeased));
    limiter.allow(at(2 * SECOND), rate(1_000_000_000, 3 * SECOND));
    assert_eq!(drain(&limiter, 2 * SECOND), 0);
    assert_eq!(drain(&limiter, 2 * SECOND + MILLI), 1);
}

#[test]
fn the_end_voids_the_shards() {
    let limiter = Limiter::new(BURST);
    limiter.allow(Time::ZERO, rate(1_000_000_000_000, SECOND));
    for lane in 0..2 {
        sit(lane);
        assert_eq!(limiter.try_acquire(1, || at(SECOND / 2)), Ok(()));
    }
    limiter.allow(at(SECOND), Allowance::NOTHING);
    assert_eq!((sit(0), drain(&limiter, SECOND / 2)).1, 0);
    assert_eq!((sit(1), drain(&limiter, SECOND / 2)).1, 0);
    assert_eq!(limiter.usage().granted, 2);
}

#[test]
fn whoever_finds_the_end_voids_the_other_shards() {
    let limiter = Limiter::new(BURST);
    limiter.allow(Time::ZERO, rate(1_000_000_000_000, SECOND));
    sit(0);
    assert_eq!(limiter.try_acquire(1, || at(SECOND / 2)), Ok(()));
    sit(1);
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Err(Denied::NothingLeased));
    sit(0);
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Err(Denied::NothingLeased));
}

#[test]
fn without_limit_is_without_limit_until_the_end() {
    let limiter = Limiter::new(BURST);
    limiter.allow(Time::ZERO, Allowance::new(None, at(SECOND)));
    for _ in 0..100 {
        assert_eq!(limiter.try_acquire(1, || at(0)), Ok(()));
        assert_eq!(limiter.try_acquire(u32::MAX, || at(0)), Ok(()));
    }
    assert_eq!(limiter.usage().granted, 100 * (u64::from(u32::MAX) + 1));
    assert_eq!(limiter.try_acquire(u32::MAX, || at(SECOND)), Err(Denied::NothingLeased));
    assert_eq!(drain(&limiter, SECOND), 0);
}

#[test]
fn what_a_hold_sees_it_can_take_and_without_taking_nothing_changes() {
    let limiter = limiter(1_000_000);
    sit(0);
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Ok(()));
    for _ in 0..3 {
        assert_eq!(limiter.hold(at(SECOND)).room(1, u32::MAX), Ok(9_999), "with what the shard had");
    }
    let denied = Denied::AboveBurst { n: 10_002, burst: 10_000 };
    assert_eq!(limiter.hold(at(SECOND)).room(10_002, 20_000), Err(denied));
    let mut hold = limiter.hold(at(SECOND));
    assert_eq!(hold.room(9_000, 9_998), Ok(9_998));
    hold.take(9_998);
    drop(hold);
    assert_eq!(drain(&limiter, SECOND), 1);
    assert_eq!(limiter.usage(), RateUsage { attempted: 10_000 + 10_002 + 1, granted: 10_000, waiting: 0 });
}

/// Checks that what is charged at `SECOND`, when `there` is there, keeps everybody out until it has come in.
fn check_charge(rate: u64, there: u64) {
    let limiter = limiter(rate);
    sit(0);
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Ok(()));
    let n = u32::try_from(rate / 2 + there - 1).unwrap();
    limiter.charge(n, at(SECOND));
    assert_eq!(limiter.usage().granted, u64::from(n) + 1);
    // Half a second's worth is owed, and one is wanted.
    let due = SECOND * 3 / 2 + SECOND.div_ceil(rate);
    for now in [SECOND, SECOND * 5 / 4, due - 1] {
        let retry_after = Duration::from_nanos(due - now);
        assert_eq!(limiter.try_acquire(1, || at(now)), Err(Denied::Spent { retry_after }), "{rate} at {now}");
        sit(1);
    }
    assert_eq!(limiter.try_acquire(1, || at(due)), Ok(()), "{rate}");
    assert_eq!(drain(&limiter, 9 * SECOND), there, "and then it is as ever");
}

#[test]
fn what_is_charged_is_owed_and_paid_before_anything_is_granted() {
    check_charge(100, 1);
    check_charge(1_000_000, 10_000);
}

#[test]
fn nothing_is_owed_for_more_than_a_minute_nor_without_a_limit_nor_past_the_end() {
    let limiter = limiter(10);
    limiter.charge(u32::MAX, at(SECOND));
    let retry_after = Duration::from_millis(60_100);
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Err(Denied::Spent { retry_after }));
    limiter.allow(at(SECOND), rate(1_000_000, u64::MAX));
    let retry_after = Duration::from_secs(61);
    assert_eq!(
        limiter.try_acquire(1, || at(SECOND)),
        Err(Denied::Spent { retry_after }),
        "at the lower rate"
    );
    limiter.allow(at(2 * SECOND), Allowance::NOTHING);
    limiter.charge(7, at(2 * SECOND));
    limiter.allow(at(3 * SECOND), rate(1_000_000, u64::MAX));
    assert_eq!(limiter.try_acquire(1, || at(4 * SECOND)), Ok(()));
    limiter.allow(at(4 * SECOND), Allowance::new(None, Time::MAX));
    limiter.charge(u32::MAX, at(4 * SECOND));
    assert_eq!(limiter.try_acquire(1, || at(4 * SECOND)), Ok(()));
}

#[test]
fn who_waits_waits_for_what_is_charged_as_well() {
    let (limiter, clock) = (limiter(100), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 1));
    limiter.charge(20, Time::ZERO);
    tasks.pass(Duration::from_millis(209));
    assert_eq!(tasks.finished(), []);
    tasks.pass(Duration::from_millis(1));
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
}

#[test]
fn a_hold_overtakes_nobody_who_waits() {
    let (limiter, clock) = (limiter(100), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 2));
    let spent = Denied::Spent { retry_after: Duration::from_millis(15) };
    assert_eq!(limiter.hold(at(15 * MILLI)).room(1, 1), Err(spent));
    tasks.pass(Duration::from_millis(20));
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
}

#[test]
fn the_operator_says_how_much_is_saved_and_the_program_may_only_say_less() {
    let saved = |limiter: Limiter, said: Option<u64>| {
        let lease = Allowance::forever(Amount::from_units(1_000));
        limiter.allow(Time::ZERO, Allowance { burst: said.map(Duration::from_millis), ..lease });
        drain(&limiter, SECOND)
    };
    assert_eq!(saved(Limiter::default(), None), 50);
    assert_eq!(saved(Limiter::default(), Some(200)), 200);
    assert_eq!(saved(Limiter::default(), Some(3)), 3);
    assert_eq!(saved(Limiter::new(BURST), Some(200)), 10);
    assert_eq!(saved(Limiter::new(BURST), Some(3)), 3);
    assert_eq!(saved(Limiter::new(BURST), None), 10);
}

#[test]
fn no_unit_lies_on_top_of_the_burst() {
    for units in [1_000, 5_000, 1_000_000] {
        let limiter = Limiter::default();
        limiter.allow(Time::ZERO, Allowance::forever(Amount::from_units(units)));
        assert_eq!(drain(&limiter, SECOND), units / 20, "{units} a second");
    }
}

#[test]
fn threads_together_keep_to_the_bound() {
    let limiter = limiter(1_000_000);
    let clock = AtomicU64::new(0);
    let granted: u64 = std::thread::scope(|scope| {
        let work = || {
            let tick = || at(clock.fetch_add(300, Ordering::SeqCst));
            (0..100_000).filter(|_| limiter.try_acquire(1, tick).is_ok()).count() as u64
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        for _ in 0..1000 {
            limiter
                .allow(at(clock.load(Ordering::SeqCst)), Allowance::forever(Amount::from_units(1_000_000)));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let nanos = clock.load(Ordering::SeqCst);
    assert!(granted <= nanos / 1000 + 10_000, "{granted} in {nanos} ns");
    assert_eq!(limiter.usage().granted, granted);
    assert_eq!(limiter.usage().attempted, 400_000);
}
