//! Templates in a real etcd: what is pushed, by whom first, what servers do with it, and what becomes of it when etcd fails.
//!
//! Where there is no etcd that is said, and the tests pass, unless `LESSOR_REQUIRE_ETCD=1` is set. Debian has it in `etcd-server`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod console;
mod faults;
mod overrides;
mod plans;
mod pushes;
mod serving;
mod site;
mod walk;
