//! The part of the swarm that runs with all other tests: towns in which everything goes wrong, from seed 0 on, and
//! everybody must have its share when the faults are over.

use lessor_sim::swarm::{Options, run};

/// No further town is begun after so many events; fewer where nothing is optimised.
const EVENTS: u64 = if cfg!(debug_assertions) { 300_000 } else { 6_000_000 };

#[test]
fn no_town_of_the_swarm_breaks_a_rule() {
    let report = run(0..u64::MAX, &Options { budget: EVENTS, ..Options::default() });
    println!("{report}");
    assert!(report.violations.is_empty(), "{report}");
    assert!(report.events >= EVENTS, "{report}");
    // The few towns of a build without optimisation need not have had everything.
    let all = report.faults.counts().all(|(_, count)| count > 0);
    assert!(all || cfg!(debug_assertions), "something never went wrong:\n{report}");
}
