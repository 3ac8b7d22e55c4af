//! How servers remember what is out, and what goes wrong with that: from dice of their own, so that all else is as it would
//! be without.

use std::time::Duration;

use super::super::Options;
use crate::dice::Dice;
use crate::faults::Mischief;
use crate::plan::{DiskPlan, Election, Link, Memory, TownPlan};

/// In one of twenty-five towns with an etcd servers are alone instead, with state directories; in one of sixteen places are given
/// another way to remember now and then.
pub(super) fn remember(seed: u64, options: &Options, plan: &mut TownPlan) {
    let mut dice = Dice::new(seed ^ 0x3e30_47a7_e512);
    let Election::Etcd(etcd) = plan.election else { return };
    let moves = match dice.below(100) {
        0..4 => false,
        4..10 => true,
        _ => return,
    };
    let latency = Duration::from_micros(dice.between(100, 2_000));
    let write = Link { latency, jitter: Duration::from_millis(dice.between(1, 20)) };
    plan.memory = Memory { disk: Some(DiskPlan { write }), etcd: moves.then_some(etcd) };
    if !moves || dice.chance(300) {
        plan.election = Election::Alone;
    }
    let mut every = |kind: Mischief, of_thousand: u32, least: u64| {
        let drawn = dice.chance(of_thousand).then(|| Duration::from_millis(dice.between(least, 40_000)));
        plan.faults.mischief[kind as usize] = drawn.filter(|_| !options.without.contains(&kind));
    };
    every(Mischief::LosePower, 500, 4_000);
    every(Mischief::FillDisk, 400, 5_000);
    every(Mischief::DamageFile, 300, 5_000);
    every(Mischief::Move, if moves { 1_000 } else { 0 }, 5_000);
}
