//! What comes out of a session: actions, changes and counts.

use std::sync::Arc;

use lessor_proto::ResourceId;
use lessor_proto::message::{Ask, Release};

use super::Fault;
use crate::allowance::Allowance;
use crate::holding::Rung;

/// What the one who drives a session is to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Let the program use this much of a resource from here on.
    Change(Change),
    /// Send a request, and hand in the answer or the failure with its number.
    Ask {
        /// The number.
        id: u64,
        /// `host:port`.
        to: Arc<str>,
        /// The request.
        ask: Ask,
    },
    /// Send a release, and hand in the answer or the failure with its number.
    Release {
        /// The number.
        id: u64,
        /// `host:port`.
        to: Arc<str>,
        /// The release.
        release: Release,
    },
}

/// What has become of a resource.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Which one.
    pub resource: ResourceId,
    /// What may be used of it.
    pub allowance: Allowance,
    /// Where that comes from.
    pub rung: Rung,
    /// What went wrong last; nothing if the last answer was good.
    pub fault: Option<Fault>,
}

/// What has happened in a session, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Requests for capacity sent.
    pub asks: u64,
    /// Answers with grants.
    pub answers: u64,
    /// Answers that named another server, or nobody.
    pub redirects: u64,
    /// Requests and releases without a usable answer.
    pub failures: u64,
    /// Releases sent.
    pub releases: u64,
}
