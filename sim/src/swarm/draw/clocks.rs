//! Machines that stand still with their clocks: from dice of their own, so that all else is as it would be without.

use std::time::Duration;

use super::super::Options;
use crate::dice::Dice;
use crate::faults::Mischief;
use crate::plan::TownPlan;

/// In one town of eight machines stand still now and then.
pub(super) fn pause(seed: u64, options: &Options, plan: &mut TownPlan) {
    let mut dice = Dice::new(seed ^ 0x0007_57a2_d511);
    let every = Duration::from_millis(dice.between(2_000, 20_000));
    if dice.chance(125) && !options.without.contains(&Mischief::Pause) {
        plan.faults.mischief[Mischief::Pause as usize] = Some(every);
    }
}
