//! Keys as parts of a request: all of it, or nothing.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::limiter::Limiter;
use crate::together::{Combination, Price, TogetherAnswer, TogetherDenied};

/// Keys of which those named have leases of so many units of a hundred a minute.
fn keys(leases: &[(&str, u64)]) -> WindowKeys {
    let keys = WindowKeys::new("api/", KeysOptions::default(), Waker::noop().clone());
    for (name, units) in leases {
        let key = keys.find(name, &|| at(0.0)).unwrap();
        key.window.allow(at(0.0), lease(*units, 1_000.0));
    }
    keys
}

/// A rate of `units` a second, which are all there at 1 s.
fn rate(units: u64) -> Limiter {
    let limiter = Limiter::new(Duration::from_secs(1));
    limiter.allow(Time::ZERO, Allowance::forever(Amount::from_units(units)));
    limiter
}

fn uses(keys: &WindowKeys, name: &str, seconds: f64) -> u32 {
    keys.usage(name, at(seconds)).map_or(0, |usage| usage.uses)
}

#[test]
fn a_part_that_refuses_leaves_all_windows_as_they_were() {
    let (keys, rate) = (keys(&[("a", 5), ("b", 3)]), rate(10));
    let both = |n| {
        Combination::once().window(&keys, "b", Price::Once(n)).rate(&rate, Price::Once(2)).window(
            &keys,
            "a",
            Price::Once(n),
        )
    };
    let permit = both(2).try_acquire(|| at(1.0)).unwrap();
    assert_eq!(
        permit.answers(),
        [TogetherAnswer::Taken(2), TogetherAnswer::Taken(2), TogetherAnswer::Taken(2)]
    );
    drop(permit);
    assert_eq!((uses(&keys, "a", 1.0), uses(&keys, "b", 1.0), rate.usage().granted), (2, 2, 2));

    // One window refuses: neither the other nor the rate is touched.
    let Err(TogetherDenied::Refused(refusal)) = both(2).try_acquire(|| at(1.0)) else { panic!("granted") };
    let [TogetherAnswer::Denied(denied), TogetherAnswer::Agreed, TogetherAnswer::Agreed] =
        &refusal.answers[..]
    else {
        panic!("{refusal}")
    };
    assert!(matches!(denied, Denied::WindowFull { uses: 2, leased: 3, .. }), "{denied:?}");
    assert_eq!((uses(&keys, "a", 1.0), uses(&keys, "b", 1.0), rate.usage().granted), (2, 2, 2));

    // The rate refuses: no window is.
    let much = Combination::once().window(&keys, "a", Price::Once(1)).rate(&rate, Price::Once(9));
    assert!(much.try_acquire(|| at(1.0)).is_err());
    assert_eq!((uses(&keys, "a", 1.0), rate.usage().granted), (2, 2));
}

#[test]
fn copies_are_as_many_as_all_windows_allow() {
    let keys = keys(&[("a", 7), ("b", 100)]);
    let request = |min, copies| {
        Combination::between(min, copies).window(&keys, "a", Price::Each(3)).window(
            &keys,
            "b",
            Price::Each(1),
        )
    };
    let permit = request(1, 5).try_acquire(|| at(1.0)).unwrap();
    assert_eq!((permit.copies(), permit.bound_by()), (2, Some(0)));
    assert_eq!((uses(&keys, "a", 1.0), uses(&keys, "b", 1.0)), (6, 2));
    assert!(request(1, 5).try_acquire(|| at(1.0)).is_err());
    assert_eq!((uses(&keys, "a", 1.0), uses(&keys, "b", 1.0)), (6, 2));
}

#[test]
fn a_use_is_dated_under_the_lock() {
    let keys = keys(&[("a", 1)]);
    // Whoever asks is held up for 50 s between the first look at the clock and the lock.
    let looks = Cell::new(0);
    let clock = || {
        looks.set(looks.get() + 1);
        at(if looks.get() == 1 { 1.0 } else { 51.0 })
    };
    drop(Combination::once().window(&keys, "a", Price::Once(1)).try_acquire(clock).unwrap());
    assert_eq!(uses(&keys, "a", 51.0 + KEPT.as_secs_f64() - 0.001), 1);
    assert_eq!(uses(&keys, "a", 51.0 + KEPT.as_secs_f64() + 0.015), 0);
}

