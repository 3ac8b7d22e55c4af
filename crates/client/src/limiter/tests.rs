//! The limiter: never more than the lease brings, from any number of threads.

use std::sync::atomic::{AtomicU64, Ordering};

use lessor_proto::Amount;
use proptest::prelude::*;

use super::shards::sit;
use super::units::{SentUnits, UnitWish};
use super::*;
use crate::waiting::Clock;
use crate::waiting::fake::{FakeClock, Tasks};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const BURST: Duration = Duration::from_millis(10);
/// Millionths of a unit times nanoseconds in a second.
const UNIT: u128 = 1_000_000 * 1_000_000_000;

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

/// An event on the fake clock.
#[derive(Clone, Debug)]
enum Event {
    Take { wait: u64, lane: usize, n: u32, times: usize },
    Hold { wait: u64, least: u32, most: u32 },
    Charge { wait: u64, n: u32 },
    Allow { wait: u64, rate: u64, length: u64 },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let wait = || prop_oneof![Just(0), 0..10_000u64, 0..10 * MILLI, 0..SECOND];
    let rate = prop_oneof![
        Just(0),
        1..1_000_000u64,
        1_000_000..1_000_000_000u64,
        1_000_000_000..2_000_000_000_000u64
    ];
    let take = (wait(), 0..4usize, 1..4u32, prop_oneof![Just(1), 1..10usize, 10..400usize])
        .prop_map(|(wait, lane, n, times)| Event::Take { wait, lane, n, times });
    let allow = (wait(), rate, prop_oneof![Just(u64::MAX / 2), 0..SECOND])
        .prop_map(|(wait, rate, length)| Event::Allow { wait, rate, length });
    let hold = (wait(), 0..4u32, prop_oneof![0..5u32, 0..100_000u32])
        .prop_map(|(wait, least, more)| Event::Hold { wait, least, most: least + more });
    let charge =
        (wait(), prop_oneof![0..5u32, 0..100_000u32]).prop_map(|(wait, n)| Event::Charge { wait, n });
    prop::collection::vec(prop_oneof![6 => take, 2 => hold, 1 => charge, 1 => allow], 1..120)
}

proptest! {
    // For every window that begins with a grant: what flowed in since, and the burst of the rate at its beginning.
    #[test]
    fn no_window_sees_more_than_the_rate_and_the_burst(start in 1u64..2_000_000_000_000, events in events()) {
        let limiter = Limiter::new(BURST);
        let (mut now, mut rate_micros, mut until, mut inflow) = (0u64, start, u64::MAX / 2, 0u128);
        limiter.allow(at(now), rate(rate_micros, until));
        let mut grants: Vec<(u128, u128, u64)> = Vec::new();
        for event in events {
            let (Event::Take { wait, .. }
            | Event::Hold { wait, .. }
            | Event::Charge { wait, .. }
            | Event::Allow { wait, .. }) = event;
            inflow += u128::from(rate_micros) * u128::from(until.min(now + wait).saturating_sub(now));
            now += wait;
            match event {
                Event::Allow { rate: micros, length, .. } => {
                    (rate_micros, until) = (micros, now + length);
                    limiter.allow(at(now), rate(rate_micros, until));
                }
                Event::Charge { n, .. } => limiter.charge(n, at(now)),
                Event::Hold { least, most, .. } => {
                    let mut hold = limiter.hold(at(now));
                    let granted = hold.room(least, most).unwrap_or(0);
                    hold.take(granted);
                    grants.push((inflow, u128::from(granted) * UNIT, rate_micros));
                }
                Event::Take { lane, n, times, .. } => {
                    sit(lane);
                    let granted = (0..times).filter(|_| limiter.try_acquire(n, || at(now)).is_ok()).count();
                    grants.push((inflow, granted as u128 * u128::from(n) * UNIT, rate_micros));
                }
            }
        }
        for first in 0..grants.len() {
            let (before, _, rate_then) = grants[first];
            let burst = saved(rate_then, BURST);
            let mut sum = 0;
            for &(inflow, granted, _) in &grants[first..] {
                sum += granted;
                prop_assert!(sum <= inflow - before + burst);
            }
        }
    }

    // Threads that come in time get all of it, to the last token, wherever tokens idled in between: that is, before what has
    // come in with the fraction of a unit that is there is more than the burst.
    #[test]
    fn saturation_gets_the_rate_exactly(
        micros in prop_oneof![100_000u64..20_000_000, 25_000_000..20_000_000_000u64],
        steps in prop::collection::vec((1..10 * MILLI, 0..4usize, 0..50usize), 1..200),
    ) {
        let limiter = Limiter::default();
        limiter.allow(Time::ZERO, rate(micros, u64::MAX));
        let (mut now, mut granted) = (0, 0);
        for (step, lane, before) in steps {
            now += step;
            sit(lane);
            granted += (0..before).filter(|_| limiter.try_acquire(1, || at(now)).is_ok()).count() as u64;
            sit(lane + 1);
            granted += drain(&limiter, now);
            prop_assert_eq!(u128::from(granted), u128::from(micros) * u128::from(now) / UNIT);
        }
        prop_assert_eq!(limiter.usage().granted, granted);
    }
}

