//! Reports and heartbeats: who sends them, what they promise, and what becomes of those who are not heard of.

use lessor_proto::message::{Ask, Band, BoundBy, HolderKind, Report};
use lessor_proto::{Amount, Epoch, ReportId, Time};

use super::holders::{Child, Claimed, Demands};
use super::identity::{Holder, Life, holder};
use super::slab::Slot;
use super::{CallContext, Resource};
use crate::ledger::Ledger;
use crate::mutation::Rule;
use crate::repository::Template;
use crate::streams::{Peer, Peers};
use crate::token::PollerLife;

// === impl Resource ===

impl Resource {
    /// Takes a report; not that of a leader who has been succeeded.
    pub(crate) fn hear(
        &mut self,
        now: Time,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> Option<Slot> {
        self.holders.touch(now);
        let holder = holder(ask, report, cx.config);
        let before = (self.ledger.total(), self.ledger.ghost());
        let slot = match self.holders.children().locate(holder) {
            Some(slot) => {
                if !self.succeed(now, slot, holder.life, cx) {
                    return None;
                }
                let is_late = self.holders.at(slot).has_heard(ask.report_id);
                self.heard(now, slot, ask, report, cx);
                if !is_late {
                    self.hear_of_units(slot, report);
                }
                if !cx.config.rules.keep(Rule::UnitsToldOnce) {
                    self.hear_of_units(slot, report);
                }
                slot
            }
            None => {
                let slot = self.welcome(now, holder, ask, report, cx);
                self.note_newcomer(slot);
                self.hear_of_units(slot, report);
                slot
            }
        };
        self.hear_of_domains(slot, report);
        if before != (self.ledger.total(), self.ledger.ghost()) {
            self.reshare();
        }
        self.take_step();
        self.holders.schedule(slot, &self.terms);
        self.rank(slot);
        self.note_idler(slot);
        self.take_turns(now);
        Some(slot)
    }

    /// The holder at `slot` may hold this no more: it counts as one that wants nothing of it, and is told so at once, whether
    /// or not anybody else wants it.
    pub(crate) fn revoke(
        &mut self,
        now: Time,
        slot: Slot,
        by: BoundBy,
        cx: CallContext<'_>,
        peers: &mut Peers,
    ) {
        self.holders.touch(now);
        self.lending.set_peak(slot, None);
        self.bar(slot, by, cx);
        self.holders.said_mut().forget(slot);
        if cx.config.rules.keep(Rule::RevokedWantsNothing) {
            self.set_demands(slot, Demands::from_bands(&[Band::NOTHING]));
        }
        self.holders.schedule(slot, &self.terms);
        self.rank(slot);
        self.note_idler(slot);
        self.take_turns(now);
        if !cx.config.rules.keep(Rule::RevokedCharged) {
            self.charge(slot, Ledger::close);
        }
        self.push_at_most(now, slot, Amount::ZERO, cx, peers);
    }

    /// When the holder that listens on `peer` was last heard of.
    pub(crate) fn last_heard(&self, peer: Peer) -> Option<Time> {
        self.listener(peer).map(|slot| self.holders.at(slot).last.basis)
    }

    /// The holder at `slot` said with heartbeat `id`, which came at `at`, that it keeps what it has.
    pub(crate) fn beat(&mut self, at: Time, slot: Slot, id: ReportId) {
        self.holders.touch(at);
        let child = self.holders.at_mut(slot);
        child.hear(at, Some(id), None);
        let is_duplicate = child.flags.go_on();
        self.holders.note_duplicate(is_duplicate);
        let child = self.holders.at(slot);
        if child.is_withdrawn() {
            // It was thought to be succeeded by another life, and lives.
            let demands = child.demands().clone();
            self.set_demands(slot, demands);
            self.rank(slot);
        }
    }

    /// Whether the leader of a node that reports as the child at `slot` is the latest heard of. All of them share one
    /// charge.
    pub(super) fn succeed(&mut self, now: Time, slot: Slot, life: Life<'_>, cx: CallContext<'_>) -> bool {
        let Life::Leader { incarnation, .. } = life else { return true };
        let child = self.holders.at_mut(slot);
        if incarnation > child.life.session {
            let out = child.account().last_end().map(|end| (child.account().charge(), end));
            child.succeed(incarnation);
            self.earlier.succeed(now, slot, out);
            self.pusher.give_up(slot);
            self.lending.forget(slot);
            if !cx.config.rules.keep(Rule::OldLeadersCharged) {
                self.charge(slot, Ledger::close);
            }
        }
        incarnation == self.holders.at(slot).life.session
    }

    /// A report of a known child: credit what it promises, then take its wants.
    pub(super) fn heard(&mut self, now: Time, slot: Slot, ask: &Ask, report: &Report, cx: CallContext<'_>) {
        self.expire(now, slot);
        let is_proven = self.is_proven(slot, ask, report, cx);
        let child = self.holders.at_mut(slot);
        if child.has_heard(ask.report_id) {
            // What it promises may be about grants of a life of the holding that was released since.
            return;
        }
        // It was forgotten, and what came first after that was late: it has adopted more than that one said.
        if is_proven && cx.config.rules.keep(Rule::NumberAhead) {
            child.go_on_after_shown(report, cx.config.epoch);
        }
        let promise = promise(report, child, cx.config.epoch).filter(|_| is_proven);
        // It may have been elsewhere since it was heard here first.
        if let Some(has) = &report.has {
            self.look_at(now, slot, has, cx);
        }
        let child = self.holders.at_mut(slot);
        let is_duplicate = child.flags.go_on();
        self.holders.note_duplicate(is_duplicate);
        if let Some((seq, held)) = promise {
            self.acknowledge(slot, seq, held);
        }
        if !cx.config.rules.keep(Rule::ClaimedOnce)
            && let Some(has) = &report.has
        {
            self.claim(now, slot, has, report.held, cx);
        }
        self.claim_late(now, slot, report, cx);
        self.look_at_use(now, slot, report, cx);
        let shown = report.has.as_ref().map(|has| has.capacity);
        if self.holders.at_mut(slot).hear(now, ask.report_id, shown) {
            self.lending.set_peak(slot, report.peak);
            self.set_demands(slot, demands(ask, report, &self.terms, cx));
            self.note_said(slot, &report.bands);
        }
    }

    /// The first report of a life.
    pub(super) fn welcome(
        &mut self,
        now: Time,
        holder: Holder<'_>,
        ask: &Ask,
        report: &Report,
        cx: CallContext<'_>,
    ) -> Slot {
        self.unanswered(holder, cx).into_iter().for_each(|slot| self.forget(slot));
        let others: Vec<Slot> = self.holders.children().lives(holder).collect();
        for &slot in &others {
            self.holders.at_mut(slot).flags.superseded = true;
            self.holders.schedule(slot, &self.terms);
            if !cx.config.rules.keep(Rule::OldLivesCharged) {
                self.charge(slot, Ledger::close);
            }
        }
        let claimed = self.claimed_lease(now, ask, report, cx);
        let begun = PollerLife { epoch: cx.config.epoch, session: cx.session };
        let life = match holder.life {
            Life::Incarnation(session) | Life::Leader { incarnation: session, .. } => {
                PollerLife { epoch: Epoch::default(), session }
            }
            // Of a server that learns a life is known again when an answer was lost.
            Life::Session(life) if self.is_learning(now) => life,
            _ => claimed.map_or(begun, |(lease, _)| lease.life),
        };
        let mut child = Child::new(now, holder, life, demands(ask, report, &self.terms, cx));
        child.hear(now, ask.report_id, None);
        child.flags.provisional = !others.is_empty();
        // It was forgotten and comes back: what it adopts must be above what it adopted before.
        child.go_on_after_shown(report, cx.config.epoch);
        let (slot, moved) = self.holders.insert(child);
        self.take_up(moved);
        self.note_said(slot, &report.bands);
        if let Life::Leader { line, .. } = holder.life {
            self.holders.note_line(slot, line);
            self.earlier.succeed(now, slot, None);
        }
        self.lending.set_peak(slot, report.peak);
        if let Some(has) = &report.has {
            self.look_at(now, slot, has, cx);
            match claimed {
                Some((lease, amount)) => self.claim_lease(now, slot, &lease, amount, cx),
                None => self.claim(now, slot, has, report.held, cx),
            }
        }
        self.look_at_use(now, slot, report, cx);
        slot
    }

    /// The lives that the next one of `holder` replaces: one that was never answered has nothing to show, so each of its requests
    /// would begin another one.
    pub(super) fn unanswered(&self, holder: Holder<'_>, cx: CallContext<'_>) -> Vec<Slot> {
        let is_one = matches!(holder.life, Life::Session(_) | Life::Unnamed(_) | Life::New);
        if !is_one || !cx.config.rules.keep(Rule::UnansweredReplaced) {
            return Vec::new();
        }
        let lives = self.holders.children().lives(holder);
        lives.filter(|&slot| self.holders.at(slot).is_unanswered()).collect()
    }

    /// The holder at `slot` wants this from here on.
    pub(super) fn set_demands(&mut self, slot: Slot, demands: Demands) {
        let moved = self.holders.change(slot, demands);
        self.take_up(moved);
        if moved.0 && self.claims.deferred(slot).is_some() {
            self.reshare();
        }
    }

    /// A child whose time on the agenda has come.
    pub(super) fn look_after(&mut self, now: Time, slot: Slot) {
        let refresh = self.terms.refresh_interval;
        self.expire(now, slot);
        if self.pusher.pool().has(slot) {
            self.pool_in(slot);
        }
        let child = self.holders.at(slot);
        if child.account().is_empty() && now >= child.forgotten_at(&self.terms) {
            self.forget(slot);
            return;
        }
        if child.flags.is_to_be_withdrawn() && now >= child.last.basis + refresh * 2 {
            self.withdraw(slot);
        }
        self.holders.schedule(slot, &self.terms);
        self.note_idler(slot);
    }

    /// The wants of the child at `slot` do not count until it is heard of again.
    pub(super) fn withdraw(&mut self, slot: Slot) {
        let moved = self.holders.withdraw(slot);
        if moved.0 {
            self.take_up(moved);
            self.pusher.forget_missing(slot);
            self.rank(slot);
        }
    }

    pub(super) fn forget(&mut self, slot: Slot) {
        self.note_leaver(slot);
        self.stop_telling(slot);
        self.lending.forget(slot);
        self.earlier.forget(slot);
        let kept = self.claims.forget(slot);
        self.ledger.give_back(kept);
        self.charge(slot, Ledger::close);
        let moved = self.holders.remove(slot);
        self.take_up(moved);
    }
}

/// The demands that `report` states, as far as they count by `terms`. A peak is no part of them.
pub(super) fn demands(ask: &Ask, report: &Report, terms: &Template, cx: CallContext<'_>) -> Demands {
    if !cx.config.rules.keep(Rule::PeakFromSpare)
        && let ([band], Some(peak)) = (&report.bands[..], report.peak)
    {
        return Demands::from_bands(&[Band { wants: band.wants.max(peak), ..*band }]);
    }
    if ask.kind == HolderKind::Node && !cx.config.rules.keep(Rule::NodesCapped) {
        return Demands::from_bands(&report.bands);
    }
    Demands::from_bands(&terms.capped(&report.bands))
}

/// The promise of a report: a grant, and the most that is used under all grants up to that one.
pub(super) fn promise(report: &Report, child: &Child, epoch: Epoch) -> Option<(u64, Amount)> {
    let has = report.has.as_ref()?;
    let held = report.held.unwrap_or(has.capacity);
    match has.order {
        Some(order) if order.epoch == epoch => Some((child.in_round(order.seq)?, held)),
        // Of an earlier epoch: it keeps to less of what it has claimed.
        Some(order) if order.epoch < epoch && child.claimed != Claimed::Nothing => Some((0, held)),
        Some(_) => None,
        None => Some((child.account().oldest_of(has.capacity)?.into(), held)),
    }
}
