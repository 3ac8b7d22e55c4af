//! The reports of a holding: its demand, what of the lease is kept and what is given back.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{Bands, Has, Lasts, Report};
use lessor_proto::{Amount, Epoch, ResourceId, Time};

use super::{Holding, Kind, Surplus, sum};
use crate::transport::Transport;

/// A peak is told again when it has changed by so much, and not otherwise.
const NOTABLE: f64 = 1.1;

// === impl Holding ===

impl Holding {
    /// Whether the demand has changed since the last report in a way that should not wait for the next refresh: more is
    /// wanted than is held, or something can be given back. Who is lent what nobody wants says at once what it wants: what
    /// is a share is not recalled.
    pub(crate) fn demand_is_news(&self, now: Time, transport: Transport) -> bool {
        let Some((bands, peak)) = &self.reporting.reported else { return true };
        if *bands == self.config.bands {
            let claims = self.peak.unwrap_or(0.0);
            let is_covered = || Amount::from_f64(claims * 2.0) <= self.held(now);
            return transport == Transport::Stream && claims > peak.unwrap_or(0.0) * NOTABLE && !is_covered();
        }
        match self.config.surplus {
            Surplus::Keep => true,
            Surplus::Yield => self.is_yielding_news(bands, now),
            Surplus::Return if self.is_lent_to(transport) => true,
            Surplus::Return | Surplus::ReturnParts(_) => {
                let held = self.held(now);
                self.as_amount(self.wants()) > held || self.keep() < held
            }
        }
    }

    /// Whether less is wanted before all else than was `said`, or more of anything than is held and was said, or something can
    /// be given back.
    fn is_yielding_news(&self, said: &Bands, now: Time) -> bool {
        let (wants, held) = (self.as_amount(self.wants()), self.held(now));
        let urgent = |bands: &Bands| bands.first().map_or(0.0, |band| band.wants);
        let (before, after) = (urgent(said), urgent(&self.config.bands));
        after < before || wants > held && (after > before || self.wants() > sum(said)) || self.keep() < held
    }

    /// Whether the grantor waits for a report.
    pub(crate) fn is_ack_wanted(&self) -> bool {
        self.reporting.ack_wanted
    }

    /// Whether the grantor waits for a report, and we use no more than the lease gives, so that reporting helps.
    pub(crate) fn ack_is_due(&self, now: Time) -> bool {
        self.reporting.ack_wanted && self.in_use <= self.held(now)
    }

    /// Whether less could be promised than the grantor counts. A node that hands out more than its lease gives frees what
    /// comes back to it step by step, so that the nodes above need not wait for the last of it.
    pub(crate) fn promise_fell(&self, now: Time) -> bool {
        let held = self.held(now);
        held.max(self.in_use) < self.counted || self.reporting.returning && self.keep() < held
    }

    /// Whether the grantor waits for units that come back by age, one after the other.
    pub(crate) fn yields_by_age(&self) -> bool {
        self.reporting.ack_wanted && self.config.surplus == Surplus::Yield
    }

    /// Whether the last report said something else of the demand.
    pub(crate) fn demand_has_changed(&self) -> bool {
        self.reporting.reported.as_ref().is_none_or(|(bands, peak)| {
            *bands != self.config.bands || differs(peak.unwrap_or(0.0), self.peak.unwrap_or(0.0))
        })
    }

