//! Burst tiers: random histories beside a plain model, and stories to check by hand.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod dice;
mod edges;
mod model;
mod paper;
mod random;
mod shared;
mod stories;
