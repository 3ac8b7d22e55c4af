//! Attacks: somebody does to a server all that the protocol lets him, beside somebody honest who renews every 50 ms.
//!
//! In each of them the honest one keeps all that it has and is never kept waiting for more than a second, probes and newcomers are
//! answered, the memory of the server is bounded, and the server ends in order afterwards. A second server that nobody attacks
//! says what the machine itself was late by at the same moments.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

mod connections;
mod frames;
mod handshakes;
#[path = "../house/mod.rs"]
mod house;
mod messages;
mod nodes;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../serve/raw.rs"]
mod raw;
mod siege;
mod streams;
mod thefts;
mod wire;
