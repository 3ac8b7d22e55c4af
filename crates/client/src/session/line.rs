//! The state of the stream: none, opened, or open; since when, and how long to wait for what.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{DomainNews, DomainReport, ViewPart};
use lessor_proto::{Epoch, Features, ReportId, ResourceId, Time};

use super::Transport;
use super::jobs::SessionJobs;
use crate::limiter::SentUnits;

/// No heartbeats faster than that, whatever a server wants.
pub(super) const SHORTEST_HEARTBEAT: Duration = Duration::from_millis(10);

/// The way to speak to servers, and the stream if there is one.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// The way in use.
    pub(super) transport: Transport,
    /// The stream.
    pub(super) line: LineState,
    /// A stream that the driver is still to be told to drop.
    pub(super) dropped: Option<u64>,
    /// The queues of what the stream carries beside leases: absent where that was nothing, as of nearly all sessions.
    pub(super) side: Option<Box<SideQueues>>,
    /// The jobs, which outlast a stream: absent where none were spoken of.
    pub(super) jobs: Option<Box<SessionJobs>>,
    /// The server that has no streams, and until when that is believed.
    streamless: Option<(Arc<str>, Time)>,
    /// The heartbeat interval that the grantor asked for in the last welcome.
    pub(super) heartbeat: Option<Duration>,
}

/// The queues of what a stream carries beside leases.
#[derive(Clone, Default, Debug)]
pub(super) struct SideQueues {
    /// The news of domains elsewhere, which the program was not told yet.
    pub(super) news: VecDeque<Box<DomainNews>>,
    /// The reports of domains here, to be said on the stream.
    pub(super) unsaid: VecDeque<Box<DomainReport>>,
    /// Resources of which more units, or fewer, are to be asked for on the stream.
    pub(super) wished: BTreeSet<ResourceId>,
    /// Units that were sent, which the program was not told of yet.
    pub(super) units: VecDeque<(ResourceId, SentUnits)>,
    /// The parts of views, to be said on the stream when nothing else is.
    pub(super) views: VecDeque<ViewPart>,
}

/// The stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineState {
    /// None: the route says when and where to open one.
    Down,
    /// Opened, and not welcomed yet.
    Opening {
        /// Its number.
        id: u64,
        /// When it was opened.
        since: Time,
        /// The time to wait for the welcome.
        timeout: Duration,
    },
    /// Welcomed.
    Open(OpenStream),
}

/// A stream on which we are welcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenStream {
    pub(super) id: u64,
    /// The epoch of the one who welcomed us.
    pub(super) epoch: Epoch,
    /// The kinds of message that it knows.
    pub(super) features: Features,
    /// The heartbeat interval that the grantor asked for.
    pub(super) heartbeat: Duration,
    /// The interval at which we speak: that one, or a shorter one if a lease would end.
    pub(super) pace: Duration,
    /// When we were welcomed.
    pub(super) since: Time,
    /// When something came last.
    pub(super) heard: Time,
    pub(super) next_beat: Time,
    /// The report that was the last heartbeat; 0 before the first.
    pub(super) last_beat: ReportId,
    /// Single grants that have come.
    pub(super) grants: u64,
    /// When the releases sent must have been confirmed.
    pub(super) released_by: Time,
}

// === impl Streams ===

impl Streams {
    pub(super) fn new(transport: Transport) -> Streams {
        Streams {
            transport,
            line: LineState::Down,
            dropped: None,
            side: None,
            jobs: None,
            streamless: None,
            heartbeat: None,
        }
    }

    /// The queues of what the stream carries beside leases, to put something into one.
    pub(super) fn side_mut(&mut self) -> &mut SideQueues {
        self.side.get_or_insert_default()
    }

    /// Whether there is news of domains that the program was not told yet.
    pub(super) fn has_news(&self) -> bool {
        self.side.as_ref().is_some_and(|side| !side.news.is_empty())
    }

    /// Whether something beside leases is to be said on the stream.
    pub(super) fn has_unsaid(&self) -> bool {
        let is_any =
            |side: &SideQueues| !side.unsaid.is_empty() || !side.wished.is_empty() || !side.views.is_empty();
        self.side.as_deref().is_some_and(is_any) || self.has_unsaid_jobs()
    }

    pub(super) fn is_down(&self) -> bool {
        matches!(self.line, LineState::Down) && self.dropped.is_none()
    }

    /// The server has no streams: it is polled until then, or until another takes its place.
    pub(super) fn poll(&mut self, server: Arc<str>, until: Time) {
        self.transport = Transport::Poll;
        self.streamless = Some((server, until));
    }

    /// Goes back to streams if the server is another, or has been polled for long enough.
    pub(super) fn try_again(&mut self, now: Time, target: &Arc<str>) {
        if self.streamless.take_if(|(server, until)| *until <= now || server != target).is_some() {
            self.transport = Transport::Stream;
        }
    }

    /// When a server without streams is believed to have none no longer.
    pub(super) fn tried_again_at(&self) -> Time {
        self.streamless.as_ref().map_or(Time::MAX, |(_, until)| *until)
    }

    /// Makes every moment earlier by time that passed unseen. What was last heard before the zero of the clock is not waited
    /// for any longer.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        self.lose_time_of_jobs(lost);
        match &mut self.line {
            LineState::Down => {}
            LineState::Opening { since, timeout, .. } => match since.checked_earlier(lost) {
                Some(earlier) => *since = earlier,
                None => (*since, *timeout) = (Time::ZERO, Duration::ZERO),
            },
            LineState::Open(open) => open.lose_time(lost),
        }
        if let Some((_, until)) = &mut self.streamless {
            *until = until.earlier(lost);
        }
    }
}

// === impl LineState ===

impl LineState {
    pub(super) fn id(&self) -> Option<u64> {
        match self {
            LineState::Down => None,
            LineState::Opening { id, .. } | LineState::Open(OpenStream { id, .. }) => Some(*id),
        }
    }

    /// The kinds of message that the other end knows, as far as it has said so.
    pub(super) fn features(&self) -> Features {
        match self {
            LineState::Down | LineState::Opening { .. } => Features::BASE,
            LineState::Open(open) => open.features,
        }
    }
}

// === impl OpenStream ===

impl OpenStream {
    /// Sets the interval at which what is held on the stream is to be renewed: templates change while streams last,
    /// and a lease may be cut short by that of its grantor. It is not shorter than `spacing` for that, or than a
    /// quarter of the usual one where leases are so short, as nothing helps once a grantor has lost its own.
    pub(super) fn speak_every(&mut self, now: Time, pace: Duration, spacing: Duration) {
        self.pace = pace.max(spacing.min(self.heartbeat / 4)).min(self.heartbeat);
        self.next_beat = self.next_beat.min(now + self.pace);
    }

    fn lose_time(&mut self, lost: Duration) {
        if self.heard.checked_earlier(lost).is_none() {
            self.released_by = Time::ZERO;
        } else if self.released_by < Time::MAX {
            self.released_by = self.released_by.earlier(lost);
        }
        for moment in [&mut self.since, &mut self.heard, &mut self.next_beat] {
            *moment = moment.earlier(lost);
        }
    }

    /// When to give it up if nothing more comes. Every heartbeat is answered, so two of them and something for the way
    /// are enough.
    pub(super) fn silent_at(&self) -> Time {
        self.heard + self.pace * 2 + self.pace.min(Duration::from_secs(2)) / 2
    }

    /// When something is to be done if nothing is said.
    pub(super) fn next_deadline(&self) -> Time {
        self.silent_at().min(self.next_beat).min(self.released_by)
    }
}
