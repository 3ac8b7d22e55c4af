//! Those who wait for a limiter: in order, within their patience, until the lease brings it.

use super::*;
use crate::waiting::Clock;

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
    limiter.set_gate(KnockGate::Shut);
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
