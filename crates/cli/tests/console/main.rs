//! The console of real servers: `/v1` as programs ask it, and the page as a browser shows it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api;
mod browser;
mod events;
#[path = "../access/gate.rs"]
#[allow(dead_code, reason = "its other tests use the rest")]
mod gate;
#[path = "../house/mod.rs"]
mod house;
mod rights;
#[path = "../templates/site.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod site;
