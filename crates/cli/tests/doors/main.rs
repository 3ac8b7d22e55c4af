//! Doors as processes, with a server that leases: what proxies and programs are told, over Envoy's service, over HTTP and as
//! PoolCounter, and how it fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod agent;
mod bad_input;
mod envoy;
mod front;
mod pool;
mod proxies;
mod ten;
mod tls;
mod walks;
