//! The calls of etcd since the start: how long each kind takes, how often it fails, and what came of elections.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::election::call::Call;
use crate::shell::measure::{self, Counts, Label, Timings};

/// The calls since the start.
#[derive(Debug)]
pub(in crate::shell) struct EtcdTraffic {
    pub(in crate::shell) calls: Timings<CallKind>,
    pub(in crate::shell) failures: Counts<CallKind>,
    /// Elections that were won, and leaderships that were given up for others.
    pub(in crate::shell) elections: AtomicU64,
    pub(in crate::shell) resignations: AtomicU64,
}

/// The kind of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum CallKind {
    GrantLease,
    KeepAlive,
    Campaign,
    Put,
    Read,
    ReadRecord,
    Write,
    Revoke,
    /// A watch, which takes as long as it lasts.
    Watch,
}

// === impl EtcdTraffic ===

impl Default for EtcdTraffic {
    fn default() -> EtcdTraffic {
        EtcdTraffic {
            calls: Timings::new(measure::SLOW),
            failures: Counts::default(),
            elections: AtomicU64::new(0),
            resignations: AtomicU64::new(0),
        }
    }
}

impl EtcdTraffic {
    /// A call has been answered after so long, or has failed.
    pub(super) fn note(&self, kind: CallKind, took: Duration, has_failed: bool) {
        self.calls.note(kind, took);
        if has_failed {
            self.failures.add(kind);
        }
    }
}

// === impl CallKind ===

impl CallKind {
    pub(super) fn of(call: &Call) -> CallKind {
        match call {
            Call::GrantLease { .. } => CallKind::GrantLease,
            Call::KeepAlive { .. } => CallKind::KeepAlive,
            Call::Campaign { .. } => CallKind::Campaign,
            Call::Put { .. } => CallKind::Put,
            Call::Read { .. } => CallKind::Read,
            Call::ReadRecord { .. } => CallKind::ReadRecord,
            Call::Write(_) => CallKind::Write,
            Call::Revoke { .. } => CallKind::Revoke,
        }
    }
}

impl Label for CallKind {
    const NAME: &'static str = "call";
    const VALUES: &'static [&'static str] =
        &["grant_lease", "keep_alive", "campaign", "put", "read", "read_record", "write", "revoke", "watch"];

    fn place(self) -> usize {
        self as usize
    }
}
