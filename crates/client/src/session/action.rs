//! The output of a session: actions, changes and counts.

use std::sync::Arc;

use lessor_proto::message::{Ask, BoundBy, DomainNews, Hello, Release, Up};
use lessor_proto::{ReportId, ResourceId, Time};

use super::Fault;
use crate::allowance::Allowance;
use crate::domain::Policies;
use crate::holding::Rung;

/// An action for the driver of a session.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Tell the domains of its resource.
    News(Box<DomainNews>),
    /// Let the program use this much of a resource from here on.
    Change(Change),
    /// Send a request, and hand in the answer or the failure with its number.
    Ask {
        /// The number.
        id: ReportId,
        /// `host:port`.
        to: Arc<str>,
        /// The request.
        ask: Ask,
    },
    /// Send a release, and hand in the answer or the failure with its number.
    Release {
        /// The number.
        id: ReportId,
        /// `host:port`.
        to: Arc<str>,
        /// The release.
        release: Release,
    },
    /// Open a stream and send its first message, [`Up::Hello`]; hand in what comes down, and its end, with its number.
    Connect {
        /// The number of the stream.
        id: u64,
        /// `host:port`.
        to: Arc<str>,
        /// The hello, which says who we are.
        hello: Hello,
    },
    /// Send on a stream, after what was sent on it before.
    Send {
        /// The number of the stream.
        id: u64,
        /// The message to send.
        up: Up,
    },
    /// Drop a stream: nothing that still comes from it may be handed in. What was sent on it should still leave.
    Disconnect {
        /// The number of the stream.
        id: u64,
    },
}

/// The change of a resource.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Which one.
    pub resource: ResourceId,
    /// The amount that may be used of it.
    pub allowance: Allowance,
    /// Where that comes from.
    pub rung: Rung,
    /// The last fault; nothing if the last answer was good.
    pub fault: Option<Fault>,
    /// Until when the server that granted the lease learns what is out, [`Time::MAX`] where it has not said; absent: it was not
    /// learning.
    pub learns_until: Option<Time>,
    /// The bound of the last lease's amount, if the server that granted it says so.
    pub bound_by: Option<BoundBy>,
    /// The policies of its domains; absent: they may use all of it.
    pub domains: Option<Arc<Policies>>,
}

/// The counts of what has happened in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionCounts {
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
    /// Streams opened.
    pub streams: u64,
    /// Messages sent on streams, the hello of each among them.
    pub sent: u64,
    /// Messages that came down on streams.
    pub received: u64,
    /// Those of them that were of a kind of a later version, and passed over.
    pub unknown: u64,
}
