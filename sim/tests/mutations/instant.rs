//! A thousand clients that come at one instant.

use std::time::Duration;

use lessor_proto::Epoch;
use lessor_server::node::NodeConfig;
use lessor_sim::mutation::Mutation;

use crate::world::{BURST, CAPACITY, World, worst};

/// All of them take what there is, again and again: at once no more than the capacity brings in the burst.
pub(crate) fn of_a_thousand(without: Option<Mutation>) -> Option<String> {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let mut world = World::new(1_000, NodeConfig { rules, ..NodeConfig::new("root", Epoch(1)) });
    world.pass(Duration::from_secs(20));
    (0..1_000).for_each(|client| world.acquire(client));
    world.pass(Duration::from_secs(2));
    assert!(world.passes.len() > 150, "they are served");
    let (instant, _) = worst(&world.passes, CAPACITY);
    let saved = (CAPACITY as f64 * BURST.as_secs_f64()) as usize;
    (instant > saved).then(|| format!("{instant} of {saved} in one instant"))
}

/// All of them are denied, and come again together when what was sent first is nearly lost.
pub(crate) fn of_a_thousand_who_do_not_wait(without: Option<Mutation>) -> Option<String> {
    let rules = without.map(Mutation::node).unwrap_or_default();
    let mut world = World::new(1_000, NodeConfig { rules, ..NodeConfig::new("root", Epoch(1)) });
    world.pass(Duration::from_secs(20));
    let mut try_all = |later: Duration| {
        world.pass(later);
        (0..1_000).filter(|&client| world.try_acquire(client).is_ok()).count()
    };
    assert_eq!(try_all(Duration::ZERO), 0, "nothing is saved up");
    let instant = try_all(Duration::from_millis(58));
    let saved = (CAPACITY as f64 * BURST.as_secs_f64()) as usize;
    assert!(instant >= saved, "{instant} of {saved} are sent, and kept");
    (instant > saved).then(|| format!("{instant} of {saved} in one instant"))
}
