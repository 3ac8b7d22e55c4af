//! Machines that stand still with their clocks: they go on with nothing that others have meanwhile, and get their share again.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use lessor_sim::faults::Mischief;
use lessor_sim::plan::TownPlan;
use lessor_sim::swarm::{Options, plan, run_one};
use lessor_sim::town::Town;

fn town() -> Town {
    let mut town = Town::new(4, &TownPlan::tree(&[2], 3, 60.0, 20.0));
    town.pass(Duration::from_secs(30)).unwrap();
    town
}

#[test]
fn a_client_whose_machine_stood_still_for_longer_than_its_lease_goes_on_with_nothing() {
    let mut town = town();
    assert!(town.pause_client(0, Duration::from_secs(90)));
    (1..6).for_each(|client| town.set_wants(client, 60.0));
    town.pass(Duration::from_secs(89)).unwrap();
    assert!(town.total_believed(0) > 59_000_000, "the others have it: {}", town.total_believed(0));
    // The oracle would see it if this one went on with its ten.
    town.pass(Duration::from_secs(60)).unwrap();
    assert!(town.believed(0).as_f64() > 9.0, "{}", town.believed(0));
    town.judge().unwrap();
}

#[test]
fn a_leader_whose_machine_stood_still_acts_no_more() {
    for place in [0, 1] {
        let mut town = town();
        assert!(town.pause_leader(place, Duration::from_secs(40)));
        town.pass(Duration::from_secs(20)).unwrap();
        assert!(town.is_led(place), "another one does");
        town.pass(Duration::from_secs(100)).unwrap();
        assert_eq!(town.acting(place), 1);
        town.judge().unwrap();
    }
}

#[test]
fn towns_with_such_machines_break_no_rule() {
    let options = Options::default();
    let pauses = |seed: &u64| plan(*seed, &options).faults.every(Mischief::Pause).is_some();
    let mut paused = 0;
    for seed in (0..).filter(pauses).take(10) {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        paused += run.faults.mischief[Mischief::Pause as usize];
    }
    assert!(paused > 20, "{paused}");
}
