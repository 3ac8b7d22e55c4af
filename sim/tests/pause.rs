//! Machines that stand still with their clocks: they go on with nothing that others have meanwhile, and get their share again.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use lessor_sim::faults::Fault;
use lessor_sim::plan::SimulationPlan;
use lessor_sim::simulation::Simulation;
use lessor_sim::swarm::{Options, plan, run_one};

fn sim() -> Simulation {
    let mut sim = Simulation::new(4, &SimulationPlan::tree(&[2], 3, 60.0, 20.0));
    sim.pass(Duration::from_secs(30)).unwrap();
    sim
}

#[test]
fn a_client_whose_machine_stood_still_for_longer_than_its_lease_goes_on_with_nothing() {
    let mut sim = sim();
    assert!(sim.pause_client(0, Duration::from_secs(90)));
    (1..6).for_each(|client| sim.set_wants(client, 60.0));
    sim.pass(Duration::from_secs(89)).unwrap();
    assert!(sim.total_believed(0) > 59_000_000, "the others have it: {}", sim.total_believed(0));
    // The oracle would see it if this one went on with its ten.
    sim.pass(Duration::from_secs(60)).unwrap();
    assert!(sim.believed(0).as_f64() > 9.0, "{}", sim.believed(0));
    sim.judge().unwrap();
}

#[test]
fn a_leader_whose_machine_stood_still_acts_no_more() {
    for site in [0, 1] {
        let mut sim = sim();
        assert!(sim.pause_leader(site, Duration::from_secs(40)));
        sim.pass(Duration::from_secs(20)).unwrap();
        assert!(sim.is_led(site), "another one does");
        sim.pass(Duration::from_secs(100)).unwrap();
        assert_eq!(sim.acting(site), 1);
        sim.judge().unwrap();
    }
}

#[test]
fn simulations_with_such_machines_break_no_rule() {
    let options = Options::default();
    let pauses = |seed: &u64| plan(*seed, &options).faults.every(Fault::Pause).is_some();
    let mut paused = 0;
    for seed in (0..).filter(pauses).take(10) {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        paused += run.faults.gaps[Fault::Pause as usize];
    }
    assert!(paused > 20, "{paused}");
}
