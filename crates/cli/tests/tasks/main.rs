//! Tasks of a node under a real etcd: how they prove who they are, and what they show of what their predecessors left.
//!
//! Where etcd, openssl or Prometheus is not installed that is said, and the test passes, unless `LESSOR_REQUIRE_ETCD=1` is set.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod access;
mod compose;
mod editions;
mod figures;
mod monitoring;
mod papers;
