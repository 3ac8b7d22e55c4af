//! Kinds of resources that are changed: from dice of their own, so that all else is as it would be without.

use std::time::Duration;

use super::super::Options;
use crate::dice::Dice;
use crate::faults::Mischief;
use crate::plan::TownPlan;

/// In one town of eight operators make rates of gauges, and gauges of rates, now and then.
pub(super) fn change(seed: u64, options: &Options, plan: &mut TownPlan) {
    let mut dice = Dice::new(seed ^ 0x000f_0a11_6b15);
    let every = Duration::from_millis(dice.between(4_000, 25_000));
    if dice.chance(125) && !options.without.contains(&Mischief::Kind) {
        plan.faults.mischief[Mischief::Kind as usize] = Some(every);
    }
}
