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

use std::collections::BTreeMap;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use self::bodies::{Outcome, TARGETS};

/// The bytes at which numbers, lengths and texts turn.
const TURNS: [u8; 14] = [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff, b'\n', b' ', b':', b'-', b'*', b'%'];

/// Spoils one of the seeds in up to four places, with parts of others.
fn spoil(rng: &mut Pcg64Mcg, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[rng.random_range(0..seeds.len())].clone();
    for _ in 0..rng.random_range(1..=4) {
        let at = rng.random_range(0..=bytes.len());
        let end = rng.random_range(at..=bytes.len().min(at + 24));
        match rng.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = TURNS[rng.random_range(0..TURNS.len())],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].repeat(rng.random_range(1..4));
                bytes.splice(at..at, part);
            }
            4 => {
                let other = &seeds[rng.random_range(0..seeds.len())];
                let from = rng.random_range(0..=other.len());
                let to = rng.random_range(from..=other.len().min(from + 64));
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => bytes.insert(at, TURNS[rng.random_range(0..TURNS.len())]),
        }
    }
    bytes
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}

#[test]
fn nothing_that_reads_bytes_of_others_panics_or_refuses_without_a_reason() {
    let (seed, count) = (number("LESSOR_TEST_SEED", 1), number("LESSOR_FUZZ", 0));
    println!("LESSOR_TEST_SEED={seed}");
    let all = seeds::of_repository(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    assert!(all.keys().copied().eq({
        let mut names = TARGETS.map(|(name, _)| name);
        names.sort_unstable();
        names
    }));
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
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        for _ in 0..if count > 0 { count } else { usual } {
            *outcomes.entry(body(&spoil(&mut rng, seeds))).or_default() += 1;
        }
        println!("{name}: {} seeds, {outcomes:?}", seeds.len());
        assert!(outcomes.get(&Outcome::Refused) > Some(&0), "{name}: nothing is refused");
    }
}
