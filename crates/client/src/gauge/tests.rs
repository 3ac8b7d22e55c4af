//! Permits: how many, until when, and who waits.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use lessor_proto::Amount;
use proptest::prelude::*;

use super::*;
use crate::waiting::Clock;
use crate::waiting::fake::{FakeClock, Tasks};

const SECOND: u64 = 1_000_000_000;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn gauge(units: u64) -> Semaphore {
    let gauge = Semaphore::default();
    gauge.allow(Time::ZERO, Allowance::forever(Amount::from_units(units)));
    gauge
}

fn take(gauge: &Semaphore, n: u32) -> Result<Permit, Denied> {
    gauge.try_acquire(n, || Time::ZERO)
}

#[test]
fn parts_of_a_unit_do_not_count() {
    let gauge = Semaphore::default();
    gauge.allow(Time::ZERO, Allowance::forever(Amount::from_f64(1.9)));
    let permit = take(&gauge, 1).unwrap();
    assert_eq!(take(&gauge, 1).unwrap_err(), Denied::Full { in_use: 1, limit: 1 });
    gauge.allow(Time::ZERO, Allowance::forever(Amount::from_f64(0.9)));
    drop(permit);
    assert_eq!(take(&gauge, 1).unwrap_err(), Denied::NothingLeased);
    assert_eq!(take(&gauge, 0).unwrap().units(), 0);
}

#[test]
fn as_many_as_there_are_can_be_taken_and_some_of_them_given_back() {
    let gauge = gauge(5);
    let between = |least, most| gauge.try_acquire_between(least, most, || Time::ZERO);
    let mut first = between(2, 3).unwrap();
    let second = between(1, 9).unwrap();
    assert_eq!((first.units(), second.units()), (3, 2));
    assert_eq!(between(1, 9).unwrap_err(), Denied::Full { in_use: 5, limit: 5 });
    assert_eq!(between(0, 9).unwrap().units(), 0);
    first.shrink(7);
    assert_eq!((first.units(), gauge.in_use()), (3, 5));
    first.shrink(1);
    assert_eq!((first.units(), gauge.in_use()), (1, 3));
    first.grow(9, Time::ZERO);
    assert_eq!((first.units(), gauge.in_use()), (3, 5));
    drop((first, second));
    assert_eq!((gauge.in_use(), gauge.usage().peak), (0, 14), "five, and nine that were asked for");
}

#[test]
fn units_that_are_given_back_go_to_who_waits_and_not_to_who_grows() {
    let (gauge, clock) = (gauge(3), FakeClock::default());
    let mut permit = take(&gauge, 3).unwrap();
    let mut tasks = Tasks::new(&clock);
    tasks.spawn(gauge.acquire_by(&clock, 2));
    permit.shrink(2);
    permit.grow(3, Time::ZERO);
    assert_eq!((permit.units(), tasks.finished().len()), (2, 0));
    permit.shrink(1);
    tasks.run();
    let (_, served) = tasks.finished().remove(0);
    assert_eq!((served.unwrap().units(), permit.units()), (2, 1));
}

#[test]
fn after_a_shrink_enough_must_come_back_first() {
    let gauge = gauge(5);
    let mut permits: Vec<_> = (0..5).map(|_| take(&gauge, 1).unwrap()).collect();
    gauge.allow(Time::ZERO, Allowance::forever(Amount::from_units(2)));
    assert_eq!(gauge.in_use(), 5);
    for in_use in (2..=4).rev() {
        permits.pop();
        assert_eq!(take(&gauge, 1).unwrap_err(), Denied::Full { in_use, limit: 2 });
    }
    permits.pop();
    assert!(take(&gauge, 1).is_ok());
}

/// A lease of three units until then.
fn lease(until: u64) -> Allowance {
    Allowance::new(Some(Amount::from_units(3)), at(until))
}

