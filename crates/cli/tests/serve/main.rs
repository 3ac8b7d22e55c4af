//! `lessor serve` as its clients, its operator and its monitor see it: over sockets, files and signals.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

#[path = "../house/mod.rs"]
mod house;

mod bad_input;
mod beside;
mod bursts;
mod crash;
mod domains;
mod explain;
mod figures;
mod floors;
mod greedy;
mod idle;
mod kinds;
mod learning;
mod limits;
mod looks;
mod memory;
mod monitors;
mod names;
mod plan;
mod pollers;
mod raw;
mod reload;
mod restored;
mod safe;
mod strangers;
mod strict;
mod top;
mod town;
mod tree;
mod units;