/// A rate of so many millionths a second of which a unit is due at that moment.
fn phased(micros: u64, due: u64) -> Allowance {
    Allowance { due: Some(at(due)), ..rate(micros, u64::MAX) }
}

#[test]
fn a_small_rate_has_a_unit_when_it_is_due_and_saves_none_up() {
    let limiter = Limiter::default();
    limiter.allow(Time::ZERO, phased(100_000, 4 * SECOND));
    let retry_after = Duration::from_millis(100);
    assert_eq!(limiter.try_acquire(1, || at(3_900 * MILLI)), Err(Denied::Spent { retry_after }));
    assert_eq!(drain(&limiter, 4 * SECOND), 1);
    assert_eq!(drain(&limiter, 14 * SECOND - 1), 0);
    assert_eq!(drain(&limiter, 14 * SECOND + 49 * MILLI), 1, "late, but within the burst");
    assert_eq!(drain(&limiter, 24 * SECOND + 51 * MILLI), 0, "too late");
    assert_eq!(drain(&limiter, 34 * SECOND - 1), 0);
    assert_eq!(drain(&limiter, 1_004 * SECOND), 1, "after a long time as well");
    // The same said again with a little jitter moves nothing, and another moment brings none before its time.
    limiter.allow(at(1_005 * SECOND), phased(100_000, 1_014 * SECOND - 20 * MILLI));
    assert_eq!(drain(&limiter, 1_014 * SECOND - 1), 0);
    assert_eq!(drain(&limiter, 1_014 * SECOND), 1);
    limiter.allow(at(1_015 * SECOND), phased(100_000, 1_016 * SECOND));
    assert_eq!(drain(&limiter, 1_016 * SECOND), 0);
    assert_eq!(drain(&limiter, 1_026 * SECOND), 1);
}

#[test]
fn a_unit_that_was_due_does_not_lie_on_top_of_what_a_larger_rate_saves_up() {
    let limiter = Limiter::default();
    limiter.allow(Time::ZERO, phased(100_000, 4 * SECOND));
    limiter.allow(at(4 * SECOND), rate(100_000_000, u64::MAX));
    assert_eq!(drain(&limiter, 4 * SECOND), 0, "what was due was ahead of what the small rate had brought");
    assert_eq!(drain(&limiter, 4 * SECOND + 30 * MILLI), 3);
}

#[test]
fn who_waits_at_a_small_rate_waits_until_a_unit_is_due() {
    let (limiter, clock) = (Limiter::default(), FakeClock::default());
    limiter.allow(Time::ZERO, phased(500_000, SECOND));
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 1));
    tasks.spawn(limiter.acquire_by(&clock, 1));
    tasks.pass(Duration::from_millis(999));
    assert_eq!(tasks.finished(), []);
    tasks.pass(Duration::from_millis(1));
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
    tasks.pass(Duration::from_millis(1_999));
    assert_eq!(tasks.finished(), []);
    tasks.pass(Duration::from_millis(1));
    assert_eq!(tasks.finished(), [(1, Ok(()))]);
}

/// A limiter that has to ask for all it has, so many millionths a second.
fn asking(micros: u64) -> Limiter {
    let limiter = Limiter::default();
    limiter.allow(Time::ZERO, Allowance { asked: Amount::from_micros(micros), ..rate(micros, u64::MAX) });
    limiter
}

