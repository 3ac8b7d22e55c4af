//! Limits on the uses in any window: from an rng of their own, so that all else is as it would be without.

use std::time::Duration;

use lessor_server::repository::{Kind, Legacy, Rotate};

use crate::faults::Fault;
use crate::plan::{ResourcePlan, SimulationPlan, Way};
use crate::rng::Rng;

/// The first seed that may have them: those before were judged without, and many of them are run with all tests.
const FIRST: u64 = 10_300_000;
/// The shortest window.
const LEAST: Duration = Duration::from_millis(200);

/// In one simulation of three each resource is a limit on windows, whose leases outlast them at each site. Not where clients have
/// domains, which are of rates, nor among processes of an older version, which know of no windows; and leases keep their length, or
/// else templates would be refused. Doorman's clients are refused, so they are ours.
pub(super) fn keep(seed: u64, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x0e8a_c7ed_f00d);
    let has_domains = plan.domain.is_some() || plan.resources.iter().any(|found| found.domain.is_some());
    if seed < FIRST || !rng.chance(333) || has_domains || plan.mixed.is_some() {
        return;
    }
    // What is left of a lease beside its window is what a holder can make uses in.
    let left = plan.sites.iter().map(|site| {
        let terms = site.terms;
        terms.lease_length.saturating_sub(terms.refresh_interval * 2 + Duration::from_secs(1))
    });
    let Some(longest) = left.min().filter(|&left| left >= LEAST) else { return };
    let part = rng.between(200, 900) as u32;
    let window = LEAST.max(longest * part / 1_000);
    for resource in &mut plan.resources {
        *resource = ResourcePlan {
            kind: Kind::Gauge,
            rotate: Some(Rotate::None),
            quantum: None,
            burst: None,
            window: Some(window),
            legacy: Legacy::Deny,
            ..resource.clone()
        };
    }
    for client in plan.clients.iter_mut().filter(|client| client.way == Way::Legacy) {
        client.way = Way::Poll;
    }
    for hold in plan.clients.iter_mut().flat_map(|client| &mut client.holds) {
        (hold.wants, hold.weight, hold.is_measured) = (hold.wants.ceil(), 1, false);
    }
    plan.forgetful = false;
    plan.faults.gaps[Fault::Lease as usize] = None;
    plan.faults.gaps[Fault::Kind as usize] = None;
}
