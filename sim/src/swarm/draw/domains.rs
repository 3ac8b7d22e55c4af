//! Domains with leases of their own: from rng of their own, so that all else is as it would be without.

use std::time::Duration;

use lessor_server::repository::Kind;

use crate::plan::{DomainPlan, Hold, ResourcePlan, SimulationPlan, Way};
use crate::rng::Rng;

/// In one simulation of eight a rate has one or two domains whose scope is strict, and most clients that hold it ask for hits
/// of them. It stays a rate then, whatever becomes of the other resource where kinds are changed.
pub(super) fn lease(seed: u64, plan: &mut SimulationPlan) {
    let mut rng = Rng::new(seed ^ 0x0057_121c_7000);
    let chosen = rng.chance(125);
    let of = rng.index(plan.resources.len());
    if !chosen || plan.resources[of].kind != Kind::Rate {
        return;
    }
    let lender = plan.resources[of].name.clone();
    for name in &["a", "b"][..rng.between(1, 2) as usize] {
        let window = Duration::from_secs([1, 1, 2, 5][rng.index(4)]);
        // Of the smaller ones turns are taken.
        let most = [9, 60][rng.index(2)];
        let domain = DomainPlan { of: of as u16, limit: rng.between(1, most) as u32, window };
        let index = plan.resources.len() as u16;
        let burst = plan.resources[of].burst;
        plan.resources.push(ResourcePlan { burst, ..ResourcePlan::domain(&lender, name, domain) });
        for client in plan.clients.iter_mut().filter(|client| client.way != Way::Legacy) {
            let held = client.holds.iter().find(|hold| usize::from(hold.resource) == of).copied();
            if let Some(held) = held.filter(|_| rng.chance(700)) {
                client.holds.push(Hold { priority: held.priority, ..Hold::new(index, 0.0) });
            }
        }
    }
}