#[test]
fn who_waits_is_asked_for_and_has_what_is_sent() {
    let (limiter, clock) = (asking(100_000), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    tasks.pass(Duration::from_secs(100));
    assert_eq!(
        limiter.wish(clock.now()),
        Some(UnitWish::default()),
        "nothing is asked for in advance, nor saved up"
    );
    tasks.spawn(limiter.acquire_by(&clock, 1));
    let last = tasks.spawn(limiter.acquire_by(&clock, 2));
    assert_eq!(limiter.wish(clock.now()), Some(UnitWish { missing: 3, ..UnitWish::default() }));
    limiter.bring(SentUnits::now(2), clock.now());
    tasks.run();
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
    assert_eq!(limiter.wish(clock.now()), Some(UnitWish { missing: 1, ..UnitWish::default() }));
    tasks.cancel(last);
    assert_eq!(limiter.wish(clock.now()), Some(UnitWish::default()));
    assert_eq!(drain(&limiter, clock.now().as_nanos()), 0, "what nobody waits for any more is lost");
}

#[test]
fn who_does_not_wait_is_denied_and_finds_a_unit_a_round_trip_later() {
    let limiter = asking(100_000);
    let retry_after = Duration::from_millis(20);
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire(1, || at(SECOND)), Err(Denied::Spent { retry_after }));
    }
    let keep = Some(Duration::from_millis(40));
    let wish = UnitWish { missing: 1, kept: 1, keep, held: 0 };
    assert_eq!(limiter.wish(at(SECOND)), Some(wish), "one for all who come at once");
    let sent = SentUnits { units: 1, keep: Some((1, Duration::from_millis(40))) };
    limiter.bring(sent, at(SECOND + 20 * MILLI));
    let held = UnitWish { held: 1, ..UnitWish::default() };
    assert_eq!(limiter.wish(at(SECOND + 20 * MILLI)), Some(held));
    assert_eq!(drain(&limiter, SECOND + 59 * MILLI), 1);
    // Another was asked for, and what is fetched too late is gone.
    limiter.bring(sent, at(SECOND + 79 * MILLI));
    assert!(limiter.try_acquire(1, || at(SECOND + 120 * MILLI)).is_err());
    assert!(matches!(limiter.try_acquire(2, || at(2 * SECOND)), Err(Denied::AboveBurst { n: 2, burst: 1 })));
}

#[test]
fn who_comes_often_without_waiting_is_denied_twice_and_then_finds_a_unit_each_time() {
    let limiter = asking(5_000_000);
    let granted = |step: u64| {
        let now = at(step * 200 * MILLI);
        let granted = limiter.try_acquire(1, || now).is_ok();
        let wish = limiter.wish(now).unwrap();
        let keep = wish.keep.map(|keep| (wish.kept, keep));
        limiter.bring(SentUnits { units: wish.missing, keep }, now + Duration::from_millis(20));
        granted
    };
    let outcomes: Vec<bool> = (1..=20).map(granted).collect();
    assert_eq!(outcomes.iter().filter(|&&granted| !granted).count(), 2, "{outcomes:?}");
    assert!(outcomes[3..].iter().all(|&granted| granted), "{outcomes:?}");
}

#[test]
fn a_bell_is_rung_once_for_each_thing_to_ask_for() {
    let count = std::sync::Arc::new(Rung(AtomicU64::new(0)));
    let limiter = asking(100_000);
    limiter.call(count.clone().into());
    let rung = || count.0.load(Ordering::SeqCst);
    assert!(limiter.try_acquire(1, || at(SECOND)).is_err());
    assert!(limiter.try_acquire(1, || at(SECOND)).is_err());
    assert_eq!(rung(), 1);
    let clock = FakeClock::default();
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 1));
    assert_eq!(rung(), 2);
}

#[test]
fn who_comes_too_early_is_told_to_come_again_soon_and_a_place_is_not_lost() {
    let limiter = asking(100_000);
    limiter.bring(SentUnits::now(0), at(SECOND));
    let (mut now, mut waits) = (SECOND, Vec::new());
    while now < 2 * SECOND {
        let Err(Denied::Spent { retry_after }) = limiter.try_acquire(1, || at(now)) else {
            panic!("nothing came")
        };
        assert_eq!(limiter.wish(at(now)).unwrap().missing, 1, "at {now}");
        waits.push(retry_after);
        now += u64::try_from(retry_after.as_nanos()).unwrap();
    }
    // A round trip that was never measured, an eighth of the time since, and no longer than half of the time that it is kept.
    assert_eq!(waits[..2], [20 * MILLI, 5 * MILLI / 2].map(Duration::from_nanos));
    assert_eq!(waits.last(), Some(&Duration::from_millis(20)));
    // Who never comes again is not asked for any more.
    assert_eq!(limiter.wish(at(now + SECOND)), Some(UnitWish::default()));
}

