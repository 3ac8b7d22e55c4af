//! Settings in which the promise was once broken, and that the swarm draws rarely: simulations of each, one after the other.

use lessor_server::repository::{Kind, Legacy};
use lessor_sim::faults::Fault;
use lessor_sim::plan::{Election, Memory, SimulationPlan, Way};
use lessor_sim::swarm::{Options, plan, run_one};

/// Clients of Doorman's that go on with what they have.
fn is_sticky(plan: &SimulationPlan) -> bool {
    plan.resources.iter().any(|resource| matches!(resource.legacy, Legacy::Sticky { .. }))
        && plan.clients.iter().any(|client| client.way == Way::Legacy)
}

/// Servers without etcd that write nothing down, in a tree.
fn is_lone_tree(plan: &SimulationPlan) -> bool {
    plan.election == Election::Alone && plan.memory == Memory::default() && plan.sites.len() > 1
}

#[test]
fn a_server_below_others_that_begins_again_without_memory_hands_out_nothing_twice() {
    let options = Options::default();
    let seeds = (0..).filter(|&seed| is_lone_tree(&plan(seed, &options))).take(50);
    let mut lost = 0;
    for seed in seeds {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        lost += run.faults.gaps[Fault::LoseLeader as usize];
    }
    assert!(lost > 50, "{lost}");
}

#[test]
fn two_servers_of_one_name_are_charged_by_themselves() {
    let options = Options::default();
    let of_one_name = |plan: &SimulationPlan| plan.namesakes;
    let seeds = (0..).filter(|&seed| of_one_name(&plan(seed, &options))).take(80);
    let mut lost = 0;
    for seed in seeds {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        lost += run.faults.gaps[Fault::LoseLeader as usize];
    }
    assert!(lost > 30, "{lost}");
}

/// A successor that gives such a client back the lease that it shows counts it from then on.
#[test]
fn sticky_leases_that_a_successor_echoes_count_for_as_long_as_they_are_used() {
    let options = Options { flat: true, polling: true, judged: false, ..Options::default() };
    let seeds = (0..).filter(|&seed| is_sticky(&plan(seed, &options))).take(100);
    let mut lost = 0;
    for seed in seeds {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        lost += run.faults.gaps[Fault::LoseLeader as usize];
    }
    assert!(lost > 50, "{lost}");
}

/// A lone root that comes back to a smaller capacity charges holders for all that they show.
#[test]
fn a_root_that_learns_while_its_capacity_is_cut_charges_what_is_in_use() {
    let options = Options { judged: false, ..Options::default() };
    let lone_gauge = |plan: &SimulationPlan| {
        let gauge = plan.resources.iter().any(|resource| resource.kind == Kind::Gauge);
        plan.election == Election::Alone && plan.sites.len() == 1 && gauge
    };
    let seeds = (0..).filter(|&seed| lone_gauge(&plan(seed, &options))).take(50);
    let (mut lost, mut cuts) = (0, 0);
    for seed in seeds {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        lost += run.faults.gaps[Fault::LoseLeader as usize];
        cuts += run.faults.gaps[Fault::Capacity as usize];
    }
    assert!(lost > 30 && cuts > 50, "{lost} lost, {cuts} cuts");
}
