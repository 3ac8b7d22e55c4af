//! Templates that are followed at etcd: from an rng of their own, so that all else is as it would be without.

use std::time::Duration;

use super::super::Options;
use crate::faults::Fault;
use crate::plan::{Election, SimulationPlan};
use crate::rng::Rng;

/// The first seed that may have them: those before were judged without, and many of them are run with all tests.
const FIRST: u64 = 10_200_000;

/// In one simulation of four tasks follow templates at etcd, which operators restore from an older copy in half of them. Not where
/// machines stand still with their clocks, as the etcd of the templates has a perfect one, and not where sites change their way to
/// remember.
pub(super) fn follow(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x7e3_0f01_10e5);
    let is_elected = matches!(plan.election, Election::Etcd(_)) && plan.memory.etcd.is_none();
    if seed < FIRST || !rng.chance(250) || !is_elected || plan.memory.disk.is_some() {
        return;
    }
    (plan.follows, plan.editions) = (true, true);
    plan.faults.gaps[Fault::Pause as usize] = None;
    let restores = rng.chance(500).then(|| Duration::from_millis(rng.between(4_000, 15_000)));
    plan.faults.gaps[Fault::Restore as usize] =
        restores.filter(|_| !options.without.contains(&Fault::Restore));
    let changes = Duration::from_millis(rng.between(2_000, 15_000));
    let capacity = &mut plan.faults.gaps[Fault::Capacity as usize];
    if !options.without.contains(&Fault::Capacity) {
        // There is something to push.
        *capacity = Some(capacity.map_or(changes, |every| every.min(changes)));
    }
}
