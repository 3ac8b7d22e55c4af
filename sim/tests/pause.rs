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

/// One of two leaves stands still while the client of the other comes to want its share again, so that a part of what this one
/// has is recalled. Where that is the first that it hears, it shows in the event in which it goes on that it keeps less.
#[test]
fn a_leader_that_gives_back_in_the_event_in_which_it_goes_on_has_no_more_than_it_kept() {
    let mut sim = Simulation::new(1, &SimulationPlan::tree(&[2], 1, 100.0, 60.0));
    for _ in 0..20 {
        sim.set_wants(1, 10.0);
        sim.pass(Duration::from_millis(10_130)).unwrap();
        assert!(sim.believed(0).as_f64() > 59.0, "{}", sim.believed(0));
        assert!(sim.pause_leader(1, Duration::from_millis(250)));
        sim.set_wants(1, 60.0);
        sim.pass(Duration::from_secs(10)).unwrap();
        assert!(sim.believed(1).as_f64() > 49.0, "{}", sim.believed(1));
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
