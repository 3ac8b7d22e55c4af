//! Several limits in one request: all or nothing, by any of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_proto::{Amount, Time};

use super::*;
use crate::decision::Ground;
use crate::domain::{Bound, Degraded, DomainCounts, DomainOptions, Policies, Query, Row, Rules};
use crate::limiter::Allowance;

mod beside;
mod oracle;
mod passing;
mod shared;
mod waiting;

/// A policy of `limit` hits in `seconds` seconds.
fn policy(limit: u32, seconds: u64) -> TierPolicy {
    let (window, active) = (Duration::from_secs(seconds), Duration::from_secs(seconds));
    let tier =
        Tier { limit, window, active, cooldown: Duration::ZERO, is_skippable: false, kind: Window::Exact };
    TierPolicy::new(vec![tier], None, None).unwrap()
}

fn domains_with(options: DomainOptions, policy: TierPolicy) -> Domains {
    let domains = Domains::new(options);
    let rules = Rules { default: Some(Contract::from(policy)), ..Rules::default() };
    domains.follow(Some(Arc::new(Policies::new(rules).unwrap())));
    domains
}

fn domains(limit: u32, seconds: u64) -> Domains {
    domains_with(DomainOptions::default(), policy(limit, seconds))
}

fn allow(units: u64) -> Allowance {
    Allowance::forever(Amount::from_units(units))
}

/// A lease of `units` a second, which are all there at 1 s.
fn lease(units: u64) -> Limiter {
    let limiter = Limiter::new(Duration::from_secs(1));
    limiter.allow(Time::ZERO, allow(units));
    limiter
}