#[test]
fn nothing_is_given_after_the_end_and_renewals_move_deadlines() {
    let gauge = Semaphore::default();
    gauge.allow(Time::ZERO, lease(SECOND));
    let permit = gauge.try_acquire(1, || at(SECOND - 1)).unwrap();
    assert_eq!(permit.deadline(), Some(at(SECOND)));
    assert_eq!(gauge.try_acquire(1, || at(SECOND)).unwrap_err(), Denied::NothingLeased);
    gauge.allow(at(SECOND - 1), lease(2 * SECOND));
    assert_eq!((permit.deadline(), permit.is_expired_at(at(2 * SECOND - 1))), (Some(at(2 * SECOND)), false));
    assert!(gauge.try_acquire(1, || at(SECOND)).is_ok());
    gauge.allow(at(2 * SECOND), Allowance::NOTHING);
    assert_eq!((permit.deadline(), permit.is_expired_at(at(2 * SECOND))), (Some(at(2 * SECOND)), true));
    assert_eq!(gauge.in_use(), 1);
}

#[test]
fn the_end_of_a_permit_does_not_move_ahead_once_it_has_passed() {
    let nothing = Allowance::NOTHING;
    let safe = Allowance::forever(Amount::from_units(3));
    for between in [None, Some(nothing), Some(safe)] {
        let gauge = Semaphore::default();
        gauge.allow(Time::ZERO, lease(SECOND));
        let permit = gauge.try_acquire(1, || Time::ZERO).unwrap();
        if let Some(between) = between {
            gauge.allow(at(SECOND), between);
            assert_eq!((permit.deadline(), permit.is_expired_at(at(SECOND))), (Some(at(SECOND)), true));
        }
        gauge.allow(at(2 * SECOND), lease(9 * SECOND));
        assert_eq!((permit.deadline(), permit.is_expired_at(at(3 * SECOND))), (Some(at(SECOND)), true));
        let later = gauge.try_acquire(1, || at(3 * SECOND)).unwrap();
        assert_eq!((later.deadline(), later.is_expired_at(at(3 * SECOND))), (Some(at(9 * SECOND)), false));
        // What is still out is not free, though it has ended.
        assert_eq!(
            gauge.try_acquire(2, || at(3 * SECOND)).unwrap_err(),
            Denied::Full { in_use: 2, limit: 3 }
        );
        drop(permit);
        assert!(gauge.try_acquire(2, || at(3 * SECOND)).is_ok());
    }
}

#[test]
fn who_was_told_that_a_permit_has_ended_is_not_told_otherwise() {
    let gauge = Semaphore::default();
    gauge.allow(Time::ZERO, lease(SECOND));
    let permit = gauge.try_acquire(1, || Time::ZERO).unwrap();
    assert!(permit.is_expired_at(at(SECOND)));
    // The driver has read the clock a moment before that.
    gauge.allow(at(SECOND - 1), lease(2 * SECOND));
    assert!(permit.is_expired_at(at(SECOND + 1)) && permit.is_expired_at(at(SECOND - 1)));
    assert!(permit.deadline() <= Some(at(SECOND)), "{:?}", permit.deadline());
    let later = gauge.try_acquire(1, || at(SECOND + 1)).unwrap();
    assert!(!later.is_expired_at(at(SECOND + 1)));
}

#[test]
fn what_is_not_leased_has_no_end_and_a_lease_does_not_give_it_one() {
    let gauge = gauge(3);
    let permit = take(&gauge, 1).unwrap();
    assert_eq!((permit.deadline(), permit.is_expired_at(at(u64::MAX))), (None, false));
    gauge.allow(at(SECOND), lease(2 * SECOND));
    let leased = gauge.try_acquire(1, || at(SECOND)).unwrap();
    assert_eq!((permit.deadline(), permit.is_expired_at(at(3 * SECOND))), (None, false));
    assert_eq!((leased.deadline(), leased.is_expired_at(at(3 * SECOND))), (Some(at(2 * SECOND)), true));
}

#[test]
fn permits_beyond_a_recall_last_as_long_as_the_lease_is_renewed() {
    let gauge = Semaphore::default();
    gauge.allow(Time::ZERO, lease(SECOND));
    let permit = gauge.try_acquire(3, || Time::ZERO).unwrap();
    gauge.allow(at(1), Allowance::new(Some(Amount::ZERO), at(2 * SECOND)));
    assert_eq!((permit.deadline(), permit.is_expired_at(at(SECOND))), (Some(at(2 * SECOND)), false));
}