#[test]
fn what_is_refused_is_wanted_and_a_key_is_looked_at() {
    let keys = keys(&[("a", 1)]);
    let _ = keys.take_looks();
    let request = Combination::once().window(&keys, "a", Price::Once(1)).window(&keys, "new", Price::Once(2));
    let refused = request.try_acquire(|| at(1.0)).unwrap_err();
    let (part, denied) = refused.denial().unwrap();
    assert_eq!((part, denied), (1, Denied::NothingLeased));
    let looks: Vec<_> = keys.take_looks().iter().map(|key| key.resource().to_string()).collect();
    assert_eq!(looks, ["api/new"], "the other one would have granted it, and is no news");
    let new = keys.find("new", &|| at(1.0)).unwrap();
    assert_eq!(wanted(&new.window, 1.0).0, [2, 0]);
}

#[test]
fn a_key_stands_in_a_request_once_and_has_a_name_that_servers_take() {
    let keys = keys(&[("a", 9)]);
    let twice = Combination::once().window(&keys, "a", Price::Once(1)).window(&keys, "a", Price::Once(1));
    assert_eq!(twice.try_acquire(|| at(1.0)).unwrap_err(), TogetherDenied::Twice { first: 0, second: 1 });
    let long = "x".repeat(300);
    let bad = Combination::once().window(&keys, "a", Price::Once(1)).window(&keys, &long, Price::Once(1));
    let refused = bad.try_acquire(|| at(1.0)).unwrap_err();
    assert!(matches!(refused.denial(), Some((1, Denied::BadKey { .. }))), "{refused}");
    assert_eq!(uses(&keys, "a", 1.0), 0);
}

#[test]
fn nothing_is_used_of_a_key_that_was_given_back_meanwhile() {
    let keys = keys(&[("a", 9)]);
    let found = keys.find("a", &|| at(0.0)).unwrap();
    // Whoever has found it is held up until the key is idle and given back; its lease has not ended.
    assert!(keys.retire(at(20.0), &found));
    assert_eq!(found.window.try_acquire(1, || at(20.0)), Err(Denied::NothingLeased));
    assert_eq!(found.locked().room(at(20.0), 1, 1), Err(Denied::NothingLeased));
    assert!(keys.is_empty());
}

#[test]
fn a_request_that_waits_has_what_comes_within_milliseconds() {
    let keys = keys(&[]);
    let clock = FakeClock::default();
    let request = Combination::once().window(&keys, "a", Price::Once(1));
    let mut tasks = Tasks::new(&clock);
    tasks.spawn(request.acquire_by(&clock, Duration::from_secs(1), |_| ()));
    tasks.run();
    assert!(tasks.finished().is_empty(), "nothing is leased");
    keys.find("a", &|| clock.now()).unwrap().window.allow(clock.now(), lease(1, 1_000.0));
    tasks.pass(Duration::from_millis(20));
    let [(_, Ok(permit))] = &tasks.finished()[..] else { panic!("it waits on") };
    assert_eq!(
        (permit.copies(), keys.find("a", &|| clock.now()).unwrap().window.in_use(clock.now())),
        (1, 1)
    );
}

