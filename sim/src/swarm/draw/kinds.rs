//! Kinds of resources that are changed: from rng of their own, so that all else is as it would be without.

use std::time::Duration;

use super::super::Options;
use crate::faults::Fault;
use crate::plan::SimulationPlan;
use crate::rng::Rng;

/// In one simulation of eight operators make rates of gauges, and gauges of rates, now and then.
pub(super) fn change(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x000f_0a11_6b15);
    let every = Duration::from_millis(rng.between(4_000, 25_000));
    if rng.chance(125) && !options.without.contains(&Fault::Kind) {
        plan.faults.gaps[Fault::Kind as usize] = Some(every);
    }
}
