//! Tests of windows: one by itself, and keys in front of a grantor that is not there.

use std::collections::VecDeque;
use std::task::Waker;

use proptest::prelude::*;

use super::*;
use crate::waiting::Clock;
use crate::waiting::fake::{FakeClock, Tasks};

mod together;

const MINUTE: Duration = Duration::from_secs(60);
/// For so long a use in a minute is kept, on a clock that may be fast.
const KEPT: Duration = Duration::from_millis(60_600);

fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

/// A lease of `units` of a hundred a minute, until `until`.
fn lease(units: u64, until: f64) -> Allowance {
    let window = Some(UseWindow { length: MINUTE, limit: 100 });
    Allowance { window, ..Allowance::new(Some(Amount::from_units(units)), at(until)) }
}

fn window(units: u64, until: f64) -> ExactWindow {
    let window = ExactWindow::new(Drift::DEFAULT);
    window.allow(Time::ZERO, lease(units, until));
    window
}

fn used(window: &ExactWindow, n: u32, seconds: f64) -> Result<(), Denied> {
    window.try_acquire(n, || at(seconds))
}

/// The wants of a window, urgent and at hand, and after how many milliseconds to look again.
fn wanted(window: &ExactWindow, seconds: f64) -> ([u64; 2], Option<u128>) {
    let want = window.want(at(seconds), 3);
    let [urgent, reserve] = want.bands[..] else { unreachable!("two bands") };
    assert_eq!((urgent.priority, reserve.priority), (3, lessor_proto::message::Band::RESERVE));
    let next = (want.next_look < Time::MAX).then(|| want.next_look.since(at(seconds)).as_millis());
    ([urgent, reserve].map(|band| band.wants as u64), next)
}

#[test]
fn a_unit_comes_back_when_the_window_has_passed_on_the_fastest_clock() {
    let window = window(2, 1_000.0);
    used(&window, 2, 0.0).unwrap();
    for seconds in [0.0, 30.0, 60.0, 60.599] {
        assert_eq!((used(&window, 1, seconds).is_err(), window.in_use(at(seconds))), (true, 2));
    }
    // An end is rounded up, by a 4,096th of the window at the most.
    assert_eq!(window.in_use(at(60.615)), 0);
    assert_eq!(used(&window, 2, 60.615), Ok(()));
}

#[test]
fn a_use_that_would_outlast_the_lease_is_none_and_takes_nothing() {
    let window = window(5, 100.0);
    used(&window, 1, 39.3).unwrap();
    assert_eq!(used(&window, 1, 39.5), Err(Denied::NothingLeased));
    assert!(!Denied::NothingLeased.is_over_limit());
    assert_eq!(window.in_use(at(39.5)), 1);
    window.allow(at(39.5), lease(5, 200.0));
    assert_eq!(used(&window, 4, 39.5), Ok(()));
}

#[test]
fn without_a_window_or_a_lease_nothing_is_granted() {
    let window = ExactWindow::new(Drift::DEFAULT);
    assert_eq!(used(&window, 0, 0.0), Ok(()), "nothing is always granted");
    assert_eq!(used(&window, 1, 0.0), Err(Denied::NothingLeased));
    window.allow(at(0.0), Allowance::new(Some(Amount::from_units(5)), at(100.0)));
    assert_eq!(used(&window, 1, 0.0), Err(Denied::NothingLeased), "the server names no window");
    window.allow(at(0.0), lease(5, 100.0));
    assert_eq!(used(&window, 1, 0.0), Ok(()));
    window.allow(at(0.0), Allowance::NOTHING);
    assert_eq!((used(&window, 1, 0.0), window.in_use(at(60.0))), (Err(Denied::NothingLeased), 1));
}

#[test]
fn why_nothing_is_leased_is_said_where_it_is_known() {
    let window = ExactWindow::new(Drift::DEFAULT);
    window.explain(Some(Unserved::Learning(at(7.0))));
    let denied = used(&window, 1, 2.0).unwrap_err();
    assert_eq!(denied, Denied::Learning { retry_after: Some(Duration::from_secs(5)) });
    // A server that learns grants nothing: that is no limit.
    window.allow(at(2.0), lease(0, 100.0));
    assert_eq!(used(&window, 1, 3.0), Err(Denied::Learning { retry_after: Some(Duration::from_secs(4)) }));
    window.explain(None);
    assert!(used(&window, 1, 3.0).unwrap_err().is_over_limit(), "all of it is elsewhere");
}

