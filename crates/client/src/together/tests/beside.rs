//! Second limits that are tried beside leases: what passes is asked of them once, whichever way it passes.

use super::*;
use crate::SecondUsage;

/// A second limit of so many units is tried.
fn tried(units: u64) -> Option<Allowance> {
    Some(allow(units))
}

fn used(usage: SecondUsage) -> (u64, u64, bool) {
    (usage.asked, usage.refused, usage.is_tried)
}

#[test]
fn what_a_rate_grants_is_asked_of_the_second_and_what_it_refuses_is_not() {
    let lease = lease(10);
    assert_eq!((lease.try_acquire(1, || at(1.0)), used(lease.usage_beside())), (Ok(()), (0, 0, false)));
    lease.try_beside(at(1.0), tried(5));
    assert_eq!(lease.try_acquire(4, || at(2.0)), Ok(()));
    assert_eq!(lease.try_acquire_between(1, 3, || at(2.0)), Ok(3));
    assert_eq!(used(lease.usage_beside()), (7, 3, true), "one is left of five, and three are not there");
    assert!(lease.try_acquire(4, || at(2.0)).is_err());
    assert_eq!(used(lease.usage_beside()), (7, 3, true));
    lease.try_beside(at(2.0), None);
    assert_eq!(lease.try_acquire(1, || at(3.0)), Ok(()));
    assert_eq!(used(lease.usage_beside()), (7, 3, false));
    lease.try_beside(at(3.0), tried(5));
    assert_eq!(lease.try_acquire(5, || at(4.0)), Ok(()));
    assert_eq!(used(lease.usage_beside()), (12, 3, true), "the counts go on");
}

#[test]
fn of_more_than_the_second_can_save_up_the_rest_is_owed() {
    let lease = lease(10);
    lease.try_beside(Time::ZERO, tried(4));
    assert_eq!(lease.try_acquire(8, || at(1.0)), Ok(()));
    assert_eq!(used(lease.usage_beside()), (8, 0, true), "four were there, and four are owed");
    assert_eq!(lease.try_acquire(1, || at(1.5)), Ok(()));
    assert_eq!(used(lease.usage_beside()), (9, 1, true), "two are owed still");
    assert_eq!(lease.try_acquire(1, || at(2.3)), Ok(()));
    assert_eq!(used(lease.usage_beside()), (10, 1, true));
    lease.charge(4, at(2.3));
    assert_eq!(lease.try_acquire(1, || at(3.0)), Ok(()));
    assert_eq!(used(lease.usage_beside()), (11, 2, true), "what is charged is owed by the second as well");
}

#[test]
fn a_permit_has_the_units_of_the_second_as_long_as_it_lives() {
    let gauge = gauge(10);
    gauge.try_beside(Time::ZERO, tried(5));
    let mut permit = gauge.try_acquire(4, || at(1.0)).unwrap();
    let other = gauge.try_acquire(2, || at(1.0)).unwrap();
    assert_eq!((used(gauge.usage_beside()), gauge.in_use_beside()), ((6, 2, true), 4));
    permit.shrink(3);
    assert_eq!(gauge.in_use_beside(), 3);
    let third = permit.without_units();
    drop(permit);
    assert_eq!((gauge.in_use_beside(), gauge.in_use()), (0, 2));
    drop((other, third));
    let held = gauge.try_acquire(1, || at(1.0)).unwrap();
    gauge.try_beside(at(1.0), None);
    assert_eq!(gauge.in_use_beside(), 1);
    drop(held);
    assert_eq!((gauge.in_use_beside(), used(gauge.usage_beside())), (0, (7, 2, false)));
}

#[test]
fn a_request_of_several_is_asked_of_the_second_when_it_is_granted() {
    let (rate, gauge, other) = (lease(10), gauge(10), lease(1));
    rate.try_beside(Time::ZERO, tried(3));
    gauge.try_beside(Time::ZERO, tried(3));
    let ask = |units| {
        let price = Price::Each(units);
        let request =
            Combination::once().rate(&rate, price).gauge(&gauge, price).rate(&other, Price::Each(1));
        request.try_acquire(|| at(1.0))
    };
    let permit = ask(4).unwrap();
    let wanted = ((4, 0, true), (4, 4, true));
    assert_eq!((used(rate.usage_beside()), used(gauge.usage_beside())), wanted, "a unit of the rate is owed");
    assert!(ask(2).is_err(), "the other has no more");
    assert_eq!((used(rate.usage_beside()), used(gauge.usage_beside())), wanted);
    drop(permit);
}

#[test]
fn the_hits_of_a_domain_that_pass_are_asked_of_the_second() {
    let (lease, domains) = (lease(10), domains(6, 1));
    lease.try_beside(Time::ZERO, tried(5));
    assert_eq!(domains.request(&lease, "a", 4, 4, at(1.0)).granted, 4);
    assert_eq!(domains.request(&lease, "a", 4, 1, at(1.0)).granted, 2);
    assert_eq!(domains.request(&lease, "a", 1, 1, at(1.0)).granted, 0);
    assert_eq!(used(lease.usage_beside()), (6, 2, true));
}
