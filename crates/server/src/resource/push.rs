//! Grants that are pushed to those who listen, without their asking: smaller ones to those who hold more than their
//! share, larger ones to those who can have more as soon as there is room.
//!
//! Whatever moves a share or frees capacity leaves the resource *unsettled*. It is settled at the next look at it, which
//! comes at once, but not sooner after the last one than that one was worth: a resource with many listeners is looked at
//! less often, and one look tells no more than a slice of them before others are heard. A share that has moved by less than
//! the *tolerance* is not worth a message by itself. It is told when that is needed for those who are short
//! ([`super::feeding`]), or with a heartbeat; where a hundred listen, with one that finds it off by a quarter of that. The
//! tolerance grows with the number of listeners, one part in 100,000 of the share for each, as does what it costs to tell
//! them all: from a thousand on it is one per cent. A listener whose stream takes nothing is not looked at before it does.

use std::time::Duration;

use lessor_algorithms::SharePolicy;
use lessor_proto::message::{BoundBy, Grant, Has, HolderKind, Order};
use lessor_proto::{Amount, Epoch, Time};

use super::calendar::earliest;
use super::due::Due;
use super::feeding::{SLICE, Turn};
use super::holders::Demands;
use super::slab::Slot;
use super::streaming::{Rank, Told};
use super::{CallContext, Resource};
use crate::mutation::Rule;
use crate::streams::{Peer, Peers};

/// Those without a rank who are looked at one by one in one look.
const OTHERS: usize = 1_024;

/// By how much a share may move untold, as a fraction of it, for each listener, and at most.
const TOLERANCE_PER_LISTENER: f64 = 1e-5;
const MOST_TOLERANCE: f64 = 0.01;
/// From this tolerance on, which is that of a hundred listeners, a heartbeat keeps what is nearly right.
const LEAST_KEPT: f64 = 1e-3;

/// For so long a grant and a report may have crossed.
const CROSSING: Duration = Duration::from_secs(1);

/// The outcome of a heartbeat for one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Renewal {
    /// The last grant lasts longer.
    Extended,
    /// It was granted anew.
    Granted,
    /// It lasts as long as it did.
    None,
}

// === impl Resource ===

impl Resource {
    /// When it has to be looked at, if nothing else happens: to settle it, or because something ends.
    pub(crate) fn wake(&self) -> Option<Time> {
        let ghost = self.ledger.ghost_parts().next_end();
        let (ends, learned) = match self.is_watched() {
            true => (self.holders.children().next_deadline(), self.learning.untold()),
            false => (None, None),
        };
        let turn = self.holders.rotation().wake();
        earliest([ghost, ends, learned, turn, self.supply.due_above(), self.pusher.next_deadline()])
    }

    /// Whether somebody has to be told when something ends.
    fn is_watched(&self) -> bool {
        self.pusher.has_listeners() || self.is_leased()
    }

    /// The holder at `slot` listens on `peer`, and shows the lease that it has. If that is not what it was told long ago it
    /// has not adopted that, and is told again.
    pub(crate) fn attach(&mut self, now: Time, slot: Slot, peer: Peer, has: Option<&Has>, epoch: Epoch) {
        self.pusher.attach(slot, peer);
        if let Some(told) = self.pusher.listeners().told(slot)
            && now >= told.at + CROSSING
            && has.and_then(|has| has.order)
                < Some(Order { epoch, seq: self.holders.at(slot).on_the_wire(told.seq) })
        {
            self.pusher.owe(slot);
        }
        self.owe_domains(slot);
        self.rank(slot);
    }

    /// Nobody listens on `peer` any more.
    pub(crate) fn detach(&mut self, peer: Peer) {
        if let Some(slot) = self.pusher.listeners().slot(peer) {
            self.stop_telling(slot);
        }
    }

    /// The holder at `slot` does not listen any more.
    pub(super) fn stop_telling(&mut self, slot: Slot) {
        let are_shared = self.shared_policies().is_some();
        self.pusher.detach(slot, are_shared);
        self.enlist(slot);
    }

