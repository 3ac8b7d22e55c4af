//! A lane of calls, one after the other: what has failed is followed by a wait, which grows.

use std::time::Duration;

use lessor_proto::Time;

use crate::election::pace::Pace;
use crate::revision::{Digest, RevisionHead, TaskReport};

/// A lane.
#[derive(Clone, Default, Debug)]
pub(super) struct Lane {
    pending: Option<PendingJob>,
    not_before: Time,
    pace: Pace,
    /// Whether it was said that calls fail.
    is_failing: bool,
}

/// A call that has not been answered.
#[derive(Clone, Debug)]
pub(super) struct PendingJob {
    id: u64,
    /// Before it left.
    pub(super) sent: Time,
    until: Time,
    pub(super) job: Job,
}

/// The matter of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Job {
    Head,
    Drafts,
    Overrides,
    Peers,
    Revision(RevisionHead),
    Blob(Digest),
    Grant,
    KeepAlive,
    Report(Box<TaskReport>),
}

/// The longest wait after a failure.
const LONGEST: Duration = Duration::from_secs(10);

// === impl Lane ===

impl Lane {
    pub(super) fn is_free(&self, now: Time) -> bool {
        self.pending.is_none() && self.not_before <= now
    }

    pub(super) fn begin(&mut self, id: u64, sent: Time, until: Time, job: Job) {
        self.pending = Some(PendingJob { id, sent, until, job });
    }

    /// Takes the call with that number, if it is the one under way, and in time: a process that was stopped does not go by
    /// what it was told before.
    pub(super) fn take(&mut self, now: Time, id: u64) -> Option<PendingJob> {
        self.pending.take_if(|pending| pending.id == id && now < pending.until)
    }

    /// Gives up a call that was not answered in time.
    pub(super) fn expire(&mut self, now: Time) -> Option<Job> {
        self.pending.take_if(|pending| pending.until <= now).map(|pending| pending.job)
    }

    /// Whether calls had been said to fail.
    pub(super) fn succeeded(&mut self) -> bool {
        self.pace.succeeded();
        std::mem::take(&mut self.is_failing)
    }

    pub(super) fn failed(&mut self, now: Time, nonce: u64) {
        self.not_before = now + self.pace.failed(nonce, LONGEST);
    }

    /// Whether that is news.
    pub(super) fn note_failure(&mut self) -> bool {
        !std::mem::replace(&mut self.is_failing, true)
    }

    /// When something is to be done here, if the next call is due at `due`.
    pub(super) fn next_deadline(&self, due: Time) -> Time {
        self.pending.as_ref().map_or(due.max(self.not_before), |pending| pending.until)
    }
}
