//! Marks of the connections that unary calls come on, by which the mind knows them.
//!
//! Two connections that are open at once differ by the address and port at their other end, which nobody can take who does not
//! have them. Hashed with a secret they are numbers that a stranger cannot foresee.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::num::NonZeroU32;

use crate::node::ConnectionMark;
use crate::shell::random;

/// The secret by which connections are numbered.
#[derive(Clone, Debug)]
pub(super) struct Callers(RandomState);

// === impl Callers ===

impl Default for Callers {
    fn default() -> Callers {
        Callers(random::hasher())
    }
}

impl Callers {
    /// The mark of the connection from that address.
    pub(super) fn mark(&self, from: SocketAddr) -> ConnectionMark {
        let hash = self.0.hash_one(from);
        let number = u32::try_from(hash >> u32::BITS).ok().and_then(NonZeroU32::new);
        ConnectionMark::new(number.unwrap_or(NonZeroU32::MIN))
    }
}
