//! Layers before services, against a server of Lessor in this process, on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod alls;
mod bytes;
mod heeds;
mod house;
mod in_flight;
mod limits;
mod memory;
mod served;
mod statuses;
mod waits;
