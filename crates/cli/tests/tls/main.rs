//! TLS as an operator sets it up: the commands of `docs/security.md`, the binary, and clients of other makes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod faults;
mod peers;

use crate::house::House;

fn localhost(house: &House) -> String {
    format!("localhost:{}", house.address().port())
}
