//! Domains that clients share, with windows that are reset: in the simulations of the swarm that have one.
#![expect(clippy::panic, reason = "a test that cannot go on has failed")]

use lessor_algorithms::tiers::Windows;
use lessor_sim::simulation::Simulation;
use lessor_sim::swarm::{Options, live, plan};

/// The simulations of the first seeds that have a shared domain.
const SIMULATIONS: usize = 12;

/// Nobody grants what all must know to be used up since the tier was entered, and nobody refuses what was used before that.
#[test]
fn clients_that_reset_their_windows_agree_on_what_is_used_up() {
    let options = Options::default();
    let plans = (0..2_000).map(|seed| (seed, plan(seed, &options)));
    let (mut found, mut hits, mut known, mut refusals) = (0, 0, 0, 0);
    for (seed, mut plan) in plans.filter(|(_, plan)| plan.domain.is_some()).take(SIMULATIONS) {
        if let Some(domain) = &mut plan.domain {
            domain.windows = Windows::Reset;
        }
        let mut sim = Simulation::new(seed, &plan);
        if let Err(violation) = live(&mut sim, &plan, options.judged) {
            panic!("seed {seed}: {violation}");
        }
        let counts = sim.counts();
        found += 1;
        hits += counts.domain_hits;
        known += counts.domain_hits_known;
        refusals += counts.domain_refusals;
    }
    assert_eq!(found, SIMULATIONS);
    assert!(
        hits > 1_000 && known > 15 && refusals > 500,
        "{hits} hits, {known} beside much, {refusals} refusals"
    );
}
