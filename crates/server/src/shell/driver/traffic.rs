//! The traffic of a server since its start: who came, who was turned away and why, and how long things took.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use lessor_proto::message::{Refusal, RefusedReport};
use tonic::Code;
use tracing::warn;

use super::{Driver, StreamKey, Unanswered};
use crate::measured::{Measured, RefusalKind, WaitPath};
use crate::shell::address_budget::Throttled;
use crate::shell::admin_calls::AdminCalls;
use crate::shell::connections::ConnectionTable;
use crate::shell::measure::{self, Counts, Label, Timing, Timings};
use crate::shell::port_name::Port;
use crate::shell::tls::handshake::Handshakes;

/// The traffic since the start.
#[derive(Debug)]
pub(in crate::shell) struct Traffic {
    /// Messages sent on streams, those that came up them, and reports that were refused.
    pub(in crate::shell) sent: AtomicU64,
    pub(in crate::shell) received: AtomicU64,
    pub(in crate::shell) refused: AtomicU64,
    /// Connections that were turned away, and those that said nothing.
    pub(in crate::shell) turned_away: AtomicU64,
    pub(in crate::shell) silent: AtomicU64,
    /// Work that had to wait, as there was too much of it.
    pub(in crate::shell) throttled: Arc<Counts<Throttled>>,
    /// Handshakes of TLS, by how they ended.
    pub(in crate::shell) handshakes: Handshakes,
    /// Connections that are open, and whether others wait for a place.
    pub(in crate::shell) connections: Counts<Port>,
    /// The same one by one.
    pub(in crate::shell) table: Arc<ConnectionTable>,
    pub(in crate::shell) waiting: Counts<Port>,
    /// Streams that were opened, those that have ended, and those that do not read what is there for them.
    pub(in crate::shell) streams_opened: AtomicU64,
    pub(in crate::shell) streams_ended: Counts<StreamEnd>,
    pub(in crate::shell) streams_stalled: AtomicU64,
    /// Messages on streams that are of kinds of a later version, and were passed over.
    pub(in crate::shell) unknown: Counts<Side>,
    /// Calls of the admin port.
    pub(in crate::shell) admin_calls: AdminCalls,
    /// Requests, reports and streams that were refused.
    pub(in crate::shell) refusals: Counts<Reason>,
    /// The times that requests took.
    pub(in crate::shell) requests: Timings<Rpc>,
    /// The times that holders were short of their shares, and that recalls took.
    pub(in crate::shell) waits: Timings<WaitPath>,
    pub(in crate::shell) recalls: Timing,
    /// The node above: whether it was asked and did not serve, how often, and the times that its answers took.
    pub(in crate::shell) parent_fails: AtomicBool,
    pub(in crate::shell) parent_failures: AtomicU64,
    pub(in crate::shell) parent_answers: Timing,
}

/// The side of a node that something comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum Side {
    /// Its holders.
    Below,
    /// The node above.
    Above,
}

/// A request that is answered once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum Rpc {
    Discovery,
    GetCapacity,
    GetServerCapacity,
    ReleaseCapacity,
}

/// The reason why a stream has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum StreamEnd {
    /// The holder has ended it in order.
    Holder,
    /// Its connection is gone.
    Broken,
    /// The holder said something that cannot be.
    Fault,
    /// The rules of access have changed, or its token has ended.
    Denied,
    /// Another task leads.
    NotLeading,
    /// This end has closed it: in a drain, or as the holder has opened another.
    Closed,
    /// Its holder has read nothing for too long.
    Unread,
}

/// The reason why something was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum Reason {
    /// A field holds what it must not.
    Invalid,
    /// A limit is reached.
    Exhausted,
    /// The rules of access do not allow it.
    Denied,
    /// Nodes form a loop.
    Loop,
    /// No template covers the resource.
    Unknown,
    /// The domain has no lease of its own.
    NoDomain,
    /// The node has failed one of its own checks.
    Broken,
    /// The server is ending.
    Ending,
    /// Another task leads.
    NotLeading,
    /// It was not done in time.
    Late,
}

// === impl Traffic ===

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic {
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            silent: AtomicU64::new(0),
            throttled: Arc::default(),
            handshakes: Handshakes::default(),
            connections: Counts::default(),
            table: Arc::default(),
            waiting: Counts::default(),
            streams_opened: AtomicU64::new(0),
            streams_ended: Counts::default(),
            streams_stalled: AtomicU64::new(0),
            unknown: Counts::default(),
            admin_calls: AdminCalls::default(),
            refusals: Counts::default(),
            requests: Timings::new(measure::PROMPT),
            waits: Timings::new(measure::SLOW),
            recalls: Timing::new(measure::SLOW),
            parent_fails: AtomicBool::new(false),
            parent_failures: AtomicU64::new(0),
            parent_answers: Timing::new(measure::SLOW),
        }
    }
}

