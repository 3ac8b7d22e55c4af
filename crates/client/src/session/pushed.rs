//! The messages that come down a stream: grants, renewals, and answers to what went up.
//!
//! A renewal is one number for everything held: the grantor extends, in its books, the last grant that it sent of each
//! resource on this stream. So we extend a lease only if it is that very grant. The count of grants shows that none is
//! missing between us; a stream with a gap is given up.

use std::time::Duration;

use lessor_proto::message::{Down, Grant};
use lessor_proto::{Epoch, ReportId, Time};

use super::entry::Granted;
use super::line::{LineState, OpenStream};
use super::marks::Mark;
use super::{Failure, Session};
use crate::limiter::SentUnits;
use crate::mutation::HolderRule;

// === impl Session ===

impl Session {
    /// Something came down stream `id`. What comes from a stream that was given up is passed over.
    pub(super) fn on_down(&mut self, now: Time, id: u64, down: Down) {
        if !self.hear(now, id) {
            return;
        }
        match down {
            Down::Welcome(welcome) => self.on_welcome(now, welcome),
            Down::Grants(grants) => {
                self.on_grants(now, grants);
            }
            Down::Renewed { basis, grants } => self.on_renewed(now, basis, grants),
            Down::Released { id } => self.on_released_up(now, id),
            Down::Refused { id, why } => self.on_refused_up(now, id, why),
            Down::Domains(news) => self.streams.side_mut().news.push_back(news),
            Down::Units { resource, units, keep } => self.on_units(resource, SentUnits { units, keep }),
            Down::Jobs(news) => self.on_jobs(now, news),
            // It is for the node that this is a session of.
            Down::Notice(_) | Down::NoticeInGrants(_) | Down::Look(_) => {}
            Down::Redirect(leader) => self.on_redirected(now, &leader),
        }
        self.settle(now);
    }

    /// Something came down stream `id` that nobody here knows: it is passed over, and shows that somebody is there.
    pub(super) fn on_unknown(&mut self, now: Time, id: u64) {
        self.counts.unknown += u64::from(self.hear(now, id));
    }

    /// Notes that something came down stream `id`. Returns whether that is the one.
    fn hear(&mut self, now: Time, id: u64) -> bool {
        let is_it = self.streams.line.id() == Some(id);
        self.counts.received += u64::from(is_it);
        if let LineState::Open(open) = &mut self.streams.line
            && is_it
        {
            open.heard = now;
        }
        is_it
    }

    /// Stream `id` has ended, or could not be opened.
    pub(super) fn on_closed(&mut self, now: Time, id: u64, failure: Failure) {
        self.streams.dropped.take_if(|dropped| *dropped == id);
        if self.streams.line.id() != Some(id) {
            return;
        }
        match failure {
            Failure::Unimplemented => self.without_streams(now),
            failure => self.broken(now, failure),
        }
        self.streams.dropped = None;
        self.settle(now);
    }

    /// Takes grants up.
    fn on_grants(&mut self, now: Time, grants: Vec<Grant>) {
        let LineState::Open(open) = &mut self.streams.line else {
            return self.contradicted(now, "grant before its welcome".to_owned());
        };
        open.grants += grants.len() as u64;
        let epoch = open.epoch;
        for grant in grants {
            if let Err(what) = self.take_up(now, grant, epoch) {
                return self.contradicted(now, what);
            }
        }
        let pace = self.entries.least(Mark::Pace, 0);
        if let LineState::Open(open) = &mut self.streams.line
            && pace != Mark::ABSENT
        {
            open.speak_every(now, Duration::from_nanos(pace), self.config.spacing);
        }
        self.forget_reports();
    }