    /// Tells the holder at `slot`, which has just reported or takes something again, what is due to it, if that is news.
    pub(crate) fn respond(&mut self, now: Time, slot: Slot, cx: CallContext<'_>, peers: &mut Peers) {
        self.pusher.unpark(slot);
        self.appraise();
        self.note_shortage(now, slot);
        let (holds, target) = (self.holds(slot), self.target(now, slot));
        let most = holds.saturating_add(self.free_beside(slot));
        let news = match self.pusher.listeners().is_owed(slot) {
            true => true,
            false if target < holds => self.is_worth_telling(holds, target),
            // What is free is for those who are short.
            false if !self.pusher.shortage().is_empty() && !self.pusher.shortage().has(slot) => false,
            false => {
                let reachable = self.reachable(slot, target.min(most));
                self.is_worth_telling(holds, reachable)
            }
        };
        if news {
            if self.push_at_most(now, slot, most, cx, peers) && target < holds {
                self.note_recall(now, slot);
            }
            self.pusher.unsettle_if(self.pusher.shortage().has(slot));
        }
        self.pusher.unsettle_if(self.needs_loans_back());
    }

    /// Tells those to whom that is worth it, until so many are told that others are to be heard first.
    pub(crate) fn settle(&mut self, now: Time, cx: CallContext<'_>, peers: &mut Peers) {
        self.pusher.begin_look();
        self.take_step();
        let mut told = self.tell_owed(now, SLICE, cx, peers);
        self.appraise();
        let others = self.pusher.listeners().others(OTHERS);
        told += self.recall_loans(now, cx, peers) as usize;
        for slot in self.too_full(now, &others) {
            if told >= SLICE {
                break;
            }
            if self.push(now, slot, cx, peers) {
                told += 1;
                self.note_recall(now, slot);
            }
        }
        let fed = self.feed_short(now, &others, SLICE.saturating_sub(told), cx, peers);
        told += fed.told;
        told += self.feed_others(now, &others, SLICE.saturating_sub(told), cx, peers);
        told += self.feed_ranked(now, SLICE.saturating_sub(told), cx, peers);
        self.pusher.end_look(now, Turn { told, tries: fed.tries }, &others);
    }

    /// Grants what is due to those who have not been told anything yet, no more than `most` of them.
    fn tell_owed(&mut self, now: Time, most: usize, cx: CallContext<'_>, peers: &mut Peers) -> usize {
        let mut told = 0;
        for slot in self.pusher.listeners().owed(most) {
            match self.push(now, slot, cx, peers) {
                true => told += 1,
                // There is nothing to grant from, or it has been silent for too long.
                false => self.pusher.stall(slot),
            }
        }
        told
    }

    /// The holder that listens on `peer` wants to keep what it has: `basis` is when it said so.
    pub(crate) fn renew(&mut self, now: Time, basis: Time, cx: CallContext<'_>, slot: Slot) -> Renewed {
        if let Some(length) = self.extendable(now, slot, cx) {
            let term = crate::ledger::Term { basis, length, drift: cx.config.drift };
            let prolongs = self.may_have_units_out();
            self.charge(slot, |ledger, account| match prolongs {
                true => ledger.prolong(account, term),
                false => ledger.extend(account, term),
            });
            return Renewed { renewal: Renewal::Extended, grant: None };
        }
        let granted = self.grant_anew(now, slot, cx);
        self.pusher.unsettle_if(self.needs_loans_back());
        match granted {
            Some(grant) => Renewed { renewal: Renewal::Granted, grant: Some(grant) },
            None => Renewed { renewal: Renewal::None, grant: None },
        }
    }

    /// Grants the holder at `slot` the amount due to it, for its stream; nothing if nothing can be granted.
    pub(crate) fn grant_anew(&mut self, now: Time, slot: Slot, cx: CallContext<'_>) -> Option<Grant> {
        self.appraise();
        let due = self.target_bound(now, slot);
        self.tell(now, slot, due, cx)
    }

    /// Whether the holder at `slot` has no lease that has not ended, or one of nothing.
    pub(crate) fn is_over(&self, slot: Slot) -> bool {
        self.holders.at(slot).account().charge() == Amount::ZERO
    }

    /// When what the holder at `slot` was told on its stream is to be renewed; if it was told nothing, when it is to be heard of.
    pub(crate) fn renew_by(&self, slot: Slot, cx: CallContext<'_>) -> Time {
        let length = self.pusher.listeners().told(slot).map_or(self.terms.lease_length, |told| told.length);
        self.holders.at(slot).last.basis + self.terms.renewal_interval(length, cx.config.drift)
    }

