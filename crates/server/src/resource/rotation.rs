//! The units that a holder of a gauge has for good, and those that it takes turns for ([`super::holders::UnitRotation`]); or
//! the parts of a rate that is leased in parts.
//!
//! A look at all seats costs time in proportion to the number of holders, so with many of them changes wait for the next
//! one; until then a newcomer has its whole units only.

use std::time::Duration;

use lessor_algorithms::rotation::parts;
use lessor_proto::{Amount, Time};

use super::holders::{Child, Short, UnitClaim};
use super::retry::SOON;
use super::slab::Slot;
use super::{Reply, Resource};
use crate::mutation::Rule;
use crate::repository::Kind;

/// With so many holders every change is looked at when it happens.
const FEW: usize = 100;
/// The time that each further holder adds between two looks.
const PACE_PER_HOLDER: Duration = Duration::from_micros(1);
/// The distance from a whole number of parts that still counts as whole.
const NEARLY_WHOLE: f64 = 1e-6;
/// Nobody is told to come back sooner for the next turn.
const SOONEST_RETURN: Duration = Duration::from_millis(50);

// === impl Resource ===

impl Resource {
    /// Begins a quantum if it is time, and takes up changes of shares between turns.
    pub(super) fn take_turns(&mut self, now: Time) {
        if self.holders.rotation().wake().is_none_or(|wake| wake > now) {
            return;
        }
        if self.holders.rotation_mut().lapse(now) {
            self.pusher.unsettle();
            if self.holders.rotation().wake().is_none_or(|wake| wake > now) {
                return;
            }
        }
        if self.is_learning(now) {
            return self.holders.rotation_mut().suspend(self.learning.until());
        }
        let mut claims = Vec::with_capacity(self.holders.children().len());
        let mut units = parts(self.in_units(self.holders.shares().capacity())).0;
        let mut level = None;
        for (slot, child) in self.holders.children().iter_slots().filter(|(_, child)| !child.is_withdrawn()) {
            let (whole, fraction) = self.parts_by(&mut level, child);
            units = units.saturating_sub(whole);
            if fraction > 0.0 {
                claims.push(self.claim_of(now, slot, child, whole, fraction));
            }
        }
        let many = self.holders.children().len().saturating_sub(FEW);
        let next_look = now + PACE_PER_HOLDER * u32::try_from(many).unwrap_or(u32::MAX);
        let units = usize::try_from(units).unwrap_or(usize::MAX);
        let held = claims.iter().filter(|claim| claim.holds).count();
        if held >= units && self.terms.part.is_some() && !self.ledger.rules().keep(Rule::PartsInTurn) {
            claims.retain(|claim| claim.holds);
        }
        let has_moved = self.holders.rotation_mut().look(now, &claims, units, next_look);
        if has_moved && self.ledger.rules().keep(Rule::TurnsCorrected) {
            self.holders.rotation_mut().correct(now);
        }
        self.pusher.unsettle_if(has_moved);
    }

    /// The amount due to the holder at `slot` of a gauge that is shared.
    pub(super) fn whole_units(&self, slot: Slot) -> Amount {
        let (whole, fraction) = self.parts(self.holders.at(slot));
        let extra = fraction > 0.0 && self.holders.rotation().has_extra(slot);
        self.units(whole.saturating_add(extra.into()))
    }

    /// The most that the holder at `slot` may be granted, lest it takes what is kept free for others: for all that it
    /// gets those of a higher priority go first, and for its turn those of its own that miss what is theirs for good, and
    /// those who poll and have waited for theirs since before.
    pub(super) fn beside_reserve(&self, slot: Slot) -> Amount {
        if !self.holders.rotation().keeps_free() {
            return Amount::MAX;
        }
        let child = self.holders.at(slot);
        let (charged, free) = (child.account().charge(), self.ledger.free());
        let priority = least_priority(child);
        let beside = |or_same| {
            let kept = self.holders.rotation().kept_free(slot, priority, or_same);
            charged.saturating_add(free.saturating_sub(kept))
        };
        let whole = self.units(self.parts(child).0);
        let waiting = self.units(self.holders.rotation().waiting_before(slot));
        beside(false).min(beside(true).saturating_sub(waiting).max(charged.max(whole)))
    }

