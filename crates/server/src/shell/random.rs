//! Numbers that nobody can foresee: the body draws them, and the mind is told.

use std::hash::{BuildHasher, RandomState};

/// The keys of a hash that nobody knows; the standard library draws them from the system.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the place where the body draws")]
pub fn hasher() -> RandomState {
    RandomState::new()
}

/// A number, and another one each time.
#[must_use]
pub fn number() -> u64 {
    hasher().hash_one(())
}

/// A number from 0 to 1, and another one each time.
pub(super) fn fraction() -> f64 {
    number() as f64 / u64::MAX as f64
}
