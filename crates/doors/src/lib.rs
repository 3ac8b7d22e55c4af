//! Doors: limits that proxies ask for, Envoy over gRPC and others over HTTP, answered from leases in the same process.
//!
//! All doors turn what they hear into the same: *claims*, so many hits of a key of a limit. Rules say which, and only reading and
//! answering differ. A call is granted all of its claims or nothing of any.

pub mod attribute;
pub mod claim;
pub mod name;
pub mod pattern;
pub mod rules;
