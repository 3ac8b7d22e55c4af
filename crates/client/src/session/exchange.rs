//! The exchange that a session polls for: one ask or release is in flight, until it is answered, fails or is given up.

use std::time::Duration;

use lessor_proto::message::Leader;
use lessor_proto::{ReportId, Time};

use super::Session;
use super::marks::Mark;
use super::route::Astray;
use crate::fault::{Failure, Fault};

/// Releases sent before the rest is left to the end of the lease.
pub(super) const RELEASES: u32 = 3;

/// A request that is in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) id: ReportId,
    pub(super) sent: Time,
    pub(super) deadline: Time,
    pub(super) timeout: Duration,
    pub(super) kind: ExchangeKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ExchangeKind {
    Ask,
    Release,
}

// === impl Session ===

impl Session {
    /// Ask or release `id` got no usable answer.
    pub(super) fn on_failure(&mut self, now: Time, id: ReportId, failure: Failure) {
        let Some(exchange) = self.in_flight.take_if(|exchange| exchange.id == id) else { return };
        self.counts.failures += 1;
        match (exchange.kind, failure) {
            (ExchangeKind::Ask, Failure::Refused(why)) => self.on_refused(now, id, &why),
            (ExchangeKind::Release, Failure::Refused(_)) => {
                self.finish_releases(now, id);
            }
            (_, failure) => {
                self.route.failed(now, self.longest_back_off());
                self.give_up(now, exchange, &Fault::Failed(failure));
            }
        }
        self.settle(now);
    }

    pub(super) fn next_id(&mut self) -> ReportId {
        self.sent.next_id()
    }

    /// Gives up what has not been answered in time.
    pub(super) fn time_out(&mut self, now: Time) {
        if let Some(exchange) = self.in_flight.filter(|exchange| exchange.deadline <= now) {
            let waited = u64::try_from(exchange.timeout.as_millis()).unwrap_or(u64::MAX);
            self.on_failure(now, exchange.id, Failure::Timeout(waited));
        }
        self.hear_nothing(now);
    }

    pub(super) fn start(&mut self, now: Time, id: ReportId, kind: ExchangeKind, timeout: Duration) {
        self.in_flight = Some(Exchange { id, sent: now, deadline: now + timeout, timeout, kind });
    }

    pub(super) fn take_exchange(&mut self, id: ReportId, kind: ExchangeKind) -> Option<Exchange> {
        self.in_flight.take_if(|exchange| exchange.id == id && exchange.kind == kind)
    }

    pub(super) fn on_redirect(&mut self, now: Time, exchange: Exchange, leader: &Leader) {
        self.counts.redirects += 1;
        match self.route.redirected(now, leader, self.longest_back_off()) {
            Ok(()) => {
                for place in self.exchanged(exchange.id) {
                    let mut entry = self.entries.edit(place);
                    entry.exchange = None;
                    entry.due = now;
                }
            }
            Err(Astray::NoLeader) => self.give_up(now, exchange, &Fault::NoLeader),
            Err(Astray::Circle) => self.give_up(now, exchange, &Fault::Circle),
        }
    }

    /// The exchange came to nothing; the route says when to try again.
    pub(super) fn give_up(&mut self, now: Time, exchange: Exchange, fault: &Fault) {
        self.entries.retain_of(self.exchanged(exchange.id), |entry| {
            (entry.exchange, entry.due) = (None, now);
            match exchange.kind {
                ExchangeKind::Ask => {
                    entry.setbacks.fault = entry.is_open().then(|| fault.clone());
                    true
                }
                ExchangeKind::Release => entry.may_still_release(now, RELEASES),
            }
        });
    }

    /// The shortest refresh interval, or the time between heartbeats, but not above what is configured.
    pub(super) fn longest_back_off(&self) -> Duration {
        let refresh = Duration::from_nanos(self.entries.least(Mark::Refresh, 0));
        let heard = self.streams.heartbeat.map_or(refresh, |heartbeat| heartbeat.min(refresh));
        self.config.longest_back_off.min(heard)
    }
}
