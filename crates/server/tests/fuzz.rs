//! The bodies of the fuzz targets of `fuzz/`, each with its seeds, and with these spoilt at random: nothing panics, what is refused
//! has a reason, what is understood is understood the same when it is said again.
//!
//! `LESSOR_FUZZ=1000000` spoils as many for each target, and `LESSOR_TEST_SEED` says which; `tools/fuzz` looks for new ways
//! through the code, which this does not.
#![cfg(feature = "shell")]
#![allow(unreachable_pub, reason = "the files are those of a library")]

#[path = "../../../fuzz/src/bodies.rs"]
mod bodies;
#[path = "../../../fuzz/src/seeds.rs"]
mod seeds;
mod spoiler;

use std::collections::BTreeMap;
use std::path::Path;

use rand::RngExt;

use self::bodies::{Outcome, TARGETS};
use self::spoiler::{Spoiler, number};

#[test]
fn nothing_that_reads_bytes_of_others_panics_or_refuses_without_a_reason() {
    let (seed, count) = (number("LESSOR_TEST_SEED", 1), number("LESSOR_FUZZ", 0));
    let all = seeds::of_repository(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    assert!(all.keys().copied().eq({
        let mut names = TARGETS.map(|(name, _)| name);
        names.sort_unstable();
        names
    }));
    // Each kind of value has its own form.
    for seed in &all["value"] {
        assert_eq!((TARGETS[8].1)(seed), Outcome::Understood, "{}", String::from_utf8_lossy(seed));
    }
    // So has each kind of file.
    let (_, read_state) = TARGETS.into_iter().find(|(name, _)| *name == "state").unwrap();
    for seed in &all["state"] {
        assert_eq!(read_state(seed), Outcome::Understood, "{}", String::from_utf8_lossy(seed));
    }
    for (name, body) in TARGETS {
        let seeds = &all[name];
        let mut outcomes: BTreeMap<Outcome, u64> = BTreeMap::new();
        for seed in seeds {
            *outcomes.entry(body(seed)).or_default() += 1;
        }
        assert!(outcomes.get(&Outcome::Understood) > Some(&0), "{name}: no seed is understood");
        // Texts are long, and a path is a connection.
        let usual = match name {
            "path" => 500,
            "templates" | "access" => 1_000,
            _ => 10_000,
        };
        let mut spoiler = Spoiler::new(seed);
        for _ in 0..if count > 0 { count } else { usual } {
            let which = spoiler.rng.random_range(0..seeds.len());
            *outcomes.entry(body(&spoiler.spoil(which, seeds, 1..=4))).or_default() += 1;
        }
        println!("{name}: {} seeds, {outcomes:?}", seeds.len());
        assert!(outcomes.get(&Outcome::Refused) > Some(&0), "{name}: nothing is refused");
    }
}
