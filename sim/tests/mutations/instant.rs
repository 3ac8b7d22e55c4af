//! A thousand clients that come at one instant.

use std::time::Duration;

use lessor_server::node::NodeConfig;
use lessor_sim::mutation::Mutation;

use crate::world::{BURST, CAPACITY, World, worst};

/// All of them take what there is, again and again: at once no more than the capacity brings in the burst.
pub(crate) fn of_a_thousand(without: Option<Mutation>) -> Option<String> {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let mut world = World::new(1_000, NodeConfig { rules, ..NodeConfig::new("root", 1) });
    world.pass(Duration::from_secs(20));
    (0..1_000).for_each(|client| world.acquire(client));
    world.pass(Duration::from_secs(2));
    assert!(world.passes.len() > 150, "they are served");
    let (instant, _) = worst(&world.passes);
    let saved = (CAPACITY as f64 * BURST.as_secs_f64()) as usize;
    (instant > saved).then(|| format!("{instant} of {saved} in one instant"))
}
