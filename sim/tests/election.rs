//! Elections under faults: three tasks of one node with clocks that drift, an etcd, and a network that delays and loses.
//!
//! What must hold is judged by an omniscient observer after every event: never two authorities at once, writes of the one
//! who leads only, and in the record never less than what a leader believes to be there; and after the last fault
//! somebody leads again.
//!
//! With the feature `mutations` rules are taken out one at a time, to see that this is noticed.

mod election {
    pub(crate) mod world;
}

use lessor_server::election::mutation::ElectionRules;

use election::world::{Counts, World};

#[test]
fn no_two_act_at_once_and_somebody_leads_after_the_faults() {
    let mut sum = Counts::default();
    for seed in 0..seeds() {
        let counts = World::new(seed, ElectionRules::default())
            .run()
            .unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        sum.add(&counts);
    }
    println!("{sum:?}");
    // Nothing that goes wrong here is rare.
    assert!(
        sum.elected > 5_000 && sum.lapsed > 3_000 && sum.resumed > 1_500 && sum.written > 10_000,
        "{sum:?}"
    );
    assert!(sum.deposed > 2_000 && sum.late > 10_000 && sum.forced > 1_500 && sum.closed > 300, "{sum:?}");
}

/// 2,000, or as many as `SEEDS` says.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(2_000)
}

#[cfg(feature = "mutations")]
mod mutations {
    use lessor_server::election::mutation::ElectionRule;

    use super::*;

    /// Each is noticed within so many seeds; the number behind it is the first at which it was. The seeds change with every
    /// change of the world.
    const TAKEN: [(ElectionRule, u64); 5] = [
        (ElectionRule::AuthorityBelowTtl, 100), // 3
        (ElectionRule::FromQuestion, 5_000),    // 508
        (ElectionRule::ReadBack, 100),          // 5
        (ElectionRule::Guard, 100),             // 2
        (ElectionRule::Order, 1_000),           // 77
    ];

    #[test]
    fn no_rule_of_the_election_can_be_left_out() {
        for (mutation, seeds) in TAKEN {
            let found = (0..seeds).find_map(|seed| {
                World::new(seed, ElectionRules::without(mutation)).run().err().map(|found| (seed, found))
            });
            let (seed, found) = found.unwrap_or_else(|| panic!("{mutation:?}: nothing in {seeds} seeds"));
            println!("{mutation:?}: seed {seed}, {found}");
        }
    }
}
