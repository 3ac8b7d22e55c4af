//! Those who wait for a domain: they are granted at the moment that was named, or keep a place in the queue of its lease.

use super::*;
use crate::limiter::SentUnits;
use crate::waiting::Clock;
use crate::waiting::fake::{FakeClock, Tasks};

#[test]
fn who_waits_is_granted_at_the_moment_that_is_named() {
    let (domains, lease) = (domains(rules(policy(&[(5, 1, 1, 0)]))), lease(None));
    domains.request(&lease, "a", 5, 1, Time::ZERO);
    let clock = FakeClock::default();
    let mut tasks = Tasks::new(&clock);
    let wish = |domain, copies, min, seconds| DomainWish {
        domain,
        copies,
        min,
        max_wait: Duration::from_secs(seconds),
    };
    tasks.spawn(domains.acquire_by(&lease, wish("a", 3, 2, 5), &clock, || ()));
    tasks.pass(Duration::from_secs(1));
    assert_eq!(tasks.finished(), []);
    tasks.pass(Duration::from_millis(1));
    let (task, decision) = tasks.finished().remove(0);
    assert_eq!((task, decision.unwrap().granted), (0, 3));

    // At 1.001: two are left, and three are there at 2.000000002 again.
    tasks.spawn(domains.acquire_by(&lease, wish("a", 5, 5, 0), &clock, || ()));
    let (_, refused) = tasks.finished().remove(0);
    assert_eq!(refused.unwrap_err().to_string(), "bound by its tiers for another 1s");
}

#[test]
fn who_wants_more_than_the_lease_ever_holds_is_refused_at_once() {
    let (domains, lease) = (domains(rules(policy(&[(50, 1, 1, 0)]))), lease(Some(10)));
    let clock = FakeClock::default();
    let mut tasks = Tasks::new(&clock);
    let max_wait = Duration::from_secs(10);
    let wish = |copies, min| DomainWish { domain: "a", copies, min, max_wait };
    tasks.spawn(domains.acquire_by(&lease, wish(20, 12), &clock, || ()));
    tasks.spawn(domains.acquire_by(&lease, wish(20, 10), &clock, || ()));
    let (task, refused) = tasks.finished().remove(0);
    let told = "bound by the burst of the lease, 10 at once";
    assert_eq!((task, refused.unwrap_err().to_string()), (0, told.to_owned()));
    tasks.pass(Duration::from_millis(1_101));
    let (task, decision) = tasks.finished().remove(0);
    assert_eq!((task, decision.unwrap().granted), (1, 10), "what a second brings");
    let decision = domains.request(&lease, "b", 12, 12, at(2.0));
    assert_eq!(granted(decision), (0, Some(Bound::Burst { most: 10 })));
    assert_eq!(domains.counts().refused_by_lease, domains.counts().refused);
}

#[test]
fn who_is_told_no_moment_comes_back_later_and_later_and_never_past_the_bound() {
    let (domains, lease) = (domains(rules(policy(&[(5, 1, 1, 0)]))), lease(None));
    let clock = FakeClock::default();
    let mut tasks = Tasks::new(&clock);
    let max_wait = Duration::from_secs(10);
    tasks.spawn(domains.acquire_by(
        &lease,
        DomainWish { domain: "a", copies: 6, min: 6, max_wait },
        &clock,
        || (),
    ));
    tasks.pass(Duration::from_millis(9_999));
    assert_eq!((tasks.finished(), domains.counts().refused), (vec![], 4), "at 0, 1, 3 and 7 seconds, about");
    tasks.pass(Duration::from_millis(2));
    let (_, refused) = tasks.finished().remove(0);
    let Err(denied) = refused else { panic!("{refused:?}") };
    assert_eq!((granted(*denied.decision().unwrap()), domains.counts().refused), ((0, TIERS), 5));
}

