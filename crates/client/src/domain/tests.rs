//! Domains of one client: policies, leases, and what others tell.

mod histories;
mod shared;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_proto::{Amount, Glob, Time};

use super::*;
use crate::decision::{Decision, Ground};
use crate::denied::Denied;
use crate::limiter::{Allowance, Limiter};

/// Limit, window, active time and cooldown, in seconds.
fn tier((limit, window, active, cooldown): (u32, u64, u64, u64)) -> Tier {
    let [window, active, cooldown] = [window, active, cooldown].map(Duration::from_secs);
    Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact }
}

fn policy(tiers: &[(u32, u64, u64, u64)]) -> TierPolicy {
    TierPolicy::new(tiers.iter().copied().map(tier).collect(), None, None).unwrap()
}

fn rules(default: TierPolicy) -> Rules {
    Rules { default: Some(Contract::from(default)), ..Rules::default() }
}

fn domains(rules: Rules) -> Domains {
    domains_with(DomainOptions::default(), rules)
}

fn domains_with(options: DomainOptions, rules: Rules) -> Domains {
    let domains = Domains::new(options);
    domains.follow(Some(Arc::new(Policies::new(rules).unwrap())));
    domains
}

/// As much as anybody likes, or so many a second that are all there at 1 s.
fn lease(units: Option<u64>) -> Limiter {
    let limiter = Limiter::new(Duration::from_secs(1));
    let capacity = units.map(Amount::from_units);
    limiter.allow(Time::ZERO, Allowance::new(capacity, Time::MAX));
    limiter
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

/// The number of hits granted, and the bound.
fn granted(decision: Decision) -> (u32, Option<Bound>) {
    (decision.granted, decision.bound)
}

const TIERS: Option<Bound> = Some(Bound::Tiers);
const LEASE: Option<Bound> = Some(Bound::Lease);

#[test]
fn a_tenant_that_bursts_and_rests_does_not_disturb_the_others() {
    let (domains, lease) = (domains(rules(policy(&[(5, 1, 1, 0), (50, 5, 5, 15)]))), lease(None));
    let ask = |name, copies, second| granted(domains.request(&lease, name, copies, 1, at(second)));
    assert_eq!(ask("greedy", 100, 1.0), (55, TIERS));
    assert_eq!(ask("modest", 3, 1.0), (3, None));
    assert_eq!(ask("greedy", 1, 5.5), (0, TIERS));
    assert_eq!(ask("greedy", 9, 6.5), (5, TIERS), "the second tier cools down, the first has recovered");
    assert_eq!(ask("modest", 9, 6.5), (9, None), "and bursts for the first time");
    assert_eq!(ask("greedy", 100, 30.0), (55, TIERS));
}

#[test]
fn an_answer_says_where_the_domain_stands() {
    let policy =
        TierPolicy::new(vec![tier((5, 1, 1, 0)), tier((50, 5, 5, 15))], Some(40), Some(100)).unwrap();
    let (domains, lease) = (domains(rules(policy)), lease(None));
    domains.request(&lease, "other", 7, 1, at(1.0));
    let decision = domains.request(&lease, "tenant", 60, 1, at(1.0));
    let expected = Decision {
        granted: 40,
        ground: Ground::Policies,
        hard_limit: Some(40),
        global_limit: Some(100),
        tier: 2,
        tier_limit: 50,
        tier_window: Duration::from_secs(5),
        hits_in_tier: 35,
        hits_in_second: 40,
        hits_in_second_by_all: 47,
        burst: true,
        bound: Some(Bound::Hard),
        retry_at: None,
        debt: 0,
        others: 0,
    };
    assert_eq!(decision, expected);
    let refused = domains.request(&lease, "tenant", 1, 1, at(1.5));
    assert_eq!(granted(refused), (0, Some(Bound::Hard)));
    assert_eq!(refused.retry_at, Some(Time::from_nanos(2_000_000_001)));
    let (a, b) = (domains.request(&lease, "a", 40, 1, at(1.5)), domains.request(&lease, "b", 40, 1, at(1.5)));
    assert_eq!((granted(a), granted(b)), ((40, None), (13, Some(Bound::Global))));
}

#[test]
fn what_the_lease_lacks_is_granted_by_nobody_and_leaves_no_trace() {
    let (domains, lease) = (domains(rules(policy(&[(100, 60, 60, 0)]))), lease(Some(10)));
    let ask = |copies, min| domains.request(&lease, "a", copies, min, at(1.0));
    let burst = Some(Bound::Burst { most: 10 });
    assert_eq!(granted(ask(50, 20)), (0, burst), "twenty are never there at once");
    assert_eq!(domains.peek("a", 200, 1, at(1.0)).granted, 100, "nothing was noted");
    assert_eq!(granted(ask(50, 3)), (10, LEASE), "what comes in a second");
    assert_eq!(domains.peek("a", 200, 1, at(1.0)).granted, 90);
    let refused = ask(1, 1);
    assert_eq!((granted(refused), refused.retry_at), ((0, LEASE), Some(at(1.1))));
    assert_eq!(
        domains.counts(),
        DomainCounts { granted: 10, refused: 2, refused_by_lease: 2, ..DomainCounts::default() }
    );
}

#[test]
fn what_policies_refuse_takes_nothing_of_the_lease() {
    let (domains, lease) = (domains(rules(policy(&[(3, 60, 60, 0)]))), lease(Some(10)));
    assert_eq!(granted(domains.request(&lease, "a", 9, 4, at(1.0))), (0, TIERS));
    assert_eq!(granted(domains.request(&lease, "a", 9, 3, at(1.0))), (3, TIERS));
    assert_eq!(lease.usage().granted, 3);
}

#[test]
fn of_a_contract_all_policies_hold() {
    let contract = Contract::new(vec![policy(&[(20, 3600, 3600, 0)]), policy(&[(30, 86_400, 86_400, 0)])]);
    let rules = Rules { default: Some(contract.unwrap()), ..Rules::default() };
    let (domains, lease) = (domains(rules), lease(None));
    let ask = |second| granted(domains.request(&lease, "a", 100, 1, at(second)));
    assert_eq!((ask(0.0), ask(3601.0), ask(7300.0)), ((20, TIERS), (10, TIERS), (0, TIERS)));
}

#[test]
fn names_choose_policies_and_keep_their_own_histories() {
    let of = |glob: &str, limit| Override {
        glob: Glob::new(glob).unwrap(),
        contract: Contract::from(policy(&[(limit, 60, 60, 0)])),
    };
    let rules = Rules {
        default: None,
        overrides: vec![of("rate_limit", 2), of("vip", 1)],
        allow_unconfigured: vec!["free".into()],
        ignore_configured: vec!["vip".into()],
        ..Rules::default()
    };
    let (domains, lease) = (domains(rules), lease(Some(100)));
    let ask = |name| {
        let decision = domains.request(&lease, name, 5, 1, at(1.0));
        (decision.granted, decision.ground, decision.bound)
    };
    assert_eq!(ask("rate_limit/192.168.11.3"), (2, Ground::Policies, TIERS));
    assert_eq!(ask("rate_limit/192.168.11.4"), (2, Ground::Policies, TIERS), "a history of its own");
    assert_eq!(ask("rate_limit/192.168.11.3"), (0, Ground::Policies, TIERS));
    assert_eq!(ask("free-1"), (5, Ground::Unconfigured, None));
    assert_eq!(ask("vip"), (5, Ground::Ignored, None));
    assert_eq!(ask("stranger"), (0, Ground::Policies, Some(Bound::Unconfigured)));
    assert_eq!(domains.len(), 2, "only of those who follow policies something is remembered");
}

#[test]
fn without_policies_the_lease_decides() {
    let (domains, lease) = (Domains::new(DomainOptions::default()), lease(Some(10)));
    let decision = domains.request(&lease, "a", 50, 1, at(1.0));
    assert_eq!((granted(decision), decision.ground), ((10, LEASE), Ground::NoPolicies));
}

#[test]
fn the_kill_switch_grants_and_counts_what_policies_refuse_and_not_what_the_lease_does() {
    let (domains, lease) = (domains(rules(policy(&[(3, 60, 60, 0)]))), lease(Some(10)));
    domains.set_kill_switch(true);
    let ask = |copies| domains.request(&lease, "a", copies, 1, at(1.0));
    assert_eq!(
        (ask(2).ground, ask(5)),
        (Ground::Policies, Decision { ground: Ground::KillSwitch, ..ask_like(5) })
    );
    assert_eq!(granted(ask(50)), (3, LEASE));
    assert_eq!(domains.counts().overruled, 2);
    domains.set_kill_switch(false);
    assert_eq!(granted(domains.request(&lease, "a", 1, 1, at(30.0))), (0, TIERS), "history went on");
    assert_eq!(granted(domains.request(&lease, "a", 9, 1, at(61.5))), (3, TIERS));
}

/// The second answer in [`the_kill_switch_grants_and_counts_what_policies_refuse_and_not_what_the_lease_does`].
fn ask_like(granted: u32) -> Decision {
    let bound = TIERS;
    let numbers = Decision {
        tier: 1,
        tier_limit: 3,
        tier_window: Duration::from_secs(60),
        hits_in_tier: 3,
        hits_in_second: 3,
        ..Decision::free(Ground::Policies)
    };
    Decision { granted, bound, hits_in_second_by_all: 3, ..numbers }
}

#[test]
fn without_a_lease_the_least_is_granted_if_that_was_chosen_and_policies_allow_it() {
    let options = |degraded| DomainOptions { degraded, ..DomainOptions::default() };
    let none = Limiter::default();
    let strict = domains_with(options(Degraded::Refuse), rules(policy(&[(3, 60, 60, 0)])));
    assert_eq!(granted(strict.request(&none, "a", 9, 2, at(1.0))), (0, LEASE));
    let lenient = domains_with(options(Degraded::GrantLeast), rules(policy(&[(3, 60, 60, 0)])));
    let decision = lenient.request(&none, "a", 9, 2, at(1.0));
    assert_eq!((decision.granted, decision.ground), (2, Ground::Degraded));
    assert_eq!(
        granted(lenient.request(&none, "a", 9, 2, at(1.0))),
        (0, TIERS),
        "one is left, two are the least"
    );
    assert_eq!(lenient.counts().degraded, 1);
    let used_up = lease(Some(1));
    used_up.try_acquire(1, || at(1.0)).unwrap();
    assert_eq!(
        granted(lenient.request(&used_up, "b", 1, 1, at(1.0))),
        (0, LEASE),
        "a lease that is used up is one"
    );
}

#[test]
fn a_debt_is_paid_before_anything_is_granted_and_a_refund_comes_back() {
    let (domains, lease) = (domains(rules(policy(&[(10, 1, 1, 0)]))), lease(None));
    let ask = |second| {
        let decision = domains.request(&lease, "a", 10, 1, at(second));
        (decision.granted, decision.debt, decision.bound)
    };
    assert_eq!(ask(0.0), (10, 0, None));
    domains.settle(&lease, "a", 10, 25, at(0.0));
    assert_eq!(
        (ask(0.5), ask(1.5), ask(2.6)),
        ((0, 15, Some(Bound::Debt)), (0, 5, Some(Bound::Debt)), (5, 0, TIERS))
    );
    domains.settle(&lease, "a", 5, 1, at(2.6));
    assert_eq!(ask(2.7), (4, 0, TIERS));
    domains.settle(&lease, "never heard of", 0, 9, at(2.7));
}

#[test]
fn what_cost_more_than_was_granted_is_taken_of_the_lease_and_what_cost_less_is_not_given_back() {
    let (domains, lease) = (domains(rules(policy(&[(1_000, 1, 1, 0)]))), lease(Some(10)));
    let ask = |name, second| {
        let decision = domains.request(&lease, name, 20, 1, at(second));
        (decision.granted, decision.bound, decision.retry_at)
    };
    assert_eq!(ask("a", 1.0), (10, LEASE, None));
    domains.settle(&lease, "a", 10, 15, at(1.0));
    assert_eq!(ask("b", 1.5), (0, LEASE, Some(at(1.6))), "five were owed, and have come in");
    assert_eq!(ask("b", 2.0), (5, LEASE, None));
    domains.settle(&lease, "b", 5, 0, at(2.0));
    assert_eq!(ask("b", 2.0), (0, LEASE, Some(at(2.1))));
    domains.settle(&lease, "without policies or history", 1, 3, at(2.0));
    assert_eq!(ask("b", 2.25).2, Some(at(2.3)));
    assert_eq!(lease.usage().granted, 10 + 5 + 5 + 2);
}

#[test]
fn policies_change_and_a_tier_that_did_not_keeps_its_hits() {
    let (domains, lease) = (domains(rules(policy(&[(5, 60, 60, 0)]))), lease(None));
    let ask = |copies| granted(domains.request(&lease, "a", copies, 1, at(1.0)));
    assert_eq!(ask(3), (3, None));
    let next = rules(policy(&[(5, 60, 60, 0), (4, 60, 60, 0)]));
    domains.follow(Some(Arc::new(Policies::new(next).unwrap())));
    assert_eq!(domains.peek("a", 100, 1, at(1.0)).granted, 6);
    assert_eq!(ask(100), (6, TIERS));
}

#[test]
fn hits_are_kept_while_there_are_no_policies_for_as_long_as_they_count() {
    let (domains, lease) = (domains(rules(policy(&[(5, 60, 60, 0)]))), lease(None));
    let ask = |copies, second| {
        let decision = domains.request(&lease, "a", copies, 1, at(second));
        (decision.granted, decision.ground)
    };
    let follow = |rules: Option<Rules>| {
        domains.follow(rules.map(|rules| Arc::new(Policies::new(rules).unwrap())));
    };
    let sweep = |second| (0..16).for_each(|_| domains.sweep(at(second)));
    let (usual, free) = (rules(policy(&[(5, 60, 60, 0)])), vec!["a".to_owned()]);
    assert_eq!(ask(3, 1.0), (3, Ground::Policies));
    for without in [None, Some(Rules { allow_unconfigured: free, ..Rules::default() })] {
        follow(without);
        assert_eq!(ask(100, 2.0).0, 100, "and these are not counted");
        sweep(2.0);
        follow(Some(usual.clone()));
        assert_eq!(domains.peek("a", 9, 1, at(2.0)).granted, 2);
    }
    follow(Some(Rules::default()));
    assert_eq!(ask(1, 3.0), (0, Ground::Policies));
    follow(Some(usual));
    assert_eq!((ask(9, 3.0).0, domains.len()), (2, 1));
    follow(None);
    sweep(62.0);
    assert_eq!(domains.len(), 1, "those of the third second count");
    sweep(63.1);
    assert_eq!(domains.len(), 0);
}

#[test]
fn who_is_idle_is_forgotten_and_who_is_too_much_is_not_refused() {
    let options = DomainOptions { most: 64, ..DomainOptions::default() };
    let (domains, lease) = (domains_with(options, rules(policy(&[(5, 1, 1, 0)]))), lease(None));
    let ask = |name: u32, second| domains.request(&lease, &name.to_string(), 9, 1, at(second));
    let first: Vec<_> = (0..1_000).map(|name| ask(name, 1.0)).collect();
    let tracked = first.iter().filter(|decision| granted(**decision) == (5, TIERS)).count();
    let untracked = first.iter().filter(|decision| decision.ground == Ground::Untracked).count();
    assert_eq!((tracked, untracked), (64, 936));
    assert!(first.iter().all(|decision| decision.granted > 0));
    assert_eq!((domains.len(), domains.counts().untracked), (64, 936));
    let later: Vec<_> = (2_000..3_000).map(|name| ask(name, 5.0)).collect();
    assert_eq!(later.iter().filter(|decision| granted(**decision) == (5, TIERS)).count(), 64);
    (0..16).for_each(|_| domains.sweep(at(10.0)));
    assert!(domains.is_empty());
}

#[test]
fn a_snapshot_shows_those_who_are_looked_for_and_sums_up_the_rest() {
    let (domains, lease) = (domains(rules(policy(&[(5, 1, 1, 0), (50, 5, 5, 15)]))), lease(None));
    for (name, copies) in [("a", 4), ("b", 55), ("c", 30), ("d", 1)] {
        domains.request(&lease, name, copies, 1, at(1.0));
    }
    domains.request(&lease, "b", 1, 1, at(1.0));
    domains.settle(&lease, "d", 1, 3, at(1.0));
    let look = |filter, order, second| {
        let snapshot = domains.snapshot(&Query { filter, order, most: 2 }, at(second));
        let names: Vec<_> = snapshot.rows.iter().map(|row| row.domain.clone()).collect();
        (names.join(" "), snapshot.rest.domains, snapshot.rest.granted)
    };
    assert_eq!(look(Filter::All, Order::Busiest, 1.0), ("b c".into(), 2, 5));
    assert_eq!(look(Filter::Below(0.6), Order::LeastLeft, 1.0), ("b a".into(), 2, 31));
    assert_eq!(look(Filter::CoolingDown, Order::MostRefused, 7.0), ("b c".into(), 2, 5));
    assert_eq!(look(Filter::Indebted, Order::MostOwed, 1.0), ("d".into(), 3, 89));
    let row = domains.snapshot(&Query::busiest(1), at(1.0)).rows.remove(0);
    assert_eq!((row.tier, row.tier_limit, row.hits_in_tier, row.remaining), (2, 50, 50, 0.0));
    assert_eq!((row.granted, row.refused, row.hits_in_second), (55, 1, 55));
    let resting = domains.snapshot(&Query::busiest(1), at(7.0)).rows.remove(0);
    assert_eq!((resting.cooling_until, resting.remaining), (Some(at(21.0)), 1.0));
}

/// However many there are, and in whatever order they are come upon.
#[test]
fn a_snapshot_of_many_shows_the_same_as_one_of_all() {
    let (domains, lease) = (domains(rules(policy(&[(50, 1, 1, 0)]))), lease(None));
    for name in 0..2_000_u32 {
        domains.request(&lease, &format!("{name:04}"), name * 7 % 50, 1, at(1.0));
    }
    for order in [Order::Busiest, Order::LeastLeft, Order::MostRefused, Order::MostOwed] {
        let look = |most| domains.snapshot(&Query { filter: Filter::All, order, most }, at(1.0));
        let all = look(usize::MAX);
        assert_eq!((all.rows.len(), all.rest), (2_000, Rest::default()));
        for most in [0, 1, 10, 700, 1_999] {
            let found = look(most);
            assert!(found.rows == all.rows[..most], "{order:?}, {most}");
            let granted: u64 = all.rows[most..].iter().map(|row| row.granted).sum();
            assert_eq!((found.rest.domains, found.rest.granted), (2_000 - most, granted));
        }
    }
}

#[test]
fn rows_and_others_add_up_to_all_that_was_counted() {
    let (domains, lease) = (domains(rules(policy(&[(5, 1, 1, 0)]))), lease(None));
    let asked = [("gone", 5, 1.0), ("a", 4, 9.0), ("b", 5, 9.0), ("c", 2, 9.0), ("b", 1, 9.0)];
    for (name, copies, second) in asked {
        domains.request(&lease, name, copies, 1, at(second));
    }
    (0..16).for_each(|_| domains.sweep(at(9.0)));
    let snapshot = domains.snapshot(&Query::busiest(1), at(9.0));
    let row = &snapshot.rows[0];
    assert_eq!((row.domain.as_str(), row.granted, row.refused), ("b", 5, 1));
    let others = Rest { domains: 2, granted: 11, refused: 0, hits_in_second: 6 };
    assert_eq!((snapshot.others(), snapshot.rest.granted), (others, 6));
    assert_eq!((snapshot.counts.granted, snapshot.counts.refused), (16, 1));
}
