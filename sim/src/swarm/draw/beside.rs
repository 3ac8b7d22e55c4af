//! Second limits that are tried beside those in force: from an rng of their own, so that all else is as it would be without.

use std::time::Duration;

use lessor_proto::Amount;

use super::super::Options;
use crate::faults::Fault;
use crate::plan::{Hold, ResourcePlan, SimulationPlan, Way};
use crate::rng::Rng;

/// The first seed that may have them: those before were judged without, and many of them are run with all tests.
const FIRST: u64 = 13_000_000;

/// In one simulation of three a second limit is tried beside that of a resource, from a fifth of that to a little more, and
/// operators take it out and put it back in most of them. Not where clients have domains, nor of limits on windows, which have no
/// second. Doorman's clients are told of none.
pub(super) fn accompany(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x0be5_1de0_cafe);
    let of = rng.index(plan.resources.len());
    let has_domains = plan.domain.is_some() || plan.resources.iter().any(|found| found.domain.is_some());
    let found = &plan.resources[of];
    if seed < FIRST || !rng.chance(333) || has_domains || found.window.is_some() {
        return;
    }
    let units = found.capacity.floor_units() * rng.between(200, 1_200) / 1_000;
    let companion = ResourcePlan::companion(found, of as u16, Amount::from_units(units.max(1)));
    let index = plan.resources.len() as u16;
    plan.resources.push(companion);
    for client in plan.clients.iter_mut().filter(|client| client.way != Way::Legacy) {
        let held = client.holds.iter().find(|hold| usize::from(hold.resource) == of).copied();
        let beside = held.map(|held| Hold { priority: held.priority, ..Hold::new(index, held.wants) });
        client.holds.extend(beside);
    }
    let every = rng.chance(800).then(|| Duration::from_millis(rng.between(2_000, 20_000)));
    plan.faults.gaps[Fault::Beside as usize] = every.filter(|_| !options.without.contains(&Fault::Beside));
}
