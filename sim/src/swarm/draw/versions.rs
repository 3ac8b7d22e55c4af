//! Processes of an earlier version: from rng of their own, so that all else is as it would be without.

use crate::plan::SimulationPlan;
use crate::rng::Rng;

/// In one simulation of four some clients and tasks are of the version before.
pub(super) fn mix(seed: u64, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x0be4_0e15_0107);
    plan.mixed = rng.chance(250).then(|| rng.number());
}