#[test]
fn a_smaller_lease_takes_nothing_back_and_grants_nothing_before_enough_is_free() {
    let window = window(5, 1_000.0);
    for second in 0..5_u32 {
        used(&window, 1, second.into()).unwrap();
    }
    window.allow(at(10.0), lease(3, 1_000.0));
    assert_eq!(window.in_use(at(10.0)), 5);
    assert!(used(&window, 1, 62.0).is_err(), "three are in use still");
    assert_eq!(used(&window, 1, 62.65), Ok(()));
}

#[test]
fn an_attempt_after_the_time_that_was_told_finds_what_it_asked_for() {
    let window = window(100, 1_000.0);
    for second in 0..100_u32 {
        used(&window, 1, f64::from(second) / 2.0).unwrap();
    }
    let again = |n| used(&window, n, 50.0).unwrap_err().exact_retry_after().unwrap();
    let (one, three) = (again(1), again(3));
    assert!(one > Duration::from_millis(10_590) && one < Duration::from_millis(10_620), "{one:?}");
    assert!(three.abs_diff(one + Duration::from_secs(1)) < Duration::from_millis(15), "{three:?}");
    assert!(window.try_acquire(3, || at(49.999) + three).is_err());
    assert_eq!(window.try_acquire(3, || at(50.0) + three), Ok(()));
    assert_eq!(used(&window, 101, 55.0), Err(Denied::AboveBurst { n: 101, burst: 100 }));
}

#[test]
fn where_units_lie_elsewhere_the_next_attempt_is_soon_and_later_if_none_come() {
    let window = window(2, 1_000.0);
    used(&window, 2, 0.0).unwrap();
    let again = |seconds| used(&window, 1, seconds).unwrap_err().exact_retry_after().unwrap();
    assert_eq!(again(1.0), Duration::from_millis(10));
    assert_eq!(again(1.4), Duration::from_millis(200));
    assert_eq!(again(5.0), Duration::from_secs(1));
    let soon = again(60.5);
    assert!(soon < Duration::from_millis(120), "the first unit here is free before that: {soon:?}");
}

#[test]
fn hits_keep_the_window_that_they_were_made_in() {
    let window = window(2, 10_000.0);
    used(&window, 1, 0.0).unwrap();
    let hour = Some(UseWindow { length: MINUTE * 60, limit: 100 });
    window.allow(at(1.0), Allowance { window: hour, ..lease(2, 10_000.0) });
    used(&window, 1, 1.0).unwrap();
    assert_eq!([59.0, 61.0, 3_600.0, 3_639.0].map(|second| window.in_use(at(second))), [2, 1, 1, 0]);
}

#[test]
fn a_refund_leaves_each_other_use_a_unit_that_is_kept_as_long() {
    let window = window(2, 1_000.0);
    used(&window, 1, 0.0).unwrap();
    used(&window, 1, 50.0).unwrap();
    assert_eq!(window.refund(1, at(51.0)), 1);
    // Had the second unit been freed, two more would fit beside the second use at 61 s.
    used(&window, 1, 61.0).unwrap();
    assert!(used(&window, 1, 61.0).is_err());
    assert_eq!((window.refund(5, at(61.0)), window.in_use(at(61.0))), (2, 0));
}

#[test]
fn who_waits_is_served_in_order_when_units_come_back_or_from_elsewhere() {
    let (window, clock) = (window(2, 1_000.0), FakeClock::default());
    let waiting = Waiting { max_wait: MINUTE * 2, max_waiters: 3 };
    let calls = std::cell::Cell::new(0);
    let mut tasks = Tasks::new(&clock);
    window.try_acquire(2, || clock.now()).unwrap();
    let call = |attention| calls.set(calls.get() + u32::from(attention == Attention::Now));
    let wait = |n| window.wait_for(&clock, n, waiting, call);
    let [first, second, third] = [1, 2, 1].map(|n| tasks.spawn(wait(n)));
    assert_eq!(calls.get(), 1, "the driver is called once");
    tasks.spawn(wait(1));
    assert_eq!(tasks.finished(), [(third + 1, Err(Denied::TooManyWaiters { max_waiters: 3 }))]);
    let others = window.try_acquire(1, || clock.now());
    assert_eq!(others, Err(Denied::OthersWait { waiting: 4 }), "nobody passes");
    tasks.pass(KEPT + Duration::from_millis(20));
    assert_eq!(tasks.finished(), [(first, Ok(()))], "one of two units, and the next one waits for two");
    window.allow(clock.now(), lease(3, 1_000.0));
    tasks.run();
    assert_eq!(tasks.finished(), [(second, Ok(()))]);
    tasks.cancel(third);
    assert_eq!(window.usage(clock.now()).uses, 3);
    assert_eq!(wanted(&window, 61.0).0[0], 3, "nobody waits any more");
}

