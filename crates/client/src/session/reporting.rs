//! The messages that go up a stream: reports of what is news, heartbeats, and releases.
//!
//! Each resource is due when there is something to say of it, and not otherwise. A heartbeat speaks for all that is as
//! it was, and takes along what has changed a little.

use lessor_proto::message::{Report, StreamReport, Up};
use lessor_proto::{Epoch, Time};

use super::line::{LineState, OpenStream};
use super::marks::Mark;
use super::{Action, Session};

/// Reports whose time of sending is remembered, at the most: eighty seconds of reports without a pause. A grantor may count for as
/// long from one of them, as not every heartbeat is a renewal.
const REMEMBERED: usize = 16_384;

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
        self.entries.soonest(Mark::Due).min(self.entries.soonest(Mark::DueAlone))
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
        // What goes together goes first.
        let scope = match () {
            () if self.entries.soonest(Mark::Due) <= now => ReportScope::Due,
            () if self.entries.soonest(Mark::DueAlone) <= now => ReportScope::Alone,
            () => return None,
        };
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
        let (batch, due) = (self.config.batch, now.as_nanos());
        let places = match scope {
            ReportScope::Heartbeat => {
                self.entries.first_places(&[(Mark::Due, due), (Mark::Changed, 0)], batch)
            }
            ReportScope::Due => self.entries.first_places(&[(Mark::Due, due)], batch),
            ReportScope::Alone => self.entries.first_places(&[(Mark::DueAlone, due)], 1),
        };
        if self.gives_back(now, &places) {
            return None;
        }
        let id = self.next_id();
        let config = &self.config;
        let reports = places.iter().map(|&place| {
            let mut entry = self.entries.edit(place);
            entry.told_up(id);
            let report = entry.report(now, epoch, config);
            drop(entry);
            self.streams.note_reported(&self.entries[place].resource);
            report
        });
        let report = StreamReport {
            id,
            target_epoch: epoch,
            renew_all: scope == ReportScope::Heartbeat,
            reports: reports.collect(),
        };
        self.sent.note(id, now, report.reports.len(), REMEMBERED);
        if !report.reports.is_empty() {
            self.settle(now);
        }
        Some(self.send(stream, Up::Report(report)))
    }

    /// A release of what is on its way out and was not released on this stream. What was let pass of it is said before.
    pub(super) fn release_up(&mut self, now: Time, open: OpenStream) -> Option<Action> {
        let leaving = self.entries.first_places(&[(Mark::Unreleased, 0)], self.config.batch);
        if let Some(last) = self.last_report_up(now, open, &leaving) {
            return Some(last);
        }
        let id = self.sent.last_id().next();
        let resources =
            self.released(&leaving, |entry| (entry.exchange, entry.due) = (Some(id), Time::MAX))?;
        self.sent.next_id();
        self.counts.releases += 1;
        let released_by = open.released_by.min(now + self.config.timeout);
        self.streams.line = LineState::Open(OpenStream { released_by, ..open });
        Some(self.send(open.id, Up::Release { id, resources }))
    }

    /// The last report of those of `leaving` of which units were let pass that no report has said.
    fn last_report_up(&mut self, now: Time, open: OpenStream, leaving: &[usize]) -> Option<Action> {
        let counted = leaving.iter().filter(|&&place| self.entries[place].holding.has_passed_unsaid());
        let counted: Vec<usize> = counted.copied().collect();
        if counted.is_empty() {
            return None;
        }
        let (id, epoch) = (self.next_id(), Some(open.epoch));
        let reports = counted.iter().map(|&place| self.entries.edit(place).report(now, epoch, &self.config));
        let reports: Vec<Report> = reports.collect();
        self.sent.note(id, now, reports.len(), REMEMBERED);
        let report = StreamReport { id, target_epoch: epoch, renew_all: false, reports };
        Some(self.send(open.id, Up::Report(report)))
    }
}