#[test]
fn who_waits_for_units_that_are_asked_for_one_by_one_holds_a_place() {
    let domains = domains(rules(policy(&[(1, 60, 60, 0)])));
    let (lease, clock) = (Limiter::default(), FakeClock::default());
    let ten = Amount::from_units(10);
    lease.allow(Time::ZERO, Allowance { asked: ten, ..Allowance::forever(ten) });
    let missing = || lease.wish(clock.now()).unwrap().missing;
    let mut tasks = Tasks::new(&clock);
    for domain in ["a", "a", "b"] {
        let wish = DomainWish { domain, copies: 1, min: 1, max_wait: Duration::from_secs(5) };
        tasks.spawn(domains.acquire_by(&lease, wish, &clock, || ()));
    }
    assert_eq!((tasks.finished().len(), missing()), (0, 3), "one for each, and none besides");
    lease.bring(SentUnits::now(1), clock.now());
    tasks.run();
    let (task, decision) = tasks.finished().remove(0);
    assert_eq!((task, granted(decision.unwrap()), missing()), (0, (1, None), 2));
    // The policies have no more for the second; its unit goes to the third, who waits behind it.
    lease.bring(SentUnits::now(1), clock.now());
    tasks.run();
    let mut finished = tasks.finished();
    finished.sort_by_key(|&(task, _)| task);
    let [(1, Err(denied)), (2, Ok(other))] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((denied.decision().unwrap().bound, granted(*other), missing()), (TIERS, (1, None), 0));
    assert_eq!(lease.usage().granted, 2);
}

/// A leader is lost while four wait, their lease ends, and another leader grants it anew: the places stay, and it is asked for what
/// the one before had not sent.
#[test]
fn who_waits_in_the_queue_of_a_lease_keeps_its_place_while_another_comes_to_lead() {
    let domains = domains(rules(policy(&[(2, 60, 60, 0)])));
    let (lease, clock) = (Limiter::default(), FakeClock::default());
    let ten = Amount::from_units(10);
    let until = |seconds| Allowance { asked: ten, ..Allowance::new(Some(ten), at(seconds)) };
    let missing = || lease.wish(clock.now()).map_or(0, |wish| wish.missing);
    let mut tasks = Tasks::new(&clock);
    lease.allow(Time::ZERO, until(2.0));
    for (domain, seconds) in [("a", 20), ("a", 20), ("b", 20), ("c", 3)] {
        let wish = DomainWish { domain, copies: 1, min: 1, max_wait: Duration::from_secs(seconds) };
        tasks.spawn(domains.acquire_by(&lease, wish, &clock, || ()));
    }
    assert_eq!((tasks.finished().len(), missing()), (0, 4));
    lease.bring(SentUnits::now(1), clock.now());
    tasks.run();
    assert_eq!(tasks.finished().len(), 1, "the first has its unit of the one before");

    tasks.pass(Duration::from_millis(2_500));
    lease.allow(clock.now(), Allowance::NOTHING);
    tasks.run();
    assert_eq!((tasks.finished().len(), missing()), (0, 0), "nobody is there who could be asked");
    let newcomer = DomainWish { domain: "d", copies: 1, min: 1, max_wait: Duration::from_secs(20) };
    tasks.pass(Duration::from_secs(1));
    let late = tasks.finished();
    assert!(matches!(late[..], [(3, Err(Denied::Domain(_)))]), "{late:?}");

    lease.allow(clock.now(), until(30.0));
    tasks.spawn(domains.acquire_by(&lease, newcomer, &clock, || ()));
    assert_eq!((tasks.finished().len(), missing()), (0, 3));
    for expected in [1, 2, 4] {
        lease.bring(SentUnits::now(1), clock.now());
        tasks.run();
        let (task, decision) = tasks.finished().remove(0);
        assert_eq!((task, granted(decision.unwrap())), (expected, (1, None)));
    }
    assert_eq!((missing(), lease.usage().granted, domains.counts().granted), (0, 4, 4));
}
