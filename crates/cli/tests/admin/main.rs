//! The admin port, as operators find it: over sockets, with the real binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

#[path = "../house/mod.rs"]
mod house;

#[allow(dead_code, reason = "each test program uses its part")]
#[path = "../access/gate.rs"]
mod gate;

mod acts;
mod audit;
mod commands;
mod desk;
mod overrides;
mod ports;
mod recalls;
mod resign;
mod roles;
mod socket;
