//! Clients of a tree that share a domain, in simulations in which everything goes wrong: nobody grants what was used up by all
//! that must be known, nobody refuses what nobody used, and all hear of each other when the faults are over.

use lessor_sim::swarm::{Options, plan, run_one};

/// The simulations with a domain that are run; fewer where nothing is optimised.
const RUN: usize = if cfg!(debug_assertions) { 3 } else { 40 };

#[test]
fn clients_that_share_a_domain_hear_of_each_other_whatever_goes_wrong() {
    let options = Options::default();
    let (mut hits, mut known, mut refused, mut learnt, mut changed) = (0, 0, 0, 0, 0);
    for seed in (0..).filter(|&seed| plan(seed, &options).domain.is_some()).take(RUN) {
        let run = run_one(seed, &options);
        assert!(run.violation.is_none(), "seed {seed}: {:?}", run.violation);
        let counts = run.counts;
        (hits, known) = (hits + counts.domain_hits, known + counts.domain_hits_known);
        (refused, learnt) = (refused + counts.domain_refusals, learnt + counts.domain_hits_learnt);
        let changes = run.faults.counts().filter(|(name, _)| *name == "limit of a domain changed");
        changed += changes.map(|(_, count)| count).sum::<u64>();
    }
    println!(
        "{hits} hits, {known} of them beside half of what may be made that was to be known, {refused} refused; \
         {learnt} of others to be known in the end"
    );
    let all = [hits, known, refused, learnt, changed];
    assert!(all.iter().all(|&count| count > 0 || cfg!(debug_assertions)), "{all:?}");
}
