//! Domains of the scope `strict` in a simulation: what all clients together make of a domain never passes its limit, and
//! everybody who asks has a part in turn.

use std::time::Duration;

use lessor_sim::faults::{Fault, FaultPlan};
use lessor_sim::plan::{DomainPlan, Hold, ResourcePlan, SimulationPlan, Terms};
use lessor_sim::simulation::Simulation;
use lessor_sim::swarm::live;

/// Two leaves with three clients each, which have enough of the resource, and one domain of it.
fn plan(limit: u32, seconds: u64) -> SimulationPlan {
    let mut plan = SimulationPlan::tree(&[2], 3, 1_000.0, 100.0);
    let domain = DomainPlan { of: 0, limit, window: Duration::from_secs(seconds) };
    plan.resources.push(ResourcePlan::domain("db", "tenant", domain));
    plan.clients.iter_mut().for_each(|client| client.holds.push(Hold::new(1, 0.0)));
    for site in &mut plan.sites {
        site.terms =
            Terms { lease_length: Duration::from_secs(10), refresh_interval: Duration::from_secs(2) };
    }
    plan.faults =
        FaultPlan { until: Duration::from_secs(60), spell: Duration::from_secs(2), ..FaultPlan::none() };
    plan
}

/// Without faults, and with those that hit leaders, clients and what is between them.
#[track_caller]
fn check(limit: u32, seconds: u64) {
    let calm = plan(limit, seconds);
    let mut rough = plan(limit, seconds);
    let kinds =
        [Fault::Break, Fault::Crash, Fault::Drop, Fault::LoseLeader, Fault::CutClient, Fault::CutSite];
    kinds.into_iter().for_each(|kind| rough.faults.gaps[kind as usize] = Some(Duration::from_secs(5)));
    for (seed, plan) in [(1, &calm), (2, &rough), (3, &rough)] {
        let mut sim = Simulation::new(seed, plan);
        sim.pass(plan.faults.until).expect("no rule is broken");
        assert!(sim.counts().hits > 0, "hits were made");
        live(&mut sim, plan, true).expect("no rule is broken");
    }
}

#[test]
fn of_a_domain_with_many_parts_no_window_has_too_many_hits_and_nobody_is_forgotten() {
    check(60, 1);
}

#[test]
fn of_a_domain_with_one_part_no_window_has_too_many_hits_and_nobody_is_forgotten() {
    check(5, 1);
}