    /// Where the holder at `slot` stands among those who listen.
    pub(super) fn rank(&mut self, slot: Slot) {
        // With nobody to stand among, as where all ask without a stream.
        if !self.pusher.has_listeners() && !self.lending.has_borrowers() {
            return;
        }
        self.enlist(slot);
        if self.pusher.peer(slot).is_none() {
            return;
        }
        self.pool_in(slot);
        let coming = self.holders.at(slot).account().charge().saturating_sub(self.holds(slot));
        let child = self.holders.at(slot);
        let ranked = self.holders.shares().policy() == SharePolicy::FairShare
            && !self.terms.is_whole()
            && child.kind == HolderKind::Client
            && !child.is_withdrawn()
            && !self.changes_kind()
            && self.claims.deferred(slot).is_none();
        let rank = match child.demands() {
            &Demands::One { wants, weight, priority } if ranked => Some(Rank {
                priority: priority.into(),
                weight: weight.get(),
                // A loan is recalled when it is needed, and not because it is more than is wanted.
                wants: Amount::from_f64(wants).saturating_add(self.lending.loan(slot).unwrap_or_default()),
                holds: self.holds(slot),
            }),
            _ => None,
        };
        self.pusher.rank(slot, rank, coming);
    }

    /// The amount that the holder at `slot` was granted last, or less if it has promised less since.
    pub(super) fn holds(&self, slot: Slot) -> Amount {
        self.holders.at(slot).account().last().map_or(Amount::ZERO, |entry| entry.amount)
    }

    /// Grants what is due to the holder at `slot`, and gives it to its stream; unless that takes nothing, and will be
    /// asked again when it does.
    pub(crate) fn push(&mut self, now: Time, slot: Slot, cx: CallContext<'_>, peers: &mut Peers) -> bool {
        self.appraise();
        self.push_at_most(now, slot, Amount::MAX, cx, peers)
    }

    /// The same, of what is due no more than `most`.
    pub(super) fn push_at_most(
        &mut self,
        now: Time,
        slot: Slot,
        most: Amount,
        cx: CallContext<'_>,
        peers: &mut Peers,
    ) -> bool {
        let Some(peer) = self.pusher.peer(slot) else { return false };
        if !peers.takes(peer, &self.id) {
            self.pusher.park(slot);
            return false;
        }
        let due = self.target_bound(now, slot).at_most(most, BoundBy::OthersOut);
        let Some(grant) = self.tell(now, slot, due, cx) else { return false };
        peers.grant(peer, grant, self.renew_by(slot, cx));
        true
    }

    /// The grant of `due` that the holder at `slot` is told on its stream; nothing if nothing can be granted, or it is left alone.
    fn tell(&mut self, now: Time, slot: Slot, due: Due, cx: CallContext<'_>) -> Option<Grant> {
        if self.is_left_alone(now, slot, due.amount) {
            return None;
        }
        let reply = self.answer_with(now, slot, due, cx)?;
        self.note(slot, reply.told);
        Some(reply.grant)
    }

    /// Whether the holder at `slot`, to which `due` is due, keeps what it has for now. In a debt others may have been granted
    /// more since the cut than is due to them by now: as soon as they say that they keep to that, there is room for this one.
    /// It would be told of less than its share before, or of nothing. It waits no longer than for half of its lease.
    fn is_left_alone(&self, now: Time, slot: Slot, due: Amount) -> bool {
        let account = self.holders.at(slot).account();
        let Some(last) = account.last().filter(|_| self.ledger.in_debt()) else { return false };
        self.ledger.beside_granted(account) < due.min(last.amount)
            && now + self.terms.lease_length / 2 < last.end
            && !self.pusher.listeners().is_owed(slot)
    }

    fn note(&mut self, slot: Slot, told: Told) {
        self.pusher.tell(slot, told);
        self.look_for_shortage(told.at, slot);
        self.rank(slot);
        self.holders.schedule(slot, &self.terms);
    }

    /// The time for which the last grant would last from the last report on, if there is nothing to change about
    /// it.
    fn extendable(&mut self, now: Time, slot: Slot, cx: CallContext<'_>) -> Option<Duration> {
        if self.claims.uses_uncounted(now, slot) {
            return None;
        }
        let told = self.pusher.listeners().told(slot)?;
        let last = *self.holders.at(slot).account().last()?;
        let settled = !self.ledger.in_debt() || !cx.config.rules.keep(Rule::RenewAfterDebt);
        let length = self.length(now, self.holders.at(slot), cx)?;
        let same = told.seq == last.seq && told.length == length && last.end > now;
        self.appraise();
        let due = self.target_bound(now, slot);
        let target = self.reachable(slot, due.amount);
        // Who was told that it has all it wants, and wants more since, is told what binds that; who is due more, with that.
        let is_said = !told.is_all || due.by == BoundBy::Wants || !self.is_near(last.amount, due.amount);
        (settled && is_said && same && self.is_near(last.amount, target)).then_some(length)
    }