#[test]
fn units_that_come_for_those_who_wait_are_not_kept() {
    let (limiter, clock) = (asking(100_000), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    let first = tasks.spawn(limiter.acquire_by(&clock, 1));
    tasks.cancel(first);
    limiter.bring(SentUnits::now(1), clock.now());
    assert!(limiter.try_acquire(1, || clock.now()).is_err(), "whoever waited is gone");
    // And those that were sent to be kept are used by who waits, before they are lost.
    limiter.bring(SentUnits { units: 1, keep: Some((1, Duration::from_millis(40))) }, clock.now());
    let second = tasks.spawn(limiter.acquire_by(&clock, 1));
    tasks.run();
    assert_eq!(tasks.finished(), [(second, Ok(()))]);
}

struct Rung(AtomicU64);

impl std::task::Wake for Rung {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

type Waiters<'a> = Tasks<'a, Result<(), Denied>>;

#[test]
fn waiters_are_served_in_order_at_the_rate() {
    let (limiter, clock) = (limiter(100), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    for _ in 0..5 {
        tasks.spawn(limiter.acquire_by(&clock, 1));
    }
    assert_eq!(limiter.usage(), RateUsage { attempted: 5, granted: 0, waiting: 5 });
    for task in 0..5 {
        tasks.pass(Duration::from_millis(9));
        assert_eq!(tasks.finished(), []);
        tasks.pass(Duration::from_millis(1));
        assert_eq!(tasks.finished(), [(task, Ok(()))]);
    }
    assert_eq!(limiter.usage(), RateUsage { attempted: 5, granted: 5, waiting: 0 });
}

#[test]
fn nobody_overtakes_who_waits() {
    let (limiter, clock) = (limiter(100), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 2));
    let denied = limiter.try_acquire(1, || at(15 * MILLI));
    assert_eq!(denied, Err(Denied::Spent { retry_after: Duration::from_millis(15) }));
    tasks.pass(Duration::from_millis(20));
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
    assert_eq!(limiter.try_acquire(1, || at(30 * MILLI)), Ok(()));
}

#[test]
fn more_than_the_burst_pays_its_price_in_time() {
    let (limiter, clock) = (limiter(100), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 50));
    tasks.spawn(limiter.acquire_by(&clock, 1));
    tasks.pass(Duration::from_millis(499));
    assert_eq!(tasks.finished(), []);
    tasks.pass(Duration::from_millis(1));
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
    tasks.pass(Duration::from_millis(10));
    assert_eq!(tasks.finished(), [(1, Ok(()))]);
}

#[test]
fn who_goes_away_takes_nothing_and_lets_the_next_one_in() {
    let (limiter, clock) = (Limiter::new(BURST * 2), FakeClock::default());
    limiter.allow(Time::ZERO, Allowance::forever(Amount::from_units(100)));
    let mut tasks = Waiters::new(&clock);
    let big = tasks.spawn(limiter.acquire_by(&clock, 90));
    let middle = tasks.spawn(limiter.acquire_by(&clock, 1));
    let last = tasks.spawn(limiter.acquire_by(&clock, 1));
    tasks.pass(Duration::from_millis(500));
    tasks.cancel(middle);
    assert_eq!(tasks.finished(), []);
    // What the big one saved is lost beyond the burst.
    tasks.cancel(big);
    assert_eq!(tasks.finished(), [(last, Ok(()))]);
    assert_eq!(drain(&limiter, 500 * MILLI), 1);
    assert_eq!(limiter.usage(), RateUsage { attempted: 90 + 1 + 1 + 1 + 1, granted: 2, waiting: 0 });
}

/// A waker that wakes nobody: a driver that has not heard yet.
struct Deaf;

impl std::task::Wake for Deaf {
    fn wake(self: std::sync::Arc<Self>) {}
}

#[test]
fn a_wait_is_too_long_only_where_a_knock_has_brought_nothing() {
    let clock = FakeClock::default();
    let max_wait = Duration::from_millis(100);
    let limiter = limiter(1).with_waiting(Waiting { max_wait, max_waiters: 9 });
    limiter.listen(Time::ZERO, Waker::from(std::sync::Arc::new(Deaf)));
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 1));
    // It has been told, and no answer can have come.
    tasks.spawn(limiter.acquire_by(&clock, 1));
    limiter.set_door(KnockGate::Shut);
    tasks.spawn(limiter.acquire_by(&clock, 1));
    let (wait, refused) = (Duration::from_secs(3), tasks.finished());
    assert_eq!(refused, [(2, Err(Denied::TooLong { wait, max_wait }))]);
    // The lease was as small as the demand until then, and is not any more.
    limiter.allow(clock.now(), Allowance::forever(Amount::from_units(1_000)));
    tasks.pass(Duration::from_millis(10));
    assert_eq!(tasks.finished(), [(0, Ok(())), (1, Ok(()))]);
}