#[test]
fn what_is_spent_and_refused_is_wanted_and_what_lies_unused_after_all_else() {
    let window = window(10, 1_000.0);
    for _ in 0..4 {
        used(&window, 1, 0.0).unwrap();
    }
    assert_eq!(wanted(&window, 0.1).0, [4, 6]);
    used(&window, 6, 1.0).unwrap();
    assert!(used(&window, 3, 1.0).is_err());
    let (wants, next) = wanted(&window, 1.0);
    // As many as are in use are wanted ahead, where that is no more than an eighth of the limit.
    assert_eq!((wants, next), ([14, 10], Some(1_000)));
    assert_eq!(wanted(&window, 2.1).0, [10, 10], "whoever was refused did not come again");
    assert_eq!(wanted(&window, 60.7).0, [6, 0], "who has been silent keeps nothing at hand");
    assert!(used(&window, 11, 60.7).is_err());
    assert_eq!(wanted(&window, 61.8).0, [0, 10]);
    assert_eq!(wanted(&window, 70.7), ([0, 0], None));
    assert!(window.want(at(70.7), 0).is_idle);
}

#[test]
fn whoever_drives_it_is_called_once_for_many_uses_and_at_once_for_a_refusal() {
    let window = window(3, 1_000.0);
    let attempt = |n| window.attempt(n, || at(1.0)).1;
    assert_eq!([attempt(1), attempt(1)], [Attention::Soon, Attention::None]);
    assert_eq!([attempt(2), attempt(2)], [Attention::Now, Attention::None]);
    assert!(!window.want(at(1.0), 0).is_idle);
    assert_eq!([attempt(101), attempt(1), attempt(2)], [Attention::None, Attention::Soon, Attention::Now]);
}

