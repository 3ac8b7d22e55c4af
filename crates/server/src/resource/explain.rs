//! Why a holder gets what it gets: decided by the functions that grant, on copies of the books that they would change.

use std::collections::BTreeSet;

use lessor_algorithms::{Demand, SharePolicy};
use lessor_proto::message::{BoundBy, HolderKind};
use lessor_proto::{Amount, Time};

use super::due::{Due, Offering};
use super::slab::Slot;
use super::{CallContext, Resource};
use crate::ledger::{Granted, Offer, Term};

/// The amount that a holder would be granted if it reported again what it reported last, and why it is that.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct HolderExplanation {
    /// Its id.
    pub client: String,
    /// `client` or `node`.
    pub kind: &'static str,
    /// Which life of the id, as a mark that tells it from others.
    pub session: String,
    /// `stream` or `poll`.
    pub way: &'static str,
    /// The amount that it wants, as far as that counts.
    pub wants: f64,
    /// Whether it says more than counts: a greater priority, or more clients, than the template lets it.
    pub is_cut: bool,
    /// The number of clients that it stands for.
    pub weight: u64,
    /// Its demands by priority, the greatest first.
    pub bands: Vec<BandShare>,
    /// The amount that it was granted last, or less if it has promised less since.
    pub told: f64,
    /// The amount that it is charged for: the most that it may use.
    pub charged: f64,
    /// The amount of its share, whatever there is room for.
    pub share: f64,
    /// The amount that is due to it, with what it borrows of what nobody wants.
    pub due: f64,
    /// The amount that it would be granted; absent where it would be told nothing.
    pub gets: Option<f64>,
    /// The bound of that.
    #[cfg_attr(feature = "shell", serde(serialize_with = "name"))]
    pub bound_by: BoundBy,
    /// All else that takes part in it.
    #[cfg_attr(feature = "shell", serde(serialize_with = "names"))]
    pub also: Vec<BoundBy>,
    /// When the last of what it is charged for ends, in seconds from now.
    pub ends_in_seconds: f64,
    /// When it was last heard of, in seconds ago: in a report, or a heartbeat that renewed it.
    pub heard_seconds_ago: f64,
}

/// A demand of a holder, or of all holders together, in one priority.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct BandShare {
    /// The greater number is served first.
    pub priority: i64,
    /// The amount that is wanted there.
    pub wants: f64,
    /// The number of clients there.
    pub weight: u64,
    /// The part of that which is had: the share.
    pub share: f64,
}

/// The division of a resource at one moment.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct Division {
    /// The amount that the template says; absent where none covers the resource any more.
    pub configured: Option<f64>,
    /// The part of it that is reserved for floors.
    pub reserved: f64,
    /// `template` or `lease`.
    pub source: &'static str,
    /// The limit of all that may be out; absent where the sum is not limited.
    pub limit: Option<f64>,
    /// The amount that is divided by shares: the limit without the ghost.
    pub divided: f64,
    /// The amount that is free within the limit.
    pub free: Option<f64>,
    /// The amount that may still be granted before a larger mark is written; absent where no marks are.
    pub below_mark: Option<f64>,
    /// The amount that is out beyond a limit that was cut.
    pub excess: f64,
    /// The priorities, the greatest first, at most [`Division::MOST_BANDS`] of them.
    pub bands: Vec<BandLevel>,
}

/// A priority of a resource.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct BandLevel {
    /// The greater number is served first.
    pub priority: i64,
    /// The amount that greater ones leave.
    pub left: f64,
    /// The level: the most that one client gets; absent where all get what they want, or nothing is divided so.
    pub level: Option<f64>,
}

// === impl Division ===

impl Division {
    /// Priorities that are shown.
    pub const MOST_BANDS: usize = 16;
}

// === impl Resource ===

impl Resource {
    /// Why the holder at `slot` gets what it gets.
    pub(crate) fn explain(&mut self, now: Time, slot: Slot, cx: CallContext<'_>) -> HolderExplanation {
        self.appraise();
        let target = self.target_bound(now, slot);
        let decided = self.decide(now, slot, target, cx);
        let (gets, bound_by, also) = match decided {
            Ok((granted, by)) => (Some(granted), by, self.takes_part(slot, by)),
            Err(by) => (None, by, Vec::new()),
        };
        let child = self.holders.at(slot);
        let bands = child.demands().iter().map(|demand| BandShare {
            priority: demand.priority,
            wants: demand.wants,
            weight: demand.weight.into(),
            share: if child.is_withdrawn() { 0.0 } else { self.share_of(&demand) },
        });
        let bands: Vec<BandShare> = gathered(bands);
        HolderExplanation {
            client: child.name.to_string(),
            kind: match child.kind {
                HolderKind::Client => "client",
                HolderKind::Node => "node",
            },
            session: self.holders.children().mark(child.life.session),
            way: if self.pusher.peer(slot).is_some() { "stream" } else { "poll" },
            wants: child.demands().wants(),
            is_cut: self.holders.said().is_cut(slot),
            weight: child.demands().weight(),
            told: self.holds(slot).as_f64(),
            charged: child.account().charge().as_f64(),
            share: bands.iter().map(|band| band.share).sum(),
            bands,
            due: target.amount.as_f64(),
            gets: gets.map(Amount::as_f64),
            bound_by,
            also,
            ends_in_seconds: child.account().last_end().map_or(0.0, |end| end.since(now).as_secs_f64()),
            heard_seconds_ago: now.since(child.last.basis).as_secs_f64(),
        }
    }