#[test]
fn a_holder_waits_for_the_end_of_its_permit_wherever_that_moves() {
    let (gauge, clock) = (Semaphore::default(), FakeClock::default());
    gauge.allow(clock.now(), lease(10 * SECOND));
    let permit = gauge.try_acquire(1, || clock.now()).unwrap();
    let mut tasks = Tasks::new(&clock);
    tasks.spawn(permit.expired_by(&clock));
    tasks.pass(Duration::from_secs(9));
    gauge.allow(clock.now(), lease(20 * SECOND));
    tasks.pass(Duration::from_secs(6));
    assert_eq!(tasks.finished().len(), 0, "it was renewed");
    // A lease that is cut short wakes who sleeps until its end.
    gauge.allow(clock.now(), lease(16 * SECOND));
    tasks.pass(Duration::from_millis(999));
    assert_eq!(tasks.finished().len(), 0);
    tasks.pass(Duration::from_millis(1));
    assert_eq!(tasks.finished().len(), 1);
    // Nobody has to wait for what has been.
    tasks.spawn(permit.expired_by(&clock));
    assert_eq!(tasks.finished().len(), 1);
}

#[test]
fn a_permit_without_units_ends_with_the_one_that_it_was_made_of() {
    let (gauge, clock) = (Semaphore::default(), FakeClock::default());
    gauge.allow(clock.now(), lease(10 * SECOND));
    let permit = gauge.try_acquire(2, || clock.now()).unwrap();
    let watch = permit.without_units();
    assert_eq!((watch.units(), gauge.in_use()), (0, 2));
    drop(permit);
    assert_eq!(gauge.in_use(), 0, "it holds nothing");
    let mut tasks = Tasks::new(&clock);
    tasks.spawn(watch.expired_by(&clock));
    tasks.pass(Duration::from_secs(5));
    gauge.allow(clock.now(), lease(20 * SECOND));
    tasks.pass(Duration::from_secs(14));
    assert_eq!(tasks.finished().len(), 0, "it was renewed");
    tasks.pass(Duration::from_secs(1));
    assert_eq!(tasks.finished().len(), 1);
    gauge.allow(clock.now(), lease(30 * SECOND));
    assert!(watch.is_expired_at(clock.now()), "what is leased later is another lease");
}

#[test]
fn who_waits_for_the_end_of_what_has_none_is_woken_by_nothing() {
    let (gauge, clock) = (gauge(3), FakeClock::default());
    let permit = take(&gauge, 1).unwrap();
    let mut tasks = Tasks::new(&clock);
    let waiter = tasks.spawn(permit.expired_by(&clock));
    tasks.pass(Duration::from_secs(1_000));
    gauge.allow(clock.now(), lease(2_000 * SECOND));
    tasks.pass(Duration::from_secs(10_000));
    assert_eq!(tasks.finished().len(), 0);
    tasks.cancel(waiter);
}

#[test]
fn a_permit_that_has_ended_does_not_grow() {
    let gauge = Semaphore::default();
    gauge.allow(Time::ZERO, lease(SECOND));
    let mut permit = gauge.try_acquire(1, || Time::ZERO).unwrap();
    gauge.allow(at(SECOND), lease(3 * SECOND));
    permit.grow(3, at(SECOND));
    assert_eq!((permit.units(), gauge.in_use()), (1, 1));
}

#[test]
fn the_peak_counts_who_was_denied() {
    let gauge = gauge(2);
    let permit = take(&gauge, 2).unwrap();
    assert!(take(&gauge, 3).is_err());
    drop(permit);
    assert_eq!(gauge.usage(), GaugeUsage { in_use: 0, waiting: 0, peak: 5 });
    assert_eq!(gauge.usage().peak, 0);
}

#[test]
fn threads_together_keep_to_the_limit() {
    let gauge = gauge(3);
    let (out, most) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50_000 {
                    if let Ok(permit) = take(&gauge, 1) {
                        most.fetch_max(out.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        out.fetch_sub(1, Ordering::SeqCst);
                        drop(permit);
                    }
                }
            });
        }
    });
    assert!((1..=3).contains(&most.into_inner()));
    assert_eq!(gauge.in_use(), 0);
}

#[derive(Clone, Debug)]
enum Event {
    Take(u32),
    Drop(usize),
    Allow(u64),
}