#[test]
fn threads_together_make_no_more_uses_than_units() {
    let window = window(1_000, 1_000.0);
    let made: usize = std::thread::scope(|scope| {
        let hit = || (0..1_000).filter(|_| used(&window, 1, 1.0).is_ok()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(hit)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    // More than the limit that the server names is granted to nobody, and all of it to somebody.
    assert_eq!((made, window.in_use(at(1.0))), (1_000, 1_000));
}

/// Keys whose waker is never looked at.
fn keys(most: usize) -> WindowKeys {
    WindowKeys::new("api/", KeysOptions { most, ..KeysOptions::default() }, Waker::noop().clone())
}

#[test]
fn a_key_is_a_resource_and_remembered_until_it_is_idle() {
    let keys = keys(2);
    let hit = |key: &str| keys.try_acquire(key, 1, || at(0.0));
    assert_eq!([hit("a"), hit("b")], [Err(Denied::NothingLeased), Err(Denied::NothingLeased)]);
    assert_eq!(hit("c"), Err(Denied::TooManyKeys { most: 2 }));
    let looks = keys.take_looks();
    assert_eq!(looks.iter().map(|key| key.resource().as_str()).collect::<Vec<_>>(), ["api/a", "api/b"]);
    looks[0].window.allow(at(0.0), lease(1, 1_000.0));
    assert_eq!((hit("a"), keys.usage("a", at(1.0)).unwrap().uses), (Ok(()), 1));
    assert_eq!([10.0, 60.7].map(|second| keys.retire(at(second), &looks[0])), [false, true]);
    assert_eq!((keys.retire(at(9.0), &looks[1]), keys.retire(at(10.0), &looks[1])), (false, true));
    assert!(keys.is_empty());
    assert_eq!((keys.refund("a", 1, at(61.0)), keys.usage("a", at(61.0))), (0, None));
}

#[test]
fn what_lies_at_hand_is_taken_with_the_use_after_it_and_nothing_else_is_asked_for() {
    let keys = keys(2);
    let take = |key: &str, n| keys.take_at_hand(key, n, || at(0.0));
    assert_eq!(take("a", 1), None);
    assert!(keys.is_empty() && keys.take_looks().is_empty(), "nobody heard of it");
    assert!(keys.try_acquire("a", 1, || at(0.0)).is_err());
    let looks = keys.take_looks();
    looks[0].window.allow(at(0.0), lease(5, 1_000.0));
    let _ = looks[0].window.want(at(0.0), 0);
    let usage = take("a", 3).unwrap();
    assert_eq!((usage.uses, usage.leased, Some(usage)), (3, 5, keys.usage("a", at(0.0))));
    assert_eq!((keys.take_looks().len(), take("a", 3), keys.take_looks().len()), (1, None, 0));
    assert_eq!(keys.usage("a", at(0.0)), Some(usage), "what is refused takes nothing");
    assert_eq!(take("a", 2).map(|usage| usage.uses), Some(5));
}

#[test]
fn a_key_for_which_nobody_could_wait_is_idle_like_any_other() {
    let (keys, clock) = (keys(2), FakeClock::default());
    let mut tasks = Tasks::new(&clock);
    let first = tasks.spawn(keys.acquire_within(&clock, "a", 1, Duration::ZERO));
    assert_eq!(tasks.finished(), [(first, Err(Denied::NothingLeased))]);
    let looks = keys.take_looks();
    assert!(keys.retire(at(10.0), &looks[0]), "nobody stands in a queue that nobody was let into");
}

#[test]
fn a_key_that_cannot_be_a_name_is_refused_with_the_reason() {
    let denied = keys(2).try_acquire("a\nb", 1, || at(0.0)).unwrap_err();
    let told = r#""api/a\nb" cannot be the name of a resource: it contains the control character '\n'"#;
    assert_eq!(denied.to_string(), told);
    assert!(denied.is_refusal() && !denied.is_over_limit());
}

#[derive(Clone, Debug)]
enum Event {
    Use(u32),
    Refund(u32),
    Lease(u64, u64),
    Pass(u64),
}

proptest! {
    // Against a list of what was used when.
    #[test]
    fn no_window_has_more_uses_than_were_leased_in_it_and_no_use_outlasts_its_lease(
        events in prop::collection::vec(
            prop_oneof![
                6 => (1..4u32).prop_map(Event::Use),
                1 => (1..3u32).prop_map(Event::Refund),
                2 => (0..12u64, 0..200u64).prop_map(|(units, lasts)| Event::Lease(units, lasts)),
                4 => (1..30u64).prop_map(Event::Pass),
            ],
            1..200,
        ),
    ) {
        let window = ExactWindow::new(Drift::DEFAULT);
        let (mut now, mut until, mut limit) = (0_u64, 0, 0);
        let mut kept: VecDeque<u64> = VecDeque::new();
        for event in events {
            // Whole seconds: a use is over in the 61st.
            kept.retain(|&used| now < used + 61);
            match event {
                Event::Use(n) => {
                    let fits = kept.len() as u64 + u64::from(n) <= limit && now + 61 <= until;
                    prop_assert_eq!(used(&window, n, now as f64).is_ok(), fits);
                    kept.extend((0..n).filter(|_| fits).map(|_| now));
                }
                Event::Refund(n) => {
                    let n = kept.len().min(n as usize);
                    prop_assert_eq!(window.refund(n as u32, at(now as f64)), n as u32);
                    kept.drain(..n);
                }
                Event::Lease(units, lasts) => {
                    (limit, until) = (units, now + lasts);
                    window.allow(at(now as f64), lease(units, until as f64));
                    limit = if lasts > 0 { limit } else { 0 };
                }
                Event::Pass(seconds) => now += seconds,
            }
            kept.retain(|&used| now < used + 61);
            prop_assert_eq!(window.in_use(at(now as f64)) as usize, kept.len());
        }
    }
}

#[test]
fn uses_of_what_lies_at_hand_in_plenty_call_nobody_and_those_of_the_rest_do() {
    let window = window(40, 1_000.0);
    let uses = |n, seconds| (0..n).map(|_| window.attempt(1, || at(seconds)).1).collect::<Vec<_>>();
    assert_eq!(uses(2, 0.0), [Attention::Soon, Attention::None], "nothing was in use");
    let _ = wanted(&window, 0.1);
    assert_eq!(uses(2, 0.2), [Attention::Soon, Attention::None], "less than a quarter of two");
    assert!(uses(12, 0.2).iter().all(|attention| *attention == Attention::None), "it was called already");
    let _ = wanted(&window, 0.3);
    let called = uses(6, 0.4);
    assert_eq!(called.iter().position(|attention| *attention == Attention::Soon), Some(4), "a quarter of 16");
    // Of 40 units 22 are in use, and as many ahead as a part of the limit: 12.
    let _ = wanted(&window, 0.5);
    assert_eq!(uses(7, 0.6).iter().position(|attention| *attention == Attention::Soon), Some(5));
    // Nobody has asked for a while, so the next who does is seen.
    let _ = wanted(&window, 10.7);
    assert_eq!(uses(1, 10.8), [Attention::Soon]);
}
