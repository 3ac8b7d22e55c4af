//! Limits of servers, caps of templates, and rules of access: from a stream of chance of their own, so that all else is as it would be
//! without.

use std::time::Duration;

use super::super::Options;
use crate::faults::Fault;
use crate::plan::{LimitPlan, SimulationPlan};
use crate::rng::Rng;

/// The first seed that may have any: those before were judged without, and many of them are run with all tests.
const FIRST: u64 = 8_300_000;

/// The first seed that may have recalls, for the same reason.
const FIRST_RECALLED: u64 = 9_200_000;

/// The first seed that may have overrides.
const FIRST_OVERRIDDEN: u64 = 12_000_000;

/// In one simulation of four there are limits, caps that operators change, or rules of access by which they take rights away and give
/// them back; and in half of those that have rules they recall leases by hand, and in half they freeze, drain and cap. Not where clients have domains, whose hits are judged as
/// those of clients that may do as they like.
pub(super) fn limit(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x0011_a17a_cce5);
    let has_domains = plan.domain.is_some() || plan.resources.iter().any(|found| found.domain.is_some());
    if seed < FIRST || !rng.chance(250) || has_domains {
        return;
    }
    let most = most_holders(plan);
    let all = most * plan.resources.len() as u64;
    plan.limits = LimitPlan {
        clients: rng.chance(500).then(|| rng.between(most.div_ceil(2), most + 1) as usize),
        holdings: rng.chance(400).then(|| rng.between(all.div_ceil(2), all + 1) as usize),
        of_stream: rng.chance(150).then_some(1),
        access: rng.chance(750),
    };
    for resource in &mut plan.resources {
        resource.most_priority = rng.chance(250).then_some(0);
        resource.most_clients = rng.chance(350).then(|| rng.between(1, 6) as u32);
    }
    let rights = plan.limits.access.then(|| Duration::from_millis(rng.between(1_000, 12_000)));
    let caps = rng.chance(500).then(|| Duration::from_millis(rng.between(2_000, 20_000)));
    let is_recalled = seed >= FIRST_RECALLED && plan.limits.access && rng.chance(500);
    let recalls = is_recalled.then(|| Duration::from_millis(rng.between(2_000, 20_000)));
    let is_overridden = seed >= FIRST_OVERRIDDEN && plan.limits.access && rng.chance(500);
    let overrides = is_overridden.then(|| Duration::from_millis(rng.between(1_000, 12_000)));
    let all = [
        (Fault::Rights, rights),
        (Fault::Caps, caps),
        (Fault::Recall, recalls),
        (Fault::Override, overrides),
    ];
    for (kind, every) in all {
        plan.faults.gaps[kind as usize] = every.filter(|_| !options.without.contains(&kind));
    }
}

/// The greatest number of holders that ask one site.
fn most_holders(plan: &SimulationPlan) -> u64 {
    let of = |site: usize| {
        let clients = plan.clients.iter().filter(|client| client.site as usize == site).count();
        let nodes = plan.sites.iter().filter(|other| other.parent == Some(site as u32)).count();
        (clients + nodes) as u64
    };
    (0..plan.sites.len()).map(of).max().unwrap_or(1).max(1)
}