    /// Keeps free what the holder at `slot`, which was just granted `amount` of `target`, is short of for good, until it
    /// should have asked again.
    pub(super) fn keep_free(&mut self, now: Time, slot: Slot, target: Amount, amount: Amount) {
        if amount >= target {
            self.holders.rotation_mut().note_served(slot);
        }
        if !self.terms.is_whole() || !self.ledger.rules().keep(Rule::KeptFree) {
            return;
        }
        let child = self.holders.at(slot);
        let missing = match amount < target {
            true => target.min(self.units(self.parts(child).0)).saturating_sub(amount),
            false => Amount::ZERO,
        };
        let until = now + self.terms.refresh_interval.max(SOON) * 2;
        let short = Short { priority: least_priority(child), missing, until };
        self.holders.rotation_mut().keep_free(slot, Some(short));
    }

    /// The given number of units, as an amount.
    fn units(&self, units: u64) -> Amount {
        Amount::from_micros(self.terms.grain().as_micros().saturating_mul(units))
    }

    /// An amount as a number of units.
    fn in_units(&self, amount: f64) -> f64 {
        amount / self.terms.grain().as_f64()
    }

    /// When the holder at `slot` should ask again if that is about the next turn: it has a unit until then, or waits for
    /// one.
    pub(super) fn until_turn(&self, now: Time, slot: Slot) -> Option<Duration> {
        let next = self.holders.rotation().next()?;
        let (_, fraction) = self.parts(self.holders.at(slot));
        (fraction > 0.0).then(|| next.since(now).max(SOONEST_RETURN))
    }

    /// Whether the holder at `slot` waits for its turn.
    pub(super) fn awaits_turn(&self, slot: Slot) -> bool {
        !self.holders.rotation().has_extra(slot) && self.parts(self.holders.at(slot)).1 > 0.0
    }

    /// Notes when the holder at `slot`, which asked at `now` and is answered with `reply`, is to ask again.
    pub(super) fn note_poll(&mut self, now: Time, slot: Slot, reply: &Reply) {
        if !self.terms.is_whole() || self.pusher.peer(slot).is_some() {
            return;
        }
        let refresh = reply.grant.refresh_interval;
        let told = match self.holders.at(slot).flags.incarnated {
            true => reply.retry.map_or(refresh, |retry| retry.min(refresh)),
            // They know whole seconds only.
            false => Duration::from_secs(refresh.as_secs().max(1)),
        };
        self.holders.rotation_mut().note_poll(now, slot, told);
    }

    /// The units that a holder has for good, and the fraction of one more. Of the last one that is wanted nobody has a
    /// fraction only: a part of a unit is of no use.
    fn parts(&self, child: &Child) -> (u64, f64) {
        self.parts_by(&mut None, child)
    }

    /// The same with the level that was found last: see [`Resource::share_by`].
    fn parts_by(&self, level: &mut Option<(i64, f64)>, child: &Child) -> (u64, f64) {
        if child.is_withdrawn() {
            return (0, 0.0);
        }
        let (whole, fraction) = parts(self.in_units(self.share_by(level, child.demands())));
        let wants = self.in_units(child.demands().wants()).min(u64::MAX as f64);
        // Who wants a part of a rate wants what that brings, as little as it may be.
        let wants = match self.terms.kind {
            Kind::Gauge => wants as u64,
            Kind::Rate => (wants - NEARLY_WHOLE).ceil() as u64,
        };
        if whole >= wants { (wants, 0.0) } else { (whole, fraction) }
    }

    fn claim_of(&self, now: Time, slot: Slot, child: &Child, whole: u64, fraction: f64) -> UnitClaim {
        let began = self.holders.rotation().began();
        let listens = self.pusher.peer(slot).is_some();
        UnitClaim {
            slot,
            fraction,
            holds: child.account().last().is_some_and(|last| last.amount > self.units(whole)),
            awake: began.is_none_or(|began| child.last.basis >= began) || listens,
            polls: !listens && self.ledger.rules().keep(Rule::TurnsWait),
            asks: child.last.basis == now,
        }
    }
}

/// The least priority of what the holder wants: what it misses may be of that.
fn least_priority(child: &Child) -> i64 {
    child.demands().iter().map(|demand| demand.priority).min().unwrap_or(i64::MIN)
}