#[test]
fn waits_that_are_known_to_be_too_long_are_refused_at_once() {
    let clock = FakeClock::default();
    let max_wait = Duration::from_millis(100);
    let limiter = limiter(100).with_waiting(Waiting { max_wait, max_waiters: 2 });
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 11));
    let wait = Duration::from_millis(110);
    assert_eq!(tasks.finished(), [(0, Err(Denied::TooLong { wait, max_wait }))]);
    tasks.spawn(limiter.acquire_by(&clock, 5));
    tasks.spawn(limiter.acquire_by(&clock, 5));
    tasks.spawn(limiter.acquire_by(&clock, 1));
    assert_eq!(tasks.finished(), [(3, Err(Denied::TooManyWaiters { max_waiters: 2 }))]);
    tasks.pass(max_wait);
    assert_eq!(tasks.finished(), [(1, Ok(())), (2, Ok(()))]);
}

#[test]
fn one_who_waits_may_be_more_or_less_patient_than_the_others() {
    let clock = FakeClock::default();
    let max_wait = Duration::from_millis(100);
    let limiter = limiter(100).with_waiting(Waiting { max_wait, max_waiters: 9 });
    let mut tasks = Waiters::new(&clock);
    let (hasty, wait) = (Duration::from_millis(20), Duration::from_millis(110));
    tasks.spawn(limiter.acquire_within(&clock, 11, hasty));
    tasks.spawn(limiter.acquire_within(&clock, 11, Duration::MAX));
    assert_eq!(tasks.finished(), [(0, Err(Denied::TooLong { wait, max_wait: hasty }))]);
    tasks.pass(wait);
    assert_eq!(tasks.finished(), [(1, Ok(()))]);
}

#[test]
fn waiters_outlive_the_gap_between_two_leases_but_not_their_patience() {
    let clock = FakeClock::default();
    let max_wait = Duration::from_secs(5);
    let limiter = Limiter::new(BURST).with_waiting(Waiting { max_wait, ..Waiting::DEFAULT });
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 1));
    tasks.pass(Duration::from_secs(2));
    tasks.spawn(limiter.acquire_by(&clock, 1));
    tasks.pass(Duration::from_secs(2));
    limiter.allow(clock.now(), rate(1_000_000_000, 4 * SECOND + 1_500_000));
    tasks.pass(Duration::from_secs(2));
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
    tasks.pass(Duration::from_secs(2));
    assert_eq!(tasks.finished(), [(1, Err(Denied::TimedOut { max_wait }))]);
    assert_eq!(limiter.usage(), RateUsage { attempted: 2, granted: 1, waiting: 0 });
}

#[test]
fn a_greater_allowance_wakes_who_waits() {
    let (limiter, clock) = (limiter(1), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 1));
    limiter.allow(clock.now(), Allowance::forever(Amount::from_units(1000)));
    tasks.pass(Duration::from_millis(1));
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
    limiter.allow(clock.now(), rate(1, u64::MAX));
    tasks.spawn(limiter.acquire_by(&clock, 1));
    assert!(matches!(tasks.finished()[..], [(1, Err(Denied::TooLong { .. }))]));
}

#[test]
fn the_end_of_all_limits_lets_everybody_in() {
    let (limiter, clock) = (limiter(1), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(limiter.acquire_by(&clock, 1));
    limiter.allow(clock.now(), Allowance::new(None, Time::MAX));
    assert_eq!(limiter.try_acquire(1, || clock.now()), Err(Denied::Spent { retry_after: Duration::ZERO }));
    tasks.run();
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
    assert_eq!(limiter.try_acquire(1, || clock.now()), Ok(()));
}
