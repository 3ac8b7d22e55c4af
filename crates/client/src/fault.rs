//! Failures and faults between a session and its servers, as values.

use lessor_proto::message::Order;
use lessor_proto::{Epoch, ReportId};

/// Why a request got no answer, as the body saw it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// The server could not be reached, broke off, or says that it cannot serve: another may.
    #[error("no answer from the server: {0}")]
    Unreachable(String),
    /// No answer within the time given.
    #[error("no answer from the server within {0} ms")]
    Timeout(u64),
    /// The server read the request and refuses what it says; asking elsewhere or again does not help.
    #[error("refused by the server: {0}")]
    Refused(String),
    /// The answer makes no sense.
    #[error("the server sent a {0}")]
    Malformed(String),
    /// The server is below the node that asks it, or the other way round without an end.
    #[error("{0}")]
    Loop(String),
    /// The server does not know streams.
    #[error("the server has no streams")]
    Unimplemented,
}

/// Why a resource was not renewed when it last could have been.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The request failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// No server knows who leads.
    #[error("the server does not lead and does not know who does")]
    NoLeader,
    /// Each server names another as the leader.
    #[error("the redirects lead in a circle")]
    Circle,
    /// The answer does not mention the resource.
    #[error("the server's answer does not mention the resource")]
    Missing,
    /// The grant is not above what was adopted before.
    #[error("grant {found} is not above {adopted}, which was adopted before", found = text(*found), adopted = text(*adopted))]
    Stale {
        /// The order of the grant.
        found: Order,
        /// The highest order adopted.
        adopted: Order,
    },
    /// The grant comes from an earlier epoch than one we have heard of.
    #[error("grant {found} is of an earlier epoch than {fence}", found = text(*found))]
    Deposed {
        /// The order of the grant.
        found: Order,
        /// The highest epoch heard of.
        fence: Epoch,
    },
    /// The grant counts from a report that we did not send, or have forgotten.
    #[error("the grant counts from report {0}, which is not known")]
    UnknownBasis(ReportId),
    /// The grant had ended when it arrived.
    #[error("the grant had ended when it arrived")]
    Ended,
}

fn text(order: Order) -> String {
    format!("({}, {})", order.epoch, order.seq)
}