proptest! {
    // Against a list of what is out.
    #[test]
    fn never_more_out_than_leased_when_the_last_one_went_out(
        events in prop::collection::vec(
            prop_oneof![
                (1..5u32).prop_map(Event::Take),
                (0..100usize).prop_map(Event::Drop),
                (0..20u64).prop_map(Event::Allow),
            ],
            1..200,
        ),
    ) {
        let gauge = gauge(10);
        let (mut permits, mut limit) = (Vec::new(), 10);
        for event in events {
            let out: u64 = permits.iter().map(|permit: &Permit| u64::from(permit.units())).sum();
            prop_assert_eq!(u64::from(gauge.in_use()), out);
            match event {
                Event::Take(n) => {
                    let taken = take(&gauge, n);
                    prop_assert_eq!(taken.is_ok(), out + u64::from(n) <= limit);
                    permits.extend(taken);
                }
                Event::Drop(_) if permits.is_empty() => {}
                Event::Drop(index) => drop(permits.swap_remove(index % permits.len())),
                Event::Allow(units) => {
                    limit = units;
                    gauge.allow(Time::ZERO, Allowance::forever(Amount::from_units(units)));
                }
            }
        }
    }
}

type Waiters<'a> = Tasks<'a, Result<Permit, Denied>>;

/// The tasks that finished, and whether each has a permit; the permits come back.
fn done(tasks: &mut Waiters) -> Vec<(usize, bool)> {
    tasks.finished().into_iter().map(|(task, permit)| (task, permit.is_ok())).collect()
}

#[test]
fn permits_that_come_back_go_to_who_waits_in_order() {
    let (gauge, clock) = (gauge(2), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    let out = [take(&gauge, 1).unwrap(), take(&gauge, 1).unwrap()];
    let both = tasks.spawn(gauge.acquire_by(&clock, 2));
    let one = tasks.spawn(gauge.acquire_by(&clock, 1));
    let [first, second] = out;
    drop(first);
    tasks.run();
    assert_eq!(take(&gauge, 1).unwrap_err(), Denied::OthersWait { waiting: 3 });
    assert_eq!(done(&mut tasks), []);
    drop(second);
    tasks.run();
    assert_eq!(done(&mut tasks), [(both, true)]);
    tasks.run();
    assert_eq!(done(&mut tasks), [(one, true)]);
    assert_eq!(gauge.usage(), GaugeUsage { in_use: 0, waiting: 0, peak: 5 });
}

#[test]
fn who_goes_away_lets_the_next_one_in() {
    let (gauge, clock) = (gauge(3), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    let out = take(&gauge, 2).unwrap();
    let big = tasks.spawn(gauge.acquire_by(&clock, 3));
    let small = tasks.spawn(gauge.acquire_by(&clock, 1));
    assert_eq!(done(&mut tasks), []);
    tasks.cancel(big);
    assert_eq!(done(&mut tasks), [(small, true)]);
    drop(out);
    assert_eq!((gauge.in_use(), gauge.usage().waiting), (0, 0));
}

#[test]
fn waits_are_bounded_in_number_and_time() {
    let clock = FakeClock::default();
    let max_wait = Duration::from_secs(1);
    let gauge = Semaphore::new(Waiting { max_wait, max_waiters: 1 });
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(gauge.acquire_by(&clock, 1));
    tasks.spawn(gauge.acquire_by(&clock, 1));
    let (_, refused) = tasks.finished().remove(0);
    assert_eq!(refused.unwrap_err(), Denied::TooManyWaiters { max_waiters: 1 });
    tasks.pass(max_wait);
    let (_, refused) = tasks.finished().remove(0);
    assert_eq!(refused.unwrap_err(), Denied::TimedOut { max_wait });
    let hasty = Duration::from_millis(10);
    tasks.spawn(gauge.acquire_within(&clock, 1, hasty));
    tasks.pass(hasty);
    let (_, refused) = tasks.finished().remove(0);
    assert_eq!(refused.unwrap_err(), Denied::TimedOut { max_wait: hasty });
}

#[test]
fn a_greater_allowance_wakes_who_waits() {
    let (gauge, clock) = (gauge(0), FakeClock::default());
    let mut tasks = Waiters::new(&clock);
    for _ in 0..3 {
        tasks.spawn(gauge.acquire_by(&clock, 1));
    }
    gauge.allow(Time::ZERO, Allowance::forever(Amount::from_units(3)));
    tasks.run();
    assert_eq!(done(&mut tasks), [(0, true), (1, true), (2, true)]);
}