fn gauge(units: u64) -> Semaphore {
    let gauge = Semaphore::default();
    gauge.allow(Time::ZERO, allow(units));
    gauge
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

/// The resources that the cookbook's job needs: a worker, and calls and queries for its tenant.
struct Kitchen {
    workers: Semaphore,
    calls: (Domains, Limiter),
    queries: (Domains, Limiter),
    disk: Limiter,
}

impl Kitchen {
    /// Two workers; five calls and eight queries in ten seconds for each tenant; twenty of each, and six of the disk, in all.
    fn new() -> Kitchen {
        let (calls, queries) = ((domains(5, 10), lease(20)), (domains(8, 10), lease(20)));
        Kitchen { workers: gauge(2), calls, queries, disk: lease(6) }
    }

    /// A worker, and so much for each copy.
    fn job<'a>(&'a self, tenant: &'a str, min: u32, copies: u32, prices: [u32; 3]) -> Combination<'a> {
        Combination::between(min, copies)
            .gauge(&self.workers, Price::Once(1))
            .domain(&self.calls.0, &self.calls.1, tenant, Price::Each(prices[0]))
            .domain(&self.queries.0, &self.queries.1, tenant, Price::Each(prices[1]))
            .rate(&self.disk, Price::Each(prices[2]))
    }

    fn look(&self, now: Time) -> (u32, [Vec<Row>; 2], [DomainCounts; 2], [u64; 3]) {
        let rows = |domains: &Domains| domains.snapshot(&Query::busiest(9), now).rows;
        let granted = [&self.calls.1, &self.queries.1, &self.disk].map(|lease| lease.usage().granted);
        let domains = [&self.calls.0, &self.queries.0];
        (self.workers.in_use(), domains.map(rows), domains.map(Domains::counts), granted)
    }
}

/// The number of copies that are granted, and the part that allows no more; or which parts refuse.
fn outcome(answer: Result<TogetherPermit, TogetherDenied>) -> Result<(u32, Option<usize>), String> {
    answer.map(|permit| (permit.copies(), permit.bound_by())).map_err(|denied| denied.to_string())
}

#[test]
fn a_job_gets_its_worker_and_all_that_it_needs_and_the_worker_comes_back() {
    let kitchen = Kitchen::new();
    let permit = kitchen.job("a", 1, 1, [2, 3, 1]).try_acquire(|| at(1.0)).unwrap();
    let TogetherAnswer::Domain(calls) = permit.answers()[1] else { panic!("{permit:?}") };
    assert_eq!((calls.granted, calls.hits_in_tier, calls.bound), (2, 2, None));
    assert_eq!(
        (&permit.answers()[0], &permit.answers()[3]),
        (&TogetherAnswer::Taken(1), &TogetherAnswer::Taken(1))
    );
    assert_eq!(permit.deadline(), None, "it is not leased");
    let (workers, _, _, granted) = kitchen.look(at(1.0));
    assert_eq!((workers, granted), (1, [2, 3, 1]));
    drop(permit);
    let (workers, _, _, granted) = kitchen.look(at(1.0));
    assert_eq!((workers, granted), (0, [2, 3, 1]), "what was spent is spent");
}

#[test]
fn one_number_holds_for_all_parts_and_the_tightest_is_named() {
    let check = |min, copies, prices, expected: Result<(u32, Option<usize>), &str>| {
        let found = outcome(Kitchen::new().job("a", min, copies, prices).try_acquire(|| at(1.0)));
        assert_eq!(found, expected.map_err(str::to_owned), "{min}..{copies} {prices:?}");
    };
    check(1, 4, [1, 1, 1], Ok((4, None)));
    check(1, 9, [1, 1, 1], Ok((5, Some(1))));
    check(1, 9, [1, 2, 1], Ok((4, Some(2))));
    check(1, 9, [1, 1, 2], Ok((3, Some(3))));
    check(4, 9, [1, 1, 2], Err("part 3 refuses: 8 at once is above the burst of 6"));
    check(6, 9, [1, 1, 0], Err("part 1 refuses: bound by its tiers"));
    check(6, 9, [1, 2, 0], Err("part 1 refuses: bound by its tiers; part 2 refuses: bound by its tiers"));
    check(7, 9, [0, 1, 0], Ok((8, Some(2))));
    check(0, 0, [1, 1, 1], Ok((0, None)));
}

#[test]
fn a_domain_says_what_keeps_it_from_more_only_if_it_is_what_keeps_the_others_from_more() {
    let bounds = |copies, prices: [u32; 3]| {
        let kitchen = Kitchen::new();
        let permit = kitchen.job("a", 1, copies, prices).try_acquire(|| at(0.3)).unwrap();
        [1, 2].map(|part| match &permit.answers()[part] {
            TogetherAnswer::Domain(decision) => (decision.granted, decision.bound),
            other => panic!("{other:?}"),
        })
    };
    let (tiers, lease) = (Some(Bound::Tiers), Some(Bound::Lease));
    assert_eq!(bounds(2, [1, 1, 0]), [(2, None), (2, None)]);
    assert_eq!(bounds(9, [1, 1, 0]), [(5, tiers), (5, None)]);
    assert_eq!(bounds(9, [2, 1, 0]), [(4, tiers), (2, None)], "one more is allowed, two are needed");
    assert_eq!(bounds(2, [1, 4, 0]), [(1, None), (4, lease)], "six are there, eight are needed");
    assert_eq!(bounds(9, [1, 1, 1]), [(1, None), (1, None)], "of the disk there is one");
}

#[test]
fn a_refusal_by_the_last_part_leaves_everything_as_it_was() {
    let kitchen = Kitchen::new();
    let first = kitchen.job("a", 1, 2, [1, 1, 2]).try_acquire(|| at(1.0)).unwrap();
    let before = kitchen.look(at(1.0));
    let refused = kitchen.job("a", 2, 3, [1, 2, 2]).try_acquire(|| at(1.0)).unwrap_err();
    let TogetherDenied::Refused(refusal) = &refused else { panic!("{refused}") };
    assert_eq!(
        refusal.answers[..3],
        [TogetherAnswer::Agreed, TogetherAnswer::Agreed, TogetherAnswer::Agreed]
    );
    assert_eq!(refusal.retry_at, Some(Time::from_nanos(1_333_333_334)), "two are left, two more are needed");
    assert_eq!(kitchen.look(at(1.0)), before);
    assert_eq!(
        outcome(kitchen.job("a", 1, 1, [3, 6, 2]).try_acquire(|| at(1.0))),
        Ok((1, None)),
        "all the rest"
    );
    drop(first);
}

#[test]
fn a_refusal_by_the_first_part_leaves_everything_as_it_was() {
    let kitchen = Kitchen::new();
    let all = kitchen.workers.try_acquire(2, || at(1.0)).unwrap();
    let before = kitchen.look(at(1.0));
    let refused = kitchen.job("a", 1, 3, [1, 1, 1]).try_acquire(|| at(1.0));
    assert_eq!(outcome(refused), Err("part 0 refuses: 2 of 2 are in use".into()));
    assert_eq!(kitchen.look(at(1.0)).0, before.0);
    assert_eq!(kitchen.look(at(1.0)).3, before.3);
    assert_eq!(kitchen.calls.0.peek("a", 9, 1, at(1.0)).granted, 5);
    drop(all);
    assert_eq!(outcome(kitchen.job("a", 1, 3, [1, 1, 1]).try_acquire(|| at(1.0))), Ok((3, None)));
}

#[test]
fn units_of_a_gauge_can_be_for_each_copy_and_what_is_too_much_goes_back() {
    let (slots, rate) = (gauge(9), lease(4));
    let request = Combination::between(1, 5).gauge(&slots, Price::Each(2)).rate(&rate, Price::Each(1));
    let permit = request.try_acquire(|| at(0.5)).unwrap();
    assert_eq!((permit.copies(), permit.bound_by(), slots.in_use()), (2, Some(1), 4));
    let other = request.try_acquire(|| at(1.0)).unwrap();
    assert_eq!(
        (other.copies(), other.bound_by(), slots.in_use()),
        (2, Some(0), 8),
        "one is left, two are needed"
    );
}

#[test]
fn the_same_resource_twice_is_refused_with_its_places() {
    let (kitchen, other) = (Kitchen::new(), lease(1));
    let twice = |request: Combination<'_>| request.try_acquire(|| at(1.0)).unwrap_err();
    let job = || kitchen.job("a", 1, 1, [1, 1, 1]);
    let workers = kitchen.workers.clone();
    assert_eq!(twice(job().gauge(&workers, Price::Once(1))), TogetherDenied::Twice { first: 0, second: 4 });
    assert_eq!(
        twice(job().rate(&kitchen.disk, Price::Once(1))),
        TogetherDenied::Twice { first: 3, second: 4 }
    );
    assert_eq!(
        twice(job().rate(&kitchen.calls.1, Price::Once(1))),
        TogetherDenied::Twice { first: 1, second: 4 }
    );
    let domain = job().domain(&kitchen.queries.0, &other, "b", Price::Once(1));
    assert_eq!(twice(domain).to_string(), "parts 2 and 4 are of the same resource; wanted each once");
    assert_eq!(kitchen.look(at(1.0)), Kitchen::new().look(at(1.0)));
}

#[test]
fn a_price_that_cannot_be_counted_is_refused_or_lowers_the_copies() {
    let unlimited = Limiter::default();
    unlimited.allow(Time::ZERO, Allowance::new(None, Time::MAX));
    let request = |min| Combination::between(min, 9).rate(&unlimited, Price::Each(u32::MAX / 2));
    assert_eq!(outcome(request(1).try_acquire(|| at(1.0))), Ok((2, None)));
    let told = "part 0 costs 2147483647 for each of 3 copies; wanted at most 4294967295 in all";
    assert_eq!(outcome(request(3).try_acquire(|| at(1.0))), Err(told.into()));
}

#[test]
fn of_several_times_the_latest_is_named() {
    let (slow, fast) = ((domains(1, 10), lease(20)), (domains(1, 2), lease(20)));
    let request = Combination::once().domain(&slow.0, &slow.1, "a", Price::Each(1)).domain(
        &fast.0,
        &fast.1,
        "a",
        Price::Each(1),
    );
    assert_eq!(outcome(request.try_acquire(|| at(1.0))), Ok((1, None)));
    let refused = request.try_acquire(|| at(1.0)).unwrap_err();
    assert_eq!(refused.refusal().unwrap().retry_at, Some(Time::from_nanos(11_000_000_001)));
    let counts = [slow.0.counts(), fast.0.counts()].map(|counts| (counts.granted, counts.refused));
    assert_eq!(counts, [(1, 1), (1, 1)], "both refuse");
    assert_eq!([&slow, &fast].map(|(_, lease)| lease.usage().attempted), [1, 1], "leases were not asked");
}

#[test]
fn a_part_answers_as_it_would_alone() {
    let (calls, queries) = ((domains(2, 10), lease(20)), (domains(9, 10), lease(20)));
    let job = |copies| {
        Combination::once().domain(&calls.0, &calls.1, "a", Price::Each(copies)).domain(
            &queries.0,
            &queries.1,
            "a",
            Price::Each(1),
        )
    };
    calls.0.set_kill_switch(true);
    let permit = job(3).try_acquire(|| at(1.0)).unwrap();
    let TogetherAnswer::Domain(decision) = permit.answers()[0] else { panic!("{permit:?}") };
    let alone = domains(2, 10);
    alone.set_kill_switch(true);
    assert_eq!(decision, alone.request(&lease(20), "a", 3, 3, at(1.0)));
    assert_eq!((decision.ground, calls.0.counts().overruled), (Ground::KillSwitch, 1));
    calls.0.set_kill_switch(false);
    calls.0.follow(None);
    let permit = job(3).try_acquire(|| at(1.0)).unwrap();
    let TogetherAnswer::Domain(decision) = permit.answers()[0] else { panic!("{permit:?}") };
    assert_eq!((decision.granted, decision.ground), (3, Ground::NoPolicies));
    calls.0.follow(Some(Arc::new(Policies::new(Rules::default()).unwrap())));
    let told = "part 0 refuses: bound by there being no policy for it";
    assert_eq!(outcome(job(3).try_acquire(|| at(1.0))), Err(told.into()));
}

#[test]
fn without_a_lease_the_least_is_granted_where_that_was_chosen() {
    let none = Limiter::default();
    let request = |degraded| {
        let options = DomainOptions { degraded, most: 0, ..DomainOptions::default() };
        let (domains, workers) = (domains_with(options, policy(9, 10)), gauge(5));
        let request = Combination::between(2, 4)
            .domain(&domains, &none, "a", Price::Each(2))
            .gauge(&workers, Price::Each(1));
        outcome(request.try_acquire(|| at(1.0)))
    };
    assert_eq!(request(Degraded::GrantLeast), Ok((2, Some(0))));
    assert_eq!(request(Degraded::Refuse), Err("part 0 refuses: bound by the lease".into()));
    let options = DomainOptions { degraded: Degraded::GrantLeast, ..DomainOptions::default() };
    let domains = domains_with(options, policy(9, 10));
    let request = Combination::between(2, 4).domain(&domains, &none, "a", Price::Each(2));
    let permit = request.try_acquire(|| at(1.0)).unwrap();
    let TogetherAnswer::Domain(decision) = permit.answers()[0] else { panic!("{permit:?}") };
    let found = (decision.granted, decision.ground, decision.bound, decision.hits_in_tier);
    assert_eq!(found, (4, Ground::Degraded, Some(Bound::Lease), 4));
}

#[test]
fn who_owes_pays_even_when_nothing_is_granted() {
    let kitchen = Kitchen::new();
    let job = kitchen.job("a", 1, 1, [1, 1, 1]);
    drop(job.try_acquire(|| at(1.0)).unwrap());
    kitchen.calls.0.settle(&kitchen.calls.1, "a", 1, 8, at(1.0));
    let told = "part 1 refuses: bound by what it owes";
    assert_eq!(outcome(job.try_acquire(|| at(2.0))), Err(told.into()));
    assert_eq!(kitchen.calls.0.peek("a", 1, 1, at(2.0)).debt, 3, "four of seven were paid");
    assert_eq!(kitchen.queries.0.peek("a", 9, 1, at(2.0)).granted, 7);
    assert_eq!(outcome(job.try_acquire(|| at(12.1))), Ok((1, None)));
}

/// Two ask for the same four things in opposite orders, others for single ones, while policies change: all come to an end,
/// and nothing is lost or granted twice.
#[test]
fn opposite_orders_hold_nobody_up() {
    let limited =
        || TierPolicy::new(policy(1_000_000, 3600).tiers().to_vec(), None, Some(1_000_000)).unwrap();
    let options = DomainOptions::default();
    let (one, other) = (
        (domains_with(options, limited()), lease(1_000_000)),
        (domains_with(options, limited()), lease(1_000_000)),
    );
    let (left, right) = (gauge(3), gauge(3));
    let now = at(1.0);
    let forth = Combination::between(1, 2)
        .gauge(&left, Price::Each(1))
        .gauge(&right, Price::Each(1))
        .domain(&one.0, &one.1, "a", Price::Each(1))
        .domain(&other.0, &other.1, "a", Price::Each(2));
    let back = Combination::between(1, 2)
        .domain(&other.0, &other.1, "a", Price::Each(2))
        .domain(&one.0, &one.1, "a", Price::Each(1))
        .gauge(&right, Price::Each(1))
        .gauge(&left, Price::Each(1));
    let (copies, singles) = (AtomicU64::new(0), AtomicU64::new(0));
    let ask = |request: &Combination<'_>| {
        for _ in 0..3_000 {
            if let Ok(permit) = request.try_acquire(|| now) {
                copies.fetch_add(permit.copies().into(), Ordering::SeqCst);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| ask(&forth));
        scope.spawn(|| ask(&back));
        scope.spawn(|| {
            for turn in 0..3_000 {
                let decision = one.0.request(&one.1, "a", 1, 1, now);
                singles.fetch_add(decision.granted.into(), Ordering::SeqCst);
                if turn % 100 == 0 {
                    assert!(other.0.snapshot(&Query::busiest(1), now).rows.len() <= 1);
                    other.0.sweep(now);
                    let rules = Rules { default: Some(Contract::from(limited())), ..Rules::default() };
                    let changed = Rules { allow_unconfigured: vec![turn.to_string()], ..rules };
                    other.0.follow(Some(Arc::new(Policies::new(changed).unwrap())));
                }
            }
        });
    });
    let (copies, singles) = (copies.into_inner(), singles.into_inner());
    assert!(copies > 0 && singles == 3_000);
    assert_eq!((left.in_use(), right.in_use()), (0, 0));
    assert_eq!((one.1.usage().granted, other.1.usage().granted), (copies + singles, copies * 2));
    let hits = [&one.0, &other.0].map(|domains| domains.snapshot(&Query::busiest(1), now).rows[0].granted);
    assert_eq!(hits, [copies + singles, copies * 2]);
}
