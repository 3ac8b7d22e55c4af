//! The greatest numbers, and what is not a policy.

use std::time::Duration;

use lessor_algorithms::tiers::{
    Ask, Contract, Domain, Global, Invalid, MOST_POLICIES, MOST_TIERS, MergeEntry, Tier, TierPolicy, Window,
};

const KINDS: [Window; 5] = [
    Window::Exact,
    Window::Sliding { slices: 1 },
    Window::Sliding { slices: u16::MAX },
    Window::Fixed,
    Window::Bucket,
];
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

fn tier(limit: u32, time: Duration, kind: Window) -> Tier {
    Tier { limit, window: time, active: time, cooldown: time, is_skippable: true, kind }
}

#[test]
fn the_greatest_numbers_do_not_overflow() {
    let times = [0, 1, 1 << 32, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    let limits = [1, 2, u32::MAX - 1, u32::MAX];
    for kind in KINDS {
        for (limit, length) in
            limits.into_iter().flat_map(|limit| [1, 7, u64::MAX].map(|length| (limit, length)))
        {
            let tiers = vec![tier(limit, Duration::from_nanos(length), kind); 3];
            let policies = vec![TierPolicy::new(tiers, Some(limit), Some(limit)).unwrap(); 2];
            let contract = Contract::new(policies).unwrap();
            let (mut domain, mut all) = (Domain::new(), Global::exact());
            for at in times {
                for ask in [Ask::ONE, Ask::exactly(u32::MAX), Ask::up_to(u32::MAX), Ask::between(0, 0)] {
                    let decision = domain.request(&contract, &mut all, at, ask);
                    assert!(decision.granted <= ask.copies() && decision.hits_in_second <= limit);
                }
                let told = MergeEntry { policy: 1, tier: 2, at, hits: u32::MAX, is_entered: true };
                domain.merge(&contract, &told);
                domain.settle(&contract, at, i64::MAX);
                domain.settle(&contract, at, i64::MIN);
                assert_eq!(domain.debt(), 0);
                domain.rest(&contract, at);
            }
        }
    }
}

#[test]
fn no_hits_are_granted_to_whoever_asks_for_none() {
    let contract =
        Contract::from(TierPolicy::new(vec![tier(5, LONGEST, Window::Exact)], None, None).unwrap());
    let (mut domain, mut all) = (Domain::new(), Global::exact());
    let decision = domain.request(&contract, &mut all, 0, Ask::up_to(0));
    assert_eq!((decision.granted, decision.bound, decision.retry_at), (0, None, None));
    assert!(domain.is_idle(&contract, 0));
}

#[test]
fn without_tiers_the_resource_is_closed() {
    let contract = Contract::from(TierPolicy::new(vec![], None, None).unwrap());
    let decision = Domain::new().request(&contract, &mut Global::exact(), 7, Ask::ONE);
    assert_eq!((decision.granted, decision.tier, decision.retry_at), (0, 0, None));
}

#[test]
fn what_is_no_policy_says_why() {
    let check = |tiers: Vec<Tier>, hard, global, expected: &str| {
        assert_eq!(TierPolicy::new(tiers, hard, global).unwrap_err().to_string(), expected);
    };
    let good = || tier(1, LONGEST, Window::Exact);
    let empty = Tier { window: Duration::ZERO, ..good() };
    let long = Tier { cooldown: LONGEST + Duration::from_nanos(1), ..good() };
    let sliced = tier(1, LONGEST, Window::Sliding { slices: 0 });
    check(
        vec![good(), tier(0, LONGEST, Window::Exact)],
        None,
        None,
        "tier 2: limit 0 grants nothing, at least 1 is wanted",
    );
    check(vec![empty], None, None, "tier 1: the window is empty");
    check(vec![long], None, None, "tier 1: the cooldown is longer than 584 years");
    check(vec![sliced], None, None, "tier 1: a window of 0 slices, at least 1 is wanted");
    check(vec![], Some(0), None, "hard limit 0 grants nothing, at least 1 is wanted");
    check(vec![], None, Some(0), "global limit 0 grants nothing, at least 1 is wanted");
    check(vec![good(); MOST_TIERS + 1], None, None, "9 tiers, at most 8 are wanted");
    assert!(TierPolicy::new(vec![good(); MOST_TIERS], None, None).is_ok());
}

#[test]
fn a_contract_has_one_policy_to_sixteen() {
    let policy = TierPolicy::new(vec![], None, None).unwrap();
    assert_eq!(Contract::new(vec![]), Err(Invalid::Policies { found: 0 }));
    assert!(Contract::new(vec![policy.clone(); MOST_POLICIES]).is_ok());
    let error = Contract::new(vec![policy; MOST_POLICIES + 1]).unwrap_err();
    assert_eq!(error.to_string(), "17 policies in a contract, 1 to 16 are wanted");
}

#[test]
#[should_panic(expected = "the least is more than the most")]
fn nobody_asks_for_at_least_more_than_at_most() {
    let _ = Ask::between(2, 1);
}

#[test]
#[should_panic(expected = "the domain has changed since")]
fn a_plan_that_is_carried_out_twice_is_noticed() {
    let policy = TierPolicy::new(vec![tier(3, LONGEST, Window::Exact)], None, None).unwrap();
    let contract = Contract::from(policy);
    let mut domain = Domain::new();
    let plan = domain.plan(&contract, &Global::exact(), 0, Ask::exactly(2));
    domain.commit(&contract, &plan);
    domain.commit(&contract, &plan);
}

/// Though the limit of the tier has no end, the times that are remembered have:
/// 65,536.
#[test]
fn no_domain_takes_more_than_a_megabyte() {
    let contract =
        Contract::from(TierPolicy::new(vec![tier(u32::MAX, LONGEST, Window::Exact)], None, None).unwrap());
    let (mut domain, mut all) = (Domain::new(), Global::default());
    for at in 0..200_000 {
        assert_eq!(domain.request(&contract, &mut all, at * 1000, Ask::ONE).granted, 1);
    }
    assert_eq!(domain.tiers(&contract, 0).next().unwrap().hits, 200_000);
    assert!(domain.heap_bytes() <= 1 << 20);
}
