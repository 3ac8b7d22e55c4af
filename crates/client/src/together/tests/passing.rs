//! Everything is let pass: what leases and policies would have refused is counted, and what they decide is as ever.

use lessor_proto::Drift;
use lessor_proto::message::{Unenforced, UseWindow};

use super::*;
use crate::denied::Denied;
use crate::waiting::fake::{FakeClock, Tasks};
use crate::window::ExactWindow;

/// The same, and what it does not allow passes.
fn open(allowance: Allowance) -> Allowance {
    Allowance { unenforced: true, ..allowance }
}

fn units(asked: u64, passed: u64) -> Unenforced {
    Unenforced { asked, passed, silent: 0 }
}

#[test]
fn a_rate_lets_pass_what_it_refuses_and_gives_what_it_has_first() {
    let lease = lease(10);
    lease.allow(Time::ZERO, open(allow(10)));
    let take = |n| lease.try_acquire(n, || at(1.0));
    assert_eq!((take(7), lease.unenforced()), (Ok(()), 0), "it is there");
    assert_eq!((take(5), lease.unenforced()), (Ok(()), 5), "it is not, and nothing is taken of what is");
    assert_eq!(lease.try_acquire_between(1, 9, || at(1.0)), Ok(9));
    assert_eq!((lease.unenforced(), lease.usage().granted), (11, 10), "three were there");
    assert_eq!(lease.usage().attempted, 21, "all that is asked for is wanted");
    assert_eq!(lease.unenforced_counts(), units(21, 11));
    lease.allow(at(1.0), allow(10));
    assert!(take(1).is_err(), "it is kept to again, from where it stood");
    assert_eq!((lease.try_acquire(10, || at(2.0)), lease.unenforced()), (Ok(()), 11));
    // Without a lease it is as with one that is used up.
    lease.allow(at(2.0), open(Allowance::NOTHING));
    assert_eq!((lease.try_acquire(1, || at(2.0)), lease.unenforced()), (Ok(()), 12));
    assert_eq!(lease.unenforced_counts(), units(22, 12), "of what was kept to nothing counts");
}

#[test]
fn nobody_waits_for_what_passes_and_who_waited_is_let_in() {
    let (lease, clock) = (lease(1), FakeClock::default());
    let mut waiters = Tasks::new(&clock);
    let wait = |n| lease.acquire_within(&clock, n, Duration::MAX);
    for n in [100, 1, 1] {
        waiters.spawn(wait(n));
    }
    waiters.run();
    assert_eq!(waiters.finished(), []);
    lease.allow(Time::ZERO, open(allow(1)));
    waiters.run();
    assert_eq!(waiters.finished(), [(0, Ok(())), (1, Ok(())), (2, Ok(()))]);
    waiters.spawn(wait(50));
    waiters.run();
    assert_eq!(waiters.finished(), [(3, Ok(()))]);
    assert_eq!((lease.unenforced(), lease.usage().waiting), (50, 0));
    assert_eq!(lease.unenforced_counts(), units(152, 50));
}

#[test]
fn permits_that_pass_do_not_count_and_have_no_end() {
    let gauge = gauge(3);
    gauge.allow(Time::ZERO, open(Allowance::new(Some(Amount::from_units(3)), at(60.0))));
    let take = |n| gauge.try_acquire(n, || at(1.0)).unwrap();
    let (two, five) = (take(2), take(5));
    assert_eq!((two.units(), five.units(), gauge.in_use(), gauge.unenforced()), (2, 5, 2, 5));
    assert_eq!((two.deadline(), five.deadline()), (Some(at(60.0)), None));
    let mut both = gauge.try_acquire_between(1, 4, || at(1.0)).unwrap();
    assert_eq!((both.units(), gauge.in_use(), gauge.unenforced()), (4, 3, 8), "one was there");
    assert_eq!(gauge.unenforced_counts(), units(11, 8));
    both.shrink(2);
    assert_eq!((both.units(), gauge.in_use()), (2, 3), "what has passed goes first");
    both.shrink(0);
    assert_eq!((both.units(), gauge.in_use()), (0, 2));
    drop((two, five, both));
    assert_eq!((gauge.in_use(), gauge.usage().in_use), (0, 0));
    gauge.allow(at(1.0), Allowance::new(Some(Amount::from_units(3)), at(60.0)));
    assert_eq!(gauge.try_acquire(4, || at(1.0)).unwrap_err(), Denied::Full { in_use: 0, limit: 3 });
}

#[test]
fn uses_of_a_window_that_pass_do_not_count_in_it() {
    let window = ExactWindow::new(Drift::DEFAULT);
    let in_window = Some(UseWindow { length: Duration::from_secs(60), limit: 10 });
    let leased = Allowance { window: in_window, ..Allowance::new(Some(Amount::from_units(2)), at(1_000.0)) };
    window.allow(Time::ZERO, open(leased));
    for _ in 0..5 {
        assert_eq!(window.try_acquire(1, || at(1.0)), Ok(()));
    }
    assert_eq!((window.in_use(at(1.0)), window.unenforced()), (2, 3));
    window.allow(at(1.0), leased);
    assert_eq!(window.unenforced_counts(), units(5, 3));
    assert!(matches!(window.try_acquire(1, || at(1.0)), Err(Denied::WindowFull { uses: 2, .. })));
}

#[test]
fn policies_refuse_nothing_while_the_lease_or_they_themselves_are_not_enforced() {
    let (tried, lease) = (domains(3, 60), lease(100));
    tried.set_unenforced(true);
    let decision = tried.request(&lease, "a", 5, 5, at(1.0));
    assert_eq!((decision.granted, decision.ground), (5, Ground::KillSwitch));
    assert_eq!(tried.counts().overruled, 1);
    // The program has not switched anything off, so that is all there is to it.
    tried.set_unenforced(false);
    assert!(!tried.request(&lease, "a", 5, 5, at(1.0)).is_granted());
    let rules = Rules { default: Some(Contract::from(policy(3, 60))), unenforced: true, ..Rules::default() };
    tried.follow(Some(Arc::new(Policies::new(rules).unwrap())));
    assert_eq!(tried.request(&lease, "a", 5, 5, at(2.0)).ground, Ground::KillSwitch);
    tried.follow(None);
    assert_eq!(tried.request(&lease, "a", 5, 5, at(3.0)).ground, Ground::NoPolicies);
}

#[test]
fn of_several_each_passes_for_itself() {
    let (rate, gauge, now) = (lease(3), gauge(2), at(1.0));
    gauge.allow(Time::ZERO, open(allow(2)));
    let ask = |copies| {
        let both = Combination::between(copies, copies);
        both.gauge(&gauge, Price::Each(1)).rate(&rate, Price::Each(1)).try_acquire(|| now)
    };
    let permit = ask(3).expect("what the gauge has not passes");
    assert_eq!((permit.copies(), gauge.in_use(), gauge.unenforced()), (3, 0, 3));
    assert!(ask(1).is_err(), "the rate is kept to");
    assert_eq!((gauge.in_use(), gauge.unenforced()), (0, 3), "the gauge had that");
    rate.allow(now, open(allow(3)));
    assert_eq!(ask(7).expect("all of it passes").copies(), 7);
    assert_eq!((rate.unenforced(), rate.usage().granted), (7, 3));
    assert_eq!((rate.unenforced_counts(), gauge.unenforced_counts().asked), (units(7, 7), 11));
    drop(permit);
    assert_eq!(gauge.in_use(), 0);
}
