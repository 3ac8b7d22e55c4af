//! Machines that stand still with their clocks: from rng of their own, so that all else is as it would be without.

use std::time::Duration;

use super::super::Options;
use crate::faults::Fault;
use crate::plan::SimulationPlan;
use crate::rng::Rng;

/// In one simulation of eight machines stand still now and then.
pub(super) fn pause(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x0007_57a2_d511);
    let every = Duration::from_millis(rng.between(2_000, 20_000));
    if rng.chance(125) && !options.without.contains(&Fault::Pause) {
        plan.faults.gaps[Fault::Pause as usize] = Some(every);
    }
}
