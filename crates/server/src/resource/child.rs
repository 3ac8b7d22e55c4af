//! One holder of one resource, as the grantor remembers it. There may be millions: every byte here counts.

use std::num::NonZeroU32;

use compact_str::CompactString;
use lessor_algorithms::Demand;
use lessor_proto::message::{Band, HolderKind, Report};
use lessor_proto::{Amount, Time};

use super::agenda::Tick;
use super::children::{Holder, Life};
use crate::ledger::Account;
use crate::repository::Template;
use crate::token::PollerLife;

#[derive(Clone, Debug)]
pub(crate) struct Child {
    /// The id of the client or node.
    pub(crate) name: CompactString,
    /// Which life of it: drawn by the holder if `incarnated`, else counted by this server.
    pub(crate) session: u64,
    /// The reign in which that session began; 0 if `incarnated`.
    pub(crate) born: u64,
    /// What it is charged for.
    pub(crate) account: Account,
    pub(crate) demands: Demands,
    /// Of one that draws an incarnation the greatest report id heard, as wants of older reports are out of date; of
    /// others, who number nothing, the millionths of the lease last shown, by which those who forget our fields are known
    /// again when an answer was lost.
    heard: u64,
    /// When it was last heard of.
    pub(crate) basis: Time,
    pub(crate) next_seq: u32,
    /// Where it stands in the agenda.
    pub(crate) due: Tick,
    pub(crate) kind: HolderKind,
    pub(crate) incarnated: bool,
    /// Another life of the same id has appeared since.
    pub(crate) superseded: bool,
    /// It was superseded and has missed a refresh: its wants do not count until it is heard of again.
    pub(crate) withdrawn: bool,
    /// It appeared beside another life of the same id and has reported only once: its leases are short.
    pub(crate) provisional: bool,
    /// It was charged for what it has from an earlier leader, which happens once.
    pub(crate) claimed: bool,
    /// What it knows of domains.
    pub(crate) knows: Knows,
}

/// Which policies of domains a holder has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Knows {
    /// It does not know what domains are.
    Nothing,
    /// Those in force.
    These,
    /// Others, or none where there are some.
    Others,
}

/// What a holder wants: nearly always one demand, from a node one a band.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Demands {
    One {
        wants: f64,
        weight: NonZeroU32,
        priority: i32,
    },
    /// Behind a thin pointer, so that it is no larger than one.
    Many(Box<Several>),
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Several(Vec<Demand>);

// === impl Child ===

impl Child {
    /// What identifies it among all holders of the resource.
    pub(crate) fn is(&self, kind: HolderKind, name: &str, life: PollerLife, incarnated: bool) -> bool {
        self.poller_life() == life && self.incarnated == incarnated && self.is_life_of(kind, name)
    }

    pub(crate) fn is_life_of(&self, kind: HolderKind, name: &str) -> bool {
        self.kind == kind && self.name == name
    }

    /// The first that is heard of it.
    pub(crate) fn new(now: Time, holder: Holder<'_>, life: PollerLife, demands: Demands) -> Child {
        Child {
            name: CompactString::new(holder.name),
            session: life.session,
            born: life.epoch,
            account: Account::default(),
            demands,
            heard: 0,
            basis: now,
            next_seq: 1,
            due: Tick::default(),
            kind: holder.kind,
            incarnated: matches!(holder.life, Life::Incarnation(_) | Life::Reign(_)),
            superseded: false,
            withdrawn: false,
            provisional: false,
            claimed: false,
            knows: Knows::Nothing,
        }
    }

    /// The last report that counts its wants; absent where reports are not numbered.
    pub(crate) fn report_id(&self) -> Option<u64> {
        (self.incarnated && self.heard > 0).then_some(self.heard)
    }

    /// Whether something as late as `id` was heard of it before.
    pub(crate) fn has_heard(&self, id: Option<u64>) -> bool {
        self.incarnated && id.is_some_and(|id| id <= self.heard)
    }

    /// Whether a report is news: later than all before, or not numbered. It is the last one from here on.
    pub(crate) fn hear(&mut self, now: Time, report_id: Option<u64>, shown: Option<Amount>) -> bool {
        if self.incarnated {
            if report_id.is_some_and(|id| id <= self.heard) {
                return false;
            }
            self.heard = report_id.unwrap_or(self.heard);
        } else if let Some(shown) = shown {
            self.heard = shown.as_micros();
        }
        self.basis = now;
        true
    }

    /// What it is granted next in reign `epoch` is above what it shows that it has adopted.
    pub(crate) fn go_on_after_shown(&mut self, report: &Report, epoch: u64) {
        let shown = report.has.as_ref().and_then(|has| has.order).filter(|order| order.epoch == epoch);
        let next = shown.and_then(|order| u32::try_from(order.seq).ok()?.checked_add(1));
        self.next_seq = self.next_seq.max(next.unwrap_or(1));
    }

    /// Another leader speaks for the node from here on; its reports are numbered anew.
    pub(crate) fn succeed(&mut self, reign: u64) {
        self.session = reign;
        self.heard = 0;
    }

    /// Whether it may be the one that shows a lease of `amount` and nothing else: it was granted that much, or has shown
    /// it before and may have missed the answers since.
    pub(crate) fn may_show(&self, amount: Amount) -> bool {
        !self.incarnated && (self.account.oldest_of(amount).is_some() || self.heard == amount.as_micros())
    }

    /// When it should be looked at next, if nothing is heard of it.
    pub(crate) fn attention(&self, terms: &Template) -> Time {
        let missed = (self.superseded && !self.withdrawn).then(|| self.basis + terms.refresh_interval * 2);
        let end = self.account.next_end().unwrap_or_else(|| self.forgotten_at(terms));
        missed.map_or(end, |missed| missed.min(end))
    }

    /// Until when it is remembered if it has nothing and is not heard of: for as long as it would have if it had.
    pub(crate) fn forgotten_at(&self, terms: &Template) -> Time {
        self.basis + terms.lease_length
    }
}

// === impl Demands ===

impl Demands {
    pub(crate) fn from_bands(bands: &[Band]) -> Demands {
        match bands {
            [Band { priority, subclients, wants }] => Demands::One {
                wants: *wants,
                weight: NonZeroU32::new(*subclients).expect("checked at the door"),
                priority: narrow(*priority),
            },
            bands => Demands::Many(Box::new(Several(bands.iter().map(demand).collect()))),
        }
    }

    /// One by one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Demand> {
        let (one, many) = match self {
            Demands::One { wants, weight, priority } => {
                (Some(Demand { priority: (*priority).into(), weight: weight.get(), wants: *wants }), &[][..])
            }
            Demands::Many(many) => (None, &many.0[..]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    pub(crate) fn wants(&self) -> f64 {
        self.iter().map(|demand| demand.wants).sum()
    }

    pub(crate) fn weight(&self) -> u64 {
        self.iter().map(|demand| u64::from(demand.weight)).sum()
    }
}

fn demand(band: &Band) -> Demand {
    Demand { priority: narrow(band.priority).into(), weight: band.subclients, wants: band.wants }
}

/// Priorities beyond 32 bits are taken for the nearest within.
fn narrow(priority: i64) -> i32 {
    i32::try_from(priority).unwrap_or(if priority > 0 { i32::MAX } else { i32::MIN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_stays_small() {
        assert_eq!(size_of::<Demands>(), 16);
        assert_eq!(size_of::<Option<Child>>(), 120);
    }
}