    /// The amount that the holder at `slot` would be granted, and what binds it; or why nothing.
    fn decide(
        &self,
        now: Time,
        slot: Slot,
        target: Due,
        cx: CallContext<'_>,
    ) -> Result<(Amount, BoundBy), BoundBy> {
        if self.claims.uses_uncounted(now, slot) {
            return Err(BoundBy::Claim);
        }
        // As it would be when it has reported.
        let mut child = self.holders.at(slot).clone();
        (child.last.basis, child.flags.provisional) = (now, false);
        let length = self.length(now, &child, cx).ok_or_else(|| self.unlet(now, cx))?;
        let Offering { due, most } = self.offering(slot, target);
        let (mut ledger, mut account) = (self.ledger.clone(), child.account().clone());
        if self.claims.is_any_shown() {
            let reachable = ledger.reachable(&account, due.amount.min(most.amount));
            if self.has_more(now, slot, reachable) {
                return Err(BoundBy::Claim);
            }
        }
        let term = Term { basis: now, length, drift: cx.config.drift };
        let offer = Offer { target: due.amount, grain: self.grain(), most: most.amount, term, seq: u32::MAX };
        let granted: Granted = ledger.grant(&mut account, &offer);
        Ok((granted.amount, self.bound_by(slot, &Offering { due, most }, &granted)))
    }

    /// All else that takes part in an amount bound by `by`: with other figures of it the amount may be another.
    fn takes_part(&self, slot: Slot, by: BoundBy) -> Vec<BoundBy> {
        let above = if self.is_leased() { BoundBy::LeaseAbove } else { BoundBy::Level };
        let ghost = (self.ledger.ghost() > Amount::ZERO).then_some(BoundBy::Ghost);
        let is_behind = self.holders.at(slot).demands().iter().any(|demand| self.is_behind(&demand));
        let behind = is_behind.then_some(BoundBy::Band);
        let mut parts = BTreeSet::new();
        match by {
            BoundBy::Level | BoundBy::Turn | BoundBy::Band | BoundBy::LeaseAbove => {
                parts.extend([above, BoundBy::Level].into_iter().chain(ghost).chain(behind));
            }
            BoundBy::Ghost => parts.extend([above, BoundBy::Level].into_iter().chain(behind)),
            BoundBy::OthersOut | BoundBy::KeptFree | BoundBy::Debt => {
                parts.extend([above, BoundBy::Level, BoundBy::OthersOut].into_iter().chain(ghost));
            }
            BoundBy::LegacyFraction => {
                let parts_of_limit = [above, BoundBy::Level, BoundBy::OthersOut].into_iter();
                parts.extend(parts_of_limit.chain(ghost).chain(behind));
            }
            BoundBy::Mark => parts.extend([BoundBy::OthersOut].into_iter().chain(ghost)),
            _ => {}
        }
        if by == BoundBy::Level && self.holders.shares().policy() == SharePolicy::ProportionalShare {
            // Who wants more has more.
            parts.insert(BoundBy::Wants);
        }
        if self.is_frozen() {
            parts.insert(BoundBy::Override);
        }
        if self.is_frozen() && self.ledger.in_debt() {
            // When the debt is over it keeps what it has.
            parts.extend([above, BoundBy::Level, BoundBy::OthersOut].into_iter().chain(ghost));
        }
        parts.remove(&by);
        parts.into_iter().collect()
    }

    /// Whether greater priorities than that of a demand have a part of what there is.
    fn is_behind(&self, demand: &Demand) -> bool {
        let shares = self.holders.shares();
        shares.capacity_for(demand.priority) < shares.capacity()
    }

    /// The division of it.
    pub(crate) fn division(&self) -> Division {
        let (shares, ledger) = (self.holders.shares(), &self.ledger);
        let configured = self.template().map(|template| template.capacity.as_f64());
        let limited = |amount: Amount| ledger.limit().map(|_| amount.as_f64());
        let band = |priority| BandLevel {
            priority,
            left: shares.capacity_for(priority),
            level: self.level(priority).filter(|level| level.is_finite()),
        };
        Division {
            configured,
            reserved: if self.terms.reserves() { self.terms.reserved().as_f64() } else { 0.0 },
            source: if self.is_leased() { "lease" } else { "template" },
            limit: ledger.limit().map(Amount::as_f64),
            divided: shares.capacity(),
            free: limited(ledger.free()),
            below_mark: ledger.ceiling().map(|_| ledger.headroom().as_f64()),
            excess: ledger.excess().as_f64(),
            bands: shares.priorities().take(Division::MOST_BANDS).map(band).collect(),
        }
    }

    /// The slots of all lives of the clients and nodes of that name.
    pub(crate) fn slots_of(&self, name: &str) -> Vec<Slot> {
        self.lives_of(name).into_iter().map(|life| life.slot).collect()
    }
}

/// Those of one priority together, the greatest first.
pub(super) fn gathered(bands: impl Iterator<Item = BandShare>) -> Vec<BandShare> {
    let mut all: Vec<BandShare> = Vec::new();
    for band in bands {
        match all.iter_mut().find(|known| known.priority == band.priority) {
            Some(known) => {
                known.wants += band.wants;
                known.weight += band.weight;
                known.share += band.share;
            }
            None => all.push(band),
        }
    }
    all.sort_by_key(|band| std::cmp::Reverse(band.priority));
    all
}

#[cfg(feature = "shell")]
fn name<S: serde::Serializer>(by: &BoundBy, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(by.as_str())
}

#[cfg(feature = "shell")]
fn names<S: serde::Serializer>(all: &[BoundBy], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|by| by.as_str()))
}

#[cfg(test)]
mod tests;
