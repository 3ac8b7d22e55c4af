//! Domains that clients share: from a stream of chance of their own, so that all else is as it would be without.

use std::time::Duration;

use lessor_algorithms::tiers::Windows;
use lessor_proto::Drift;
use lessor_server::repository::Kind;

use super::super::Options;
use crate::faults::Fault;
use crate::plan::{ClientPlan, Election, SharedDomainPlan, SimulationPlan, Way};
use crate::rng::Rng;

/// The drift that the clocks of the synchronisation allow for, in parts per million.
const DRIFT: u32 = 1_000;

/// In one simulation of eight the streaming clients of a rate share a domain, and tell each other what it does.
pub(super) fn share(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x0d0a_a1a5_5a3e);
    let is_chosen = rng.chance(125);
    let limit = rng.between(6, 60) as u32;
    let window = Duration::from_secs(rng.between(15, 40));
    let active = window * [1, 3][rng.index(2)];
    let hard_limit = rng.chance(300).then(|| limit.div_ceil(2));
    let changes = rng.chance(400).then(|| Duration::from_millis(rng.between(8_000, 30_000)));
    let users = plan.clients.iter().filter(|client| serves(client)).count() as u32;
    let is_rate = plan.resources[0].kind == Kind::Rate;
    // Below a server that forgets, and among those of one name, what was said before counts beside what is said anew.
    let is_elected = matches!(plan.election, Election::Etcd(_)) && plan.memory.etcd.is_none();
    // A rate has domains of one scope.
    let is_leased = plan.resources.iter().any(|resource| resource.domain.is_some());
    let is_possible = users >= 2 && is_rate && is_elected && !is_leased;
    if !is_chosen || !is_possible || options.without.contains(&Fault::Domain) {
        return;
    }
    // Together they ask for four times what the domain may do.
    let pause = window.mul_f64(f64::from(users) / f64::from(4 * limit));
    let limits = match changes {
        Some(_) => vec![limit, limit.div_ceil(2), limit * 2],
        None => vec![limit],
    };
    plan.domain =
        Some(SharedDomainPlan { limits, window, active, windows: Windows::Keep, hard_limit, pause });
    let (most, second) = (Drift::from_parts_per_million(DRIFT), Duration::from_secs(1));
    if plan.drift.stretch(second) > most.stretch(second) {
        plan.drift = most;
    }
    // Where something goes wrong all the time nobody must know anything of the others.
    for gap in plan.faults.gaps.iter_mut().flatten() {
        *gap *= 3;
    }
    plan.faults.gaps[Fault::Domain as usize] = changes;
    // Only rates have domains; and a hit is made when the clock of its client says so.
    plan.faults.gaps[Fault::Kind as usize] = None;
    plan.faults.gaps[Fault::Pause as usize] = None;
}

fn serves(client: &ClientPlan) -> bool {
    client.way == Way::Stream && client.holds.iter().any(|hold| hold.resource == 0)
}
