//! Elections through a real etcd, which each test starts for itself on free ports of the loopback.
//!
//! Where there is no etcd the tests say so and pass, unless `LESSOR_REQUIRE_ETCD=1` is set. Debian has it in `etcd-server`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod broken;
mod faults;
mod proxy;
mod server;
mod succession;
mod task;
