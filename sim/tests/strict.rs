//! Domains with leases of their own, over a network that takes its time: never a hit too many, and most of what one who is
//! asked for every hit would grant.

use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_sim::tenants::{TenantsReport, TenantsRun, TenantsTraffic, TenantsWay};

/// Hits in a window of so many seconds, and in any second.
fn contract(limit: u32, seconds: u64, hard: Option<u32>) -> Contract {
    let window = Duration::from_secs(seconds);
    let (active, cooldown) = (window, Duration::ZERO);
    let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact };
    Contract::from(TierPolicy::new(vec![tier], hard, None).expect("a policy that holds together"))
}

/// All patterns together, two minutes each, and two seeds; at least `least` of what the center grants.
#[track_caller]
fn check(clients: usize, rate: f64, contract: &Contract, least: f64) {
    let mut sum = TenantsReport::default();
    for traffic in TenantsTraffic::ALL {
        let run = TenantsRun {
            clients,
            traffic,
            way: TenantsWay::Strict,
            seconds: 120,
            rate,
            contract: contract.clone(),
            ..TenantsRun::default()
        };
        let report = run.play(1).plus(run.play(2));
        println!(
            "{clients} clients, {traffic}: {:.3} of the center, {} incorrect of {}",
            1.0 + report.over(),
            report.incorrect,
            report.refused
        );
        assert_eq!(report.excess, 0, "{traffic}: {report:?}");
        sum = sum.plus(report);
    }
    assert!(1.0 + sum.over() >= least, "{sum:?}");
}

#[test]
fn no_hit_is_made_too_many_where_parts_are_many() {
    check(4, 40.0, &contract(100, 10, Some(80)), 0.6);
    check(4, 200.0, &contract(100, 1, None), 0.7);
}

#[test]
fn no_hit_is_made_too_many_where_turns_are_taken() {
    check(16, 40.0, &contract(100, 10, Some(80)), 0.35);
    check(4, 40.0, &contract(5, 1, None), 0.4);
}
