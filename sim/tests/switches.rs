//! What the swarm can do and does not draw yet: settings in which the promise is broken as servers and clients are. Each
//! shows that the oracle sees the break; whoever mends it turns its test round, and lets the swarm draw it.

use lessor_server::repository::{Kind, Legacy};
use lessor_sim::faults::Mischief;
use lessor_sim::plan::{Election, TownPlan, Way};
use lessor_sim::swarm::{Options, plan, run_one};

/// In one of the first fifty towns that are `such` something is over-committed with `switched` options, and nothing with those
/// that are drawn.
fn check_is_seen(such: impl Fn(&TownPlan) -> bool, switched: &Options) {
    let drawn = Options { judged: false, ..Options::default() };
    let seeds = (0..).filter(|&seed| such(&plan(seed, switched))).take(50);
    let mut found = seeds.filter_map(|seed| run_one(seed, switched).violation);
    let first = found.next().expect("something to be seen");
    println!("seed {}: {} {}", first.seed, first.rule, first.what);
    assert!([1, 2, 3, 4, 7].contains(&first.rule.0), "{first}");
    if let Some(violation) = run_one(first.seed, &drawn).violation {
        panic!("as it is drawn: {violation}");
    }
}

/// Clients of Doorman's that go on with what they have.
fn is_sticky(plan: &TownPlan) -> bool {
    plan.resources.iter().any(|resource| matches!(resource.legacy, Legacy::Sticky { .. }))
        && plan.clients.iter().any(|client| client.way == Way::Legacy)
}

/// Servers without etcd, in a tree.
fn is_lone_tree(plan: &TownPlan) -> bool {
    plan.election == Election::Alone && plan.places.len() > 1
}

#[test]
fn a_server_below_others_that_begins_again_without_memory_hands_out_nothing_twice() {
    let options = Options::default();
    let seeds = (0..).filter(|&seed| is_lone_tree(&plan(seed, &options))).take(50);
    let mut lost = 0;
    for seed in seeds {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        lost += run.faults.mischief[Mischief::LoseLeader as usize];
    }
    assert!(lost > 50, "{lost}");
}

#[test]
fn two_servers_of_one_name_are_charged_by_themselves() {
    let options = Options::default();
    let of_one_name = |plan: &TownPlan| plan.namesakes;
    let seeds = (0..).filter(|&seed| of_one_name(&plan(seed, &options))).take(50);
    let mut lost = 0;
    for seed in seeds {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        lost += run.faults.mischief[Mischief::LoseLeader as usize];
    }
    assert!(lost > 30, "{lost}");
}

/// A successor that gives such a client back the lease that it shows does not count it from then on, but from its election.
#[test]
fn sticky_leases_that_a_successor_echoes_are_seen_to_be_used_for_longer_than_they_count() {
    let options = Options { sticky: true, flat: true, polling: true, judged: false, ..Options::default() };
    check_is_seen(is_sticky, &options);
}

/// A lone root that comes back to a smaller capacity charges holders for all that they show.
#[test]
fn a_root_that_learns_while_its_capacity_is_cut_charges_what_is_in_use() {
    let options = Options { judged: false, ..Options::default() };
    let lone_gauge = |plan: &TownPlan| {
        let gauge = plan.resources.iter().any(|resource| resource.kind == Kind::Gauge);
        plan.election == Election::Alone && plan.places.len() == 1 && gauge
    };
    let seeds = (0..).filter(|&seed| lone_gauge(&plan(seed, &options))).take(50);
    let (mut lost, mut cuts) = (0, 0);
    for seed in seeds {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "{:?}", run.violation);
        lost += run.faults.mischief[Mischief::LoseLeader as usize];
        cuts += run.faults.mischief[Mischief::Capacity as usize];
    }
    assert!(lost > 30 && cuts > 50, "{lost} lost, {cuts} cuts");
}
