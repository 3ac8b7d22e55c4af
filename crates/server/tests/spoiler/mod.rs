//! A spoiler of bytes: it changes, cuts out, doubles and mixes them, by a seed.

use std::ops::RangeInclusive;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The bytes at which numbers, lengths and texts turn.
const TURNS: [u8; 14] = [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff, b'\n', b' ', b':', b'-', b'*', b'%'];
/// The longest part that is cut out or doubled, and the longest of another that is put in.
const LONGEST: [usize; 2] = [24, 64];

/// The randomness by which bytes are spoilt.
pub(crate) struct Spoiler {
    pub(crate) rng: Pcg64Mcg,
}

// === impl Spoiler ===

impl Spoiler {
    pub(crate) fn new(seed: u64) -> Spoiler {
        Spoiler { rng: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// Spoils one of `all` in so many places, with parts of others.
    pub(crate) fn spoil(&mut self, which: usize, all: &[Vec<u8>], places: RangeInclusive<u32>) -> Vec<u8> {
        let (rng, mut bytes) = (&mut self.rng, all[which].clone());
        for _ in 0..rng.random_range(places) {
            let at = rng.random_range(0..=bytes.len());
            let end = rng.random_range(at..=bytes.len().min(at + LONGEST[0]));
            match rng.random_range(0..6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
                1 if at < bytes.len() => bytes[at] = TURNS[rng.random_range(0..TURNS.len())],
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let part = bytes[at..end].repeat(rng.random_range(1..4));
                    bytes.splice(at..at, part);
                }
                4 => {
                    let other = &all[rng.random_range(0..all.len())];
                    let from = rng.random_range(0..=other.len());
                    let to = rng.random_range(from..=other.len().min(from + LONGEST[1]));
                    bytes.splice(at..end, other[from..to].iter().copied());
                }
                _ => bytes.insert(at, TURNS[rng.random_range(0..TURNS.len())]),
            }
        }
        bytes
    }
}

/// The number in a variable of the environment, or the usual one, which is told.
pub(crate) fn number(variable: &str, usual: u64) -> u64 {
    let number = std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"));
    println!("{variable}={number}");
    number
}