#[test]
fn opposite_orders_of_windows_hold_nobody_up_and_nothing_is_used_twice() {
    let (keys, rate) = (keys(&[("a", 100), ("b", 100)]), rate(1_000_000));
    let [forth, back] = [["a", "b"], ["b", "a"]].map(|[one, other]| {
        Combination::once().window(&keys, one, Price::Each(1)).rate(&rate, Price::Each(1)).window(
            &keys,
            other,
            Price::Each(1),
        )
    });
    let (granted, single) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for request in [&forth, &back] {
            let granted = &granted;
            scope.spawn(move || {
                for _ in 0..500 {
                    granted.fetch_add(u64::from(request.try_acquire(|| at(1.0)).is_ok()), Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..50 {
                let made = keys.try_acquire("b", 1, || at(1.0));
                single.fetch_add(u64::from(made.is_ok()), Ordering::SeqCst);
            }
        });
    });
    let (granted, single) = (granted.into_inner(), single.into_inner());
    assert_eq!(granted + single, 100, "the hundredth use of b is the last that anybody has");
    assert_eq!((u64::from(uses(&keys, "a", 1.0)), uses(&keys, "b", 1.0)), (granted, 100));
    assert_eq!(rate.usage().granted, granted);
}

#[test]
fn in_a_request_a_window_lets_pass_what_it_has_not() {
    let keys = keys(&[("a", 2)]);
    let key = keys.find("a", &|| at(1.0)).unwrap();
    key.window.allow(at(1.0), Allowance { unenforced: true, ..lease(2, 1_000.0) });
    let ask = |n| Combination::once().window(&keys, "a", Price::Once(n)).try_acquire(|| at(1.0));
    assert!(ask(1).is_ok());
    assert_eq!((uses(&keys, "a", 1.0), keys.unenforced()), (1, 0));
    assert!(ask(5).is_ok(), "it passes, and none of it counts");
    assert_eq!((uses(&keys, "a", 1.0), keys.unenforced()), (1, 5));
}

#[test]
fn a_request_waits_no_longer_where_nothing_has_come_for_twice_its_time() {
    let keys = keys(&[("a", 1)]);
    let clock = FakeClock::default();
    let request = Combination::once().window(&keys, "a", Price::Once(1));
    drop(request.try_acquire(|| clock.now()).unwrap());
    let mut tasks = Tasks::new(&clock);
    let wait = |millis| request.acquire_by(&clock, Duration::from_millis(millis), |_| ());
    // Some of the limit lies elsewhere, and nobody knows whether it is free there.
    let first = tasks.spawn(wait(100));
    tasks.pass(Duration::from_millis(50));
    let second = tasks.spawn(wait(100));
    assert!(tasks.finished().is_empty());
    tasks.pass(Duration::from_millis(170));
    let finished: Vec<_> = tasks.finished().into_iter().map(|(task, made)| (task, made.is_err())).collect();
    assert_eq!(finished, [(first, true), (second, true)]);
    let third = tasks.spawn(wait(100));
    let fourth = tasks.spawn(wait(1_500));
    let finished: Vec<_> = tasks.finished().into_iter().map(|(task, made)| (task, made.is_err())).collect();
    assert_eq!(finished, [(third, true)], "at once");
    keys.find("a", &|| clock.now()).unwrap().window.allow(clock.now(), lease(2, 1_000.0));
    tasks.pass(Duration::from_secs(1));
    let [(task, Ok(_))] = &tasks.finished()[..] else { panic!("it waits on") };
    assert_eq!(*task, fourth);
}

#[test]
fn a_request_that_waits_is_called_when_a_lease_comes_or_uses_are_undone() {
    let keys = keys(&[("a", 1)]);
    let clock = FakeClock::default();
    let find = |key| keys.find(key, &|| clock.now()).unwrap();
    let request = Combination::once().window(&keys, "a", Price::Once(1)).window(&keys, "new", Price::Once(1));
    let other = Combination::once().window(&keys, "new", Price::Once(1));
    let mut tasks = Tasks::new(&clock);
    let first = tasks.spawn(request.acquire_by(&clock, Duration::from_secs(5), |_| ()));
    let second = tasks.spawn(other.acquire_by(&clock, Duration::from_secs(5), |_| ()));
    tasks.run();
    assert!(tasks.finished().is_empty());
    // No time passes.
    find("new").window.allow(clock.now(), lease(1, 1_000.0));
    tasks.run();
    let finished: Vec<_> = tasks.finished().into_iter().map(|(task, made)| (task, made.is_ok())).collect();
    assert_eq!(finished, [(first, true)], "there was one, and it needed nothing else");
    assert_eq!(find("new").window.refund(1, clock.now()), 1);
    tasks.run();
    let finished: Vec<_> = tasks.finished().into_iter().map(|(task, made)| (task, made.is_ok())).collect();
    assert_eq!(finished, [(second, true)]);
}
