//! Programs behind clients: what limiters and gauges let through, counted by itself.

use std::time::Duration;

use lessor_proto::Amount;
use lessor_server::repository::Kind;
use lessor_sim::faults::{Fault, FaultPlan};
use lessor_sim::plan::{ResourcePlan, SimulationPlan, Terms};
use lessor_sim::simulation::Simulation;

/// A plan of `clients` clients of one site that want now this and now that of `resource`.
fn restless(clients: usize, resource: ResourcePlan) -> SimulationPlan {
    let mut plan = SimulationPlan::flat(clients, 1.0, 4.0);
    plan.resources = vec![resource];
    plan.faults = FaultPlan {
        until: Duration::from_secs(60),
        restless: Some(Duration::from_secs(2)),
        ..FaultPlan::none()
    };
    plan
}

#[test]
fn hits_come_as_fast_as_the_capacity_brings_them_and_no_faster() {
    let mut sim = Simulation::new(3, &restless(4, ResourcePlan::rate("db", 400.0)));
    sim.pass(Duration::from_secs(60)).unwrap();
    let hits = sim.counts().hits;
    // They do not try all the time; and what is asked for changes.
    assert!((500..=60 * 400 + 20).contains(&hits), "{hits} hits");
}

#[test]
fn units_are_in_use_across_recalls_and_all_of_them_fit() {
    let gauge = ResourcePlan { kind: Kind::Gauge, ..ResourcePlan::rate("licences", 10.0) };
    let mut sim = Simulation::new(4, &restless(5, gauge));
    let mut recalled = 0;
    for _ in 0..600 {
        sim.pass(Duration::from_millis(100)).unwrap();
        recalled +=
            u32::from((0..5).any(|client| {
                sim.in_use(client) > sim.lease_of(client) && sim.in_use(client) > Amount::ZERO
            }));
    }
    assert!(sim.counts().operations > 100, "{} operations", sim.counts().operations);
    assert!(recalled > 10, "units outlast a recall in {recalled} of 600 looks");
}

/// A permit whose lease has ended must not come to life with the next lease, whatever is done under it.
#[test]
fn permits_that_have_ended_stay_so() {
    let gauge = || ResourcePlan { kind: Kind::Gauge, ..ResourcePlan::rate("licences", 10.0) };
    let mut cut_off = 0;
    for seed in 0..5 {
        let mut plan = restless(5, gauge());
        plan.settings.overstays = true;
        plan.sites[0].terms =
            Terms { lease_length: Duration::from_secs(3), refresh_interval: Duration::from_secs(1) };
        plan.faults.gaps[Fault::CutClient as usize] = Some(Duration::from_secs(3));
        plan.faults.spell = Duration::from_secs(6);
        let mut sim = Simulation::new(seed, &plan);
        sim.pass(Duration::from_secs(60)).unwrap();
        cut_off += sim.tally().gaps[Fault::CutClient as usize];
    }
    assert!(cut_off > 20, "{cut_off}");
}
