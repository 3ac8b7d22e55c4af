//! The messages that go up a stream: reports of what is news, heartbeats, and releases.
//!
//! Each resource is due when there is something to say of it, and not otherwise. A heartbeat speaks for all that is as
//! it was, and takes along what has changed a little.

use lessor_proto::message::{StreamReport, Up};
use lessor_proto::{Epoch, ResourceId, Time};

use super::entry::Entry;
use super::line::{LineState, OpenStream};
use super::{Action, Session};

/// Reports whose time of sending is remembered, at the most: twenty seconds of reports without a pause.
const REMEMBERED: usize = 4_096;

/// The scope of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReportScope {
    /// Everything held is to be renewed. What must go alone does not ride along: a refusal would cost the renewal.
    Heartbeat,
    /// The resources that are due.
    Due,
    /// One resource that must go alone.
    Alone,
}

// === impl Session ===

impl Session {
    /// When some resource is due that is not on its way out.
    pub(super) fn next_report(&self) -> Time {
        let open = self.entries.iter().filter(|entry| entry.is_open());
        open.map(|entry| entry.due).min().unwrap_or(Time::MAX)
    }

    /// A heartbeat if it is time for one, or a report of what is due.
    pub(super) fn speak(&mut self, now: Time, open: OpenStream) -> Option<Action> {
        if now < open.next_beat {
            return self.report_due(now, open.id, Some(open.epoch));
        }
        let beat = self.report_up(now, open.id, Some(open.epoch), ReportScope::Heartbeat)?;
        if let LineState::Open(open) = &mut self.streams.line {
            open.next_beat = now + open.pace;
            open.last_beat = self.sent.last_id();
        }
        Some(beat)
    }

    /// A report of everything that is due, or of one resource that must go alone.
    pub(super) fn report_due(&mut self, now: Time, stream: u64, epoch: Option<Epoch>) -> Option<Action> {
        let due = self.entries.iter().filter(|entry| entry.is_open() && entry.due <= now);
        let scope = due.map(|entry| if entry.setbacks.alone { ReportScope::Alone } else { ReportScope::Due });
        // What goes together goes first.
        let scope = scope.reduce(|a, b| if a == ReportScope::Due { a } else { b })?;
        self.report_up(now, stream, epoch, scope)
    }

    /// Nothing, if the program is to hear first of what the report gives back.
    fn report_up(
        &mut self,
        now: Time,
        stream: u64,
        epoch: Option<Epoch>,
        scope: ReportScope,
    ) -> Option<Action> {
        let most = if scope == ReportScope::Alone { 1 } else { self.config.batch };
        let is_spoken_of = |entry: &Entry| {
            entry.is_open()
                && entry.setbacks.alone == (scope == ReportScope::Alone)
                && (entry.due <= now || scope == ReportScope::Heartbeat && entry.holding.demand_has_changed())
        };
        let places = (0..self.entries.len()).filter(|&place| is_spoken_of(&self.entries[place]));
        let places: Vec<usize> = places.take(most).collect();
        if self.gives_back(now, &places) {
            return None;
        }
        let id = self.next_id();
        let config = &self.config;
        let reports = places.iter().map(|&place| {
            let entry = &mut self.entries[place];
            entry.told_up(id);
            entry.report(now, epoch, config)
        });
        let report = StreamReport {
            id,
            target_epoch: epoch,
            renew_all: scope == ReportScope::Heartbeat,
            reports: reports.collect(),
        };
        self.sent.note(id, now, report.reports.len(), REMEMBERED);
        if !report.reports.is_empty() {
            self.settle_at(now, &places);
        }
        Some(self.send(stream, Up::Report(report)))
    }

    /// A release of what is on its way out and was not released on this stream.
    pub(super) fn release_up(&mut self, now: Time, open: OpenStream) -> Option<Action> {
        let id = self.sent.last_id().next();
        let leaving = self.entries.iter_mut().filter(|entry| !entry.is_open() && entry.exchange.is_none());
        let resources: Vec<ResourceId> = leaving
            .take(self.config.batch)
            .map(|entry| {
                entry.exchange = Some(id);
                entry.due = Time::MAX;
                entry.resource.clone()
            })
            .collect();
        if resources.is_empty() {
            return None;
        }
        self.sent.next_id();
        self.counts.releases += 1;
        let released_by = open.released_by.min(now + self.config.timeout);
        self.streams.line = LineState::Open(OpenStream { released_by, ..open });
        Some(self.send(open.id, Up::Release { id, resources }))
    }
}