    /// Makes the report at `now` to the leader of `epoch`, or to whichever leads: the promise holds from here on.
    /// The surplus is given back before that ([`Holding::give_back_surplus`]), and what is in use is read in
    /// between. A successor of the one who granted the lease is shown what that one may count, and promised less.
    pub(crate) fn report(&mut self, now: Time, resource: &ResourceId, epoch: Option<Epoch>) -> Report {
        self.show_passed_over(now);
        let held = self.held(now);
        let lasts = self.lasts(now);
        let counted = self.counted_before(now, held.max(self.in_use), epoch);
        if self.in_use <= held {
            self.reporting.ack_wanted = false;
        }
        self.reporting.reported = Some((self.config.bands.clone(), self.peak));
        // An ended lease of Lessor's is still acknowledged, which lets the grantor stop counting it at once.
        let lease = self.lease.as_ref().filter(|lease| lease.order.is_some() || held > Amount::ZERO);
        let has = lease.map(|lease| {
            // The one who granted it knows how long it lasts.
            let lasts = lasts.filter(|_| counted.is_some());
            let (capacity, token) = counted.unwrap_or_else(|| (held, Arc::clone(&lease.token)));
            Has { capacity, order: lease.order, token: token.to_vec(), lasts, expiry: 0 }
        });
        let promise = has.as_ref().and_then(|has| has.order).map(|_| held.max(self.in_use));
        self.counted = promise.unwrap_or_default();
        let bands = self.config.bands.clone();
        Report {
            resource: resource.clone(),
            bands,
            has,
            held: promise,
            domains: None,
            integer: None,
            peak: self.peak,
            unenforced: self.say_units(),
        }
    }

    /// Whether units of a gauge may be in use that its grantor counts, whatever it is held as by now.
    pub(crate) fn has_units(&self, now: Time) -> bool {
        self.cover.counts_units(now)
    }

    /// The time for which what is held or counted lasts, if anything is.
    fn lasts(&self, now: Time) -> Option<Lasts> {
        let ends = self.cover.end().into_iter().chain(self.lease.as_ref().map(|lease| lease.end));
        let remaining = ends.map(|end| end.since(now)).max().filter(|remaining| !remaining.is_zero())?;
        let length = self.lease.as_ref().map_or(Duration::ZERO, |lease| lease.length);
        let counts = self.cover.greatest_lasts(now);
        Some(Lasts { length: length.max(remaining), remaining, counts })
    }

    /// Whether what it holds beyond its wants is a loan: it is kept until the grantor recalls it. From who polls it could
    /// not recall it.
    fn is_lent_to(&self, transport: Transport) -> bool {
        self.peak.is_some() && self.config.surplus == Surplus::Return && transport == Transport::Stream
    }

    /// Gives back what the next report does not hold any more. Only a *fall* of the wants gives anything back: an algorithm
    /// may well grant more than is wanted, and would again. Nor is a loan given back.
    pub(crate) fn give_back_surplus(&mut self, transport: Transport) {
        if self.is_lent_to(transport) {
            return;
        }
        let fell = self.reporting.reported.as_ref().is_some_and(|(bands, _)| self.wants() < sum(bands));
        if fell || self.reporting.returning {
            let keep = self.keep();
            self.reporting.returning = keep > self.kept_for_wants();
            if let Some(lease) = &mut self.lease {
                lease.amount = lease.amount.min(keep);
            }
        }
    }

    /// The amount that cannot be given back: what is wanted, and what is in use or handed out.
    fn keep(&self) -> Amount {
        self.kept_for_wants().max(self.in_use)
    }

    /// The amount that is wanted, and what was given on top of that to be kept.
    fn kept_for_wants(&self) -> Amount {
        self.as_amount(self.wants()).saturating_add(self.spare)
    }

    pub(super) fn reported_wants(&self) -> Amount {
        self.reporting.reported.as_ref().map_or(Amount::ZERO, |(bands, _)| self.as_amount(sum(bands)))
    }

    pub(super) fn as_amount(&self, wants: f64) -> Amount {
        match (self.config.kind, self.config.surplus) {
            (Kind::Gauge, _) => Amount::from_f64(wants.ceil()),
            (Kind::Rate, Surplus::ReturnParts(part)) => {
                let (wants, part) = (Amount::from_f64(wants).as_micros(), part.as_micros().max(1));
                Amount::from_micros(wants.div_ceil(part).saturating_mul(part))
            }
            (Kind::Rate, _) => Amount::from_f64(wants),
        }
    }
}

fn differs(one: f64, other: f64) -> bool {
    one.max(other) > one.min(other) * NOTABLE
}