impl Traffic {
    /// The node has measured these.
    pub(super) fn note(&self, all: Vec<Measured>) {
        for one in all {
            match one {
                Measured::Wait(path, took) => self.waits.note(path, took),
                Measured::Recall(took) => self.recalls.note(took),
                Measured::Refusal(kind) => self.refusals.add(kind.into()),
            }
        }
    }
}

// === impl Driver ===

impl Driver {
    /// The traffic since the start.
    pub(in crate::shell) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// A request of that kind took so long.
    pub(in crate::shell) fn note_request(&self, rpc: Rpc, took: Duration) {
        self.traffic.requests.note(rpc, took);
    }

    /// A message of a kind of a later version came up a stream, and is passed over. The first is said aloud.
    pub(in crate::shell) fn note_unknown(&self, key: StreamKey) {
        if self.traffic.unknown.of(Side::Below) == 0 {
            warn!(stream = %key, "a message of an unknown kind is passed over: its holder is of a later version");
        }
        self.traffic.unknown.add(Side::Below);
    }

    /// Somebody is refused for that.
    pub(in crate::shell) fn note_refusal(&self, refusal: &Refusal) {
        self.traffic.refusals.add(RefusalKind::of(refusal).into());
    }

    /// These reports of a request are refused, and the others are answered.
    pub(in crate::shell) fn note_refused(&self, reports: &[RefusedReport]) {
        for report in reports {
            self.traffic.refusals.add(match Code::from_i32(report.code) {
                Code::ResourceExhausted => Reason::Exhausted,
                Code::PermissionDenied | Code::Unauthenticated => Reason::Denied,
                Code::NotFound => Reason::Unknown,
                Code::FailedPrecondition => Reason::Loop,
                _ => Reason::Invalid,
            });
        }
    }

    /// Somebody is not answered for that. A refusal is noted where it is said.
    pub(in crate::shell) fn note_unanswered(&self, fault: &Unanswered) {
        self.traffic.refusals.add(match fault {
            Unanswered::Refused(refusal) => return self.note_refusal(refusal),
            Unanswered::Broken => Reason::Broken,
            Unanswered::Ending => Reason::Ending,
            Unanswered::Lapsed | Unanswered::NotLeading(_) => Reason::NotLeading,
            Unanswered::Late => Reason::Late,
        });
    }
}

// === impl Reason ===

impl From<RefusalKind> for Reason {
    fn from(kind: RefusalKind) -> Reason {
        match kind {
            RefusalKind::Invalid => Reason::Invalid,
            RefusalKind::Exhausted => Reason::Exhausted,
            RefusalKind::Denied => Reason::Denied,
            RefusalKind::Loop => Reason::Loop,
            RefusalKind::Unknown => Reason::Unknown,
            RefusalKind::NoDomain => Reason::NoDomain,
        }
    }
}

impl Label for Reason {
    const NAME: &'static str = "reason";
    const VALUES: &'static [&'static str] = &[
        "invalid",
        "exhausted",
        "denied",
        "loop",
        "unknown_resource",
        "no_domain",
        "broken",
        "ending",
        "not_leading",
        "late",
    ];

    fn place(self) -> usize {
        self as usize
    }
}

// === impl Side ===

impl Label for Side {
    const NAME: &'static str = "from";
    const VALUES: &'static [&'static str] = &["below", "above"];

    fn place(self) -> usize {
        self as usize
    }
}

// === impl Rpc ===

impl Label for Rpc {
    const NAME: &'static str = "rpc";
    const VALUES: &'static [&'static str] =
        &["discovery", "get_capacity", "get_server_capacity", "release_capacity"];

    fn place(self) -> usize {
        self as usize
    }
}

// === impl StreamEnd ===

impl Label for StreamEnd {
    const NAME: &'static str = "why";
    const VALUES: &'static [&'static str] =
        &["holder", "broken", "fault", "denied", "not_leading", "closed", "unread"];

    fn place(self) -> usize {
        self as usize
    }
}

// === impl WaitPath ===

impl Label for WaitPath {
    const NAME: &'static str = "path";
    const VALUES: &'static [&'static str] = &["free", "recall", "above"];

    fn place(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests;