    /// Takes one grant up, adopted or not. It fails when it cannot have come down a stream of epoch `epoch`.
    fn take_up(&mut self, now: Time, grant: Grant, epoch: Epoch) -> Result<(), String> {
        let (Some(order), Some(basis)) = (grant.order, grant.basis) else {
            return Err("grant without an order or a basis".to_owned());
        };
        if order.epoch > epoch {
            return Err(format!("grant of epoch {} in epoch {epoch}", order.epoch));
        }
        let Some(place) = self.find(&grant.resource) else { return Ok(()) };
        if !self.entries[place].is_open() {
            return Ok(());
        }
        let (length, capacity) = (grant.length, grant.capacity);
        let pace = grant.refresh_interval.min(length / 3);
        let mut entry = self.entries.edit(place);
        entry.take_before(now, &grant, self.config.drift);
        let policies = entry.take_policies(&grant);
        drop(entry);
        let adopted =
            self.end_of(now, &grant, basis).and_then(|end| self.adopt(now, place, grant, basis, end));
        let spaced = self.spaced(now);
        let mut entry = self.entries.edit(place);
        // What was not adopted is not renewed: the next report says so, and of a grant numbered as the lease shows that instead.
        let is_held = adopted.is_ok() || !self.config.rules.keep(HolderRule::RenewAdopted);
        let is_first = entry.streamed.granted.is_none();
        entry.streamed.granted = Some(Granted { order, length, capacity, is_held });
        entry.streamed.pace = Some(pace);
        entry.taken_up(basis);
        entry.setbacks.fault = adopted.and(policies).err();
        entry.hasten(now, spaced);
        drop(entry);
        self.streams.note_granted(&self.entries[place].resource, is_first);
        Ok(())
    }

    fn on_renewed(&mut self, now: Time, basis: ReportId, grants: u64) {
        let LineState::Open(open) = self.streams.line else {
            return self.contradicted(now, "renewal before its welcome".to_owned());
        };
        if open.grants != grants {
            let came = open.grants;
            return self.contradicted(now, format!("renewal after {grants} grants, of which {came} came"));
        }
        let (sent, spaced) = (self.sent.at(basis), self.spaced(now));
        let (drift, anyway) = (self.config.drift, !self.config.rules.keep(HolderRule::RenewAdopted));
        self.entries.each(|entry| {
            if !entry.is_open() {
                return;
            }
            let granted = entry.streamed.granted.filter(|granted| granted.is_held).zip(sent);
            let renewed = granted.is_some_and(|(Granted { order, length, .. }, sent)| {
                let order = if anyway { entry.holding.order().unwrap_or(order) } else { order };
                entry.holding.extend(now, order, drift.holder_end(sent, length))
            });
            entry.renewed_up(now, basis, renewed, spaced);
        });
        self.forget_reports();
    }

    fn on_released_up(&mut self, now: Time, id: ReportId) {
        self.finish_releases(now, id);
        let waiting = self.entries.least(Mark::Released, 0) != Mark::ABSENT;
        if let LineState::Open(open) = &mut self.streams.line {
            open.released_by = if waiting { now + self.config.timeout } else { Time::MAX };
        }
    }

    /// Report or release `id` was refused, and nothing of it counts. A heartbeat is said again without what spoiled it.
    fn on_refused_up(&mut self, now: Time, id: ReportId, why: String) {
        if !self.entries.places(Mark::Released, id.0..=id.0).is_empty() {
            return self.on_released_up(now, id);
        }
        if let LineState::Open(OpenStream { last_beat, next_beat, .. }) = &mut self.streams.line
            && *last_beat == id
        {
            *next_beat = now;
            if self.sent.said_nothing(id) {
                return self.broken(now, Failure::Refused(why));
            }
        }
        let spoken = self.entries.places(Mark::Said, id.0..=id.0);
        self.refuse(now, id, &why, &spoken);
    }

    /// Forgets the reports from which no grant counts any more.
    fn forget_reports(&mut self) {
        let floor = self.entries.least(Mark::Basis, 0);
        if floor != Mark::ABSENT {
            self.sent.forget_before(ReportId(floor));
        }
    }

    /// When the next report on a stream may go out.
    pub(super) fn spaced(&self, now: Time) -> Time {
        self.sent.last_ask().map_or(now, |sent| sent + self.config.stream_spacing)
    }
}
