//! Templates in a real etcd: what is pushed, by whom first, what servers do with it, and what becomes of it when etcd fails.
//!
//! Where there is no etcd that is said, and the tests pass, unless `LESSOR_REQUIRE_ETCD=1` is set. Debian has it in `etcd-server`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod admin;
mod console;
#[path = "../admin/desk.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod desk;
mod faults;
mod followers;
#[path = "../access/gate.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod gate;
mod overrides;
mod plans;
mod pushes;
mod races;
mod serving;
mod site;
mod walk;
