//! Rates that bring less than a unit in the burst: units are due, or asked for, one by one.

use super::*;
use crate::limiter::units::{SentUnits, UnitWish};
use crate::waiting::Clock;

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