    /// As much of `target` as there is room for beside what is kept free for others.
    pub(super) fn reachable(&mut self, slot: Slot, target: Amount) -> Amount {
        let target = target.min(self.beside_reserve(slot));
        self.ledger.reachable(self.holders.at(slot).account(), target)
    }

    /// Of those without a rank, the ones who hold more than their share, as far as that is worth telling.
    fn too_full(&self, now: Time, others: &[Slot]) -> Vec<Slot> {
        let is_full = |&slot: &Slot| {
            let (holds, target) = (self.holds(slot), self.target(now, slot));
            target < holds && self.is_worth_telling(holds, target)
        };
        others.iter().copied().filter(is_full).collect()
    }

    /// Raises those without a rank, the hungriest first.
    fn feed_others(
        &mut self,
        now: Time,
        others: &[Slot],
        most: usize,
        cx: CallContext<'_>,
        peers: &mut Peers,
    ) -> usize {
        let mut hungry: Vec<(f64, Slot)> = Vec::new();
        for &slot in others {
            let (holds, due) = (self.holds(slot), self.due(now, slot));
            if due > holds {
                hungry.push((holds.as_f64() / due.as_f64(), slot));
            }
        }
        hungry.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut told = 0;
        for (_, slot) in hungry {
            if told >= most {
                break;
            }
            let Some(limit) = self.most_beside_line(slot) else { continue };
            let target = self.target(now, slot);
            let reachable = self.reachable(slot, target.min(limit));
            if reachable > self.holds(slot) && self.is_worth_telling(self.holds(slot), reachable) {
                told += usize::from(self.push_at_most(now, slot, limit, cx, peers));
            }
        }
        told
    }

    /// Raises clients, those of the greatest priority first and of these the hungriest.
    fn feed_ranked(&mut self, now: Time, most: usize, cx: CallContext<'_>, peers: &mut Peers) -> usize {
        let mut told = 0;
        for priority in self.pusher.listeners().priorities() {
            let level = self.level(priority).unwrap_or(f64::INFINITY) * (1.0 - self.tolerance());
            let mut last = None;
            while let Some(hungry) = self.pusher.listeners().next_below(priority, level, last) {
                last = Some(hungry);
                let (slot, holds) = (hungry.slot(), self.holds(hungry.slot()));
                // What is free is for it, and not for those behind it.
                let Some(limit) = self.most_beside_line(slot) else { return told };
                let target = self.target(now, slot);
                let reachable = self.reachable(slot, target.min(limit));
                if self.ledger.headroom() == Amount::ZERO || told >= most {
                    return told;
                }
                if reachable > holds && self.is_worth_telling(holds, reachable) {
                    told += usize::from(self.push_at_most(now, slot, limit, cx, peers));
                } else if self.is_worth_telling(holds, target) {
                    // What is left is too little for the hungriest, and so for all.
                    return told;
                }
            }
        }
        told
    }

    /// Whether a heartbeat keeps a grant of `amount` where `target` is due. A few listeners are told exactly.
    fn is_near(&self, amount: Amount, target: Amount) -> bool {
        let moved = amount.max(target).saturating_sub(amount.min(target));
        let tolerance =
            Some(self.tolerance()).filter(|&tolerance| tolerance >= LEAST_KEPT && !self.terms.is_whole());
        let is_little = |tolerance: f64| moved.as_f64() <= target.as_f64() * tolerance / 4.0;
        !self.differs(amount, target) || tolerance.is_some_and(is_little)
    }

    pub(super) fn tolerance(&self) -> f64 {
        (self.pusher.listeners().len() as f64 * TOLERANCE_PER_LISTENER).min(MOST_TOLERANCE)
    }

    /// Whether a holder of `holds` should hear of `target` at once.
    pub(super) fn is_worth_telling(&self, holds: Amount, target: Amount) -> bool {
        let moved = holds.as_f64() - target.as_f64();
        self.differs(holds, target) && moved.abs() >= holds.max(target).as_f64() * self.tolerance()
    }

    /// Whether two amounts are not the same grant. What is out of another kind is counted in other grains.
    pub(super) fn differs(&self, one: Amount, other: Amount) -> bool {
        let moved = one.max(other).saturating_sub(one.min(other));
        let grain = if self.changes_kind() { Amount::from_micros(1) } else { self.terms.grain() };
        moved >= grain && moved.as_micros() > one.max(other).as_micros() / 10_000_000
    }
}

/// The outcome of a heartbeat for one resource, and the grant to be sent if it is a new one.
#[derive(Debug)]
pub(crate) struct Renewed {
    pub(crate) renewal: Renewal,
    pub(crate) grant: Option<Grant>,
}
