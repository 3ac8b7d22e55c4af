//! The drawing of how servers remember what is out, and of what goes wrong with that: from an rng of its own, so that
//! all else is as it would be without.

use std::time::Duration;

use super::super::Options;
use crate::faults::Fault;
use crate::plan::{DiskPlan, Election, Link, Memory, SimulationPlan};
use crate::rng::Rng;

/// The first seed in which changes may be added to files: those before were judged without, and take the course that they took.
const FIRST_GROWING: u64 = 14_000_000;

/// In one of twenty-five simulations with an etcd servers are alone instead, with state directories; in one of sixteen sites are given
/// another way to remember now and then.
pub(super) fn remember(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x3e30_47a7_e512);
    let Election::Etcd(etcd) = plan.election else { return };
    let moves = match rng.below(100) {
        0..4 => false,
        4..10 => true,
        _ => return,
    };
    let latency = Duration::from_micros(rng.between(100, 2_000));
    let write = Link { latency, jitter: Duration::from_millis(rng.between(1, 20)) };
    if !moves || rng.chance(300) {
        plan.election = Election::Alone;
    }
    let mut every = |kind: Fault, of_thousand: u32, least: u64| {
        let drawn = rng.chance(of_thousand).then(|| Duration::from_millis(rng.between(least, 40_000)));
        plan.faults.gaps[kind as usize] = drawn.filter(|_| !options.without.contains(&kind));
    };
    every(Fault::LosePower, 500, 4_000);
    every(Fault::FillDisk, 400, 5_000);
    every(Fault::DamageFile, 300, 5_000);
    every(Fault::Move, if moves { 1_000 } else { 0 }, 5_000);
    let grows = seed >= FIRST_GROWING && rng.chance(500);
    plan.memory = Memory { disk: Some(DiskPlan { write, grows }), etcd: moves.then_some(etcd) };
}
