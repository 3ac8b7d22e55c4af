//! Burst tiers: random histories beside a plain model, and stories to check by hand.

mod bounds;
mod dice;
mod model;
mod random;
mod shared;
mod stories;
