//! Tests of what the oracle sees of leases.

use std::time::Duration;

use lessor_client::Transport;
use lessor_proto::ResourceId;

use crate::plan::{Link, SimulationPlan};
use crate::simulation::Simulation;

/// A root and a leaf a second away, which polls, and one client that wants 10 of 100.
fn far() -> SimulationPlan {
    let mut plan = SimulationPlan::tree(&[1], 1, 100.0, 10.0);
    plan.sites[1].link = Link::fixed(Duration::from_secs(1));
    plan.sites[1].transport = Transport::Poll;
    plan
}

/// The grant that the leaf holds, as the oracle has it and as its session does, and what it may hand out of that.
fn held(sim: &Simulation) -> Option<[Option<lessor_proto::message::Order>; 2]> {
    let task = sim.tree.sites[1].head?;
    let id = ResourceId::new("db", 256).expect("a name");
    let session = sim.tree.tasks[task as usize].leadership.as_ref()?.node.parent_session()?;
    let seen = &sim.oracle.seen[sim.oracle.at(task, 0)];
    (seen.amount > 0).then(|| [seen.order, session.proof(&id).map(|proof| proof.order)])
}

/// While the answer is on its way, less is wanted: the leaf gives some of what it adopts back at once.
#[test]
fn a_node_holds_what_it_adopted_last_also_where_it_gives_some_of_it_back_at_once() {
    let mut sim = Simulation::new(1, &far());
    sim.pass(Duration::from_secs(30)).expect("no rule is broken");
    let before = held(&sim).expect("it has a lease");
    sim.set_wants(0, 80.0);
    sim.pass(Duration::from_millis(1_500)).expect("no rule is broken");
    sim.set_wants(0, 30.0);
    for _ in 0..100 {
        sim.pass(Duration::from_millis(10)).expect("no rule is broken");
        let [seen, held] = held(&sim).expect("it has a lease");
        assert_eq!(seen, held, "at {:?}", sim.now());
    }
    assert_ne!(held(&sim).expect("it has a lease"), before, "it was granted more meanwhile");
}
