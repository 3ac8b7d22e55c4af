//! Looks of operators at the tree: from an rng of their own, so that all else is as it would be without.

use std::time::Duration;

use super::super::Options;
use crate::faults::Fault;
use crate::plan::SimulationPlan;
use crate::rng::Rng;

/// The first seed that may have them: those before were judged without, and many of them are run with all tests.
const FIRST: u64 = 11_400_000;

/// In one simulation of three operators look at the tree, from each few seconds to ten times a second.
pub(super) fn look(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x001_00c5_a77e);
    if seed < FIRST || !rng.chance(333) || options.without.contains(&Fault::Look) {
        return;
    }
    plan.faults.gaps[Fault::Look as usize] = Some(Duration::from_millis(rng.between(100, 5_000)));
}
