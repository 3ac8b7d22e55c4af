//! `lessor serve` as its clients, its operator and its monitor see it: over sockets, files and signals.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod bad_input;
mod crash;
mod learning;
mod limits;
mod monitors;
mod raw;
mod reload;
mod town;
