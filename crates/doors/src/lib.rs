//! Doors: limits that proxies ask for, Envoy over gRPC and others over HTTP, and locks that programs ask for as PoolCounter does,
//! answered from leases in the same process.
//!
//! All doors turn what they hear into the same: *claims*, so many hits of a key of a limit. Rules say which, and only reading and
//! answering differ. A call is granted all of its claims or nothing of any.

pub mod answer;
pub mod attribute;
pub mod check;
pub mod claim;
pub mod grant;
pub mod malformed;
pub mod name;
pub mod pattern;
pub mod pool;
mod reader;
pub mod rls;
pub mod rules;
#[cfg(feature = "shell")]
pub mod shell;
pub mod shown;
pub mod web;
