//! The answer to a report: the share due, as far as the ledger has room, and what goes with it.

use std::time::Duration;

use lessor_algorithms::{Demand, SharePolicy};
use lessor_proto::message::{Before, BoundBy, Grant, Order, Sharing};
use lessor_proto::{Amount, Time, wire};

use super::due::{Due, Offering};
use super::holders::{Child, Demands};
use super::retry::{PROMPT, SOON};
use super::slab::Slot;
use super::streaming::Told;
use super::{CallContext, Resource};
use crate::ledger::{Granted, Offer, Term};
use crate::mutation::Rule;
use crate::repository::SafeCapacity;
use crate::token::{Content, PolledLease};

/// When the holder should come back.
#[derive(Clone, Copy, Debug)]
enum ReturnPace {
    /// As always.
    Usual,
    /// Something waits for it, or it for something.
    Hurry,
    /// When the next turn is taken, in so long.
    Turn(Duration),
}

/// A lease that has been charged, and is to be told.
#[derive(Clone, Copy, Debug)]
struct ChargedLease {
    granted: Granted,
    length: Duration,
    pace: ReturnPace,
}

/// The answer to a report.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) grant: Grant,
    /// When to ask again, if more is due to the holder than there was room for, or soon will be.
    pub(crate) retry: Option<Duration>,
    /// The part of it that a stream remembers.
    pub(super) told: Told,
}

// === impl Resource ===

impl Resource {
    /// Grants what is due to the child at `slot`, counted from its last report; nothing if nothing can be granted: the
    /// report is too old, or the node has no lease of its own.
    pub(super) fn answer(&mut self, now: Time, slot: Slot, cx: CallContext<'_>) -> Option<Reply> {
        self.appraise();
        let target = self.target_bound(now, slot);
        self.answer_with(now, slot, target, cx)
    }

    /// The same with `target` for what is due.
    pub(super) fn answer_with(
        &mut self,
        now: Time,
        slot: Slot,
        target: Due,
        cx: CallContext<'_>,
    ) -> Option<Reply> {
        if self.claims.uses_uncounted(now, slot) {
            return None;
        }
        let length = self.length(now, self.holders.at(slot), cx)?;
        let offering = self.offering(slot, target);
        let Offering { due: Due { amount: target, .. }, most: Due { amount: most, .. } } = offering;
        let config = cx.config;
        if self.claims.is_any_shown() {
            let reachable = self.ledger.reachable(self.holders.at(slot).account(), target.min(most));
            if self.has_more(now, slot, reachable) {
                return None;
            }
            self.claims.match_shown(slot);
        }
        let out_before = self.earlier.out(slot).filter(|&(_, until)| now < until);
        let out_before = out_before.map(|(amount, until)| Before { amount, remaining: until.since(now) });
        let earlier = self.tell_earlier(now, slot, cx);
        let grain = self.grain();
        let child = self.holders.at_mut(slot);
        let (seq, incarnated) = (child.take_seq()?, child.flags.incarnated);
        child.note_answer();
        let counted = if incarnated { length } else { self.terms.legacy.counted(length) };
        let term = Term { basis: child.last.basis, length: counted, drift: config.drift };
        let offer = Offer { target, grain, most, term, seq };
        let granted = self.charge_offer(slot, &offer, cx);
        let bound_by = self.bound_by(slot, &offering, &granted);
        if !incarnated {
            self.check_lent();
        }
        self.keep_free(now, slot, target, granted.amount);
        let short = granted.amount < target && target.saturating_sub(granted.amount) >= grain;
        let turn = self.until_turn(now, slot);
        let pace = match granted.ack_wanted || short {
            true => ReturnPace::Hurry,
            false => turn.map_or(ReturnPace::Usual, ReturnPace::Turn),
        };
        let retry = match short {
            true if self.ledger.lack() > Amount::ZERO => Some(PROMPT),
            true => Some(SOON),
            false if self.changes_kind() => Some(SOON),
            false => turn.filter(|_| self.awaits_turn(slot)).map(|turn| turn.max(SOON)),
        };
        let domains = self.tell_of_domains(slot);
        let mut grant = self.grant(now, slot, ChargedLease { granted, length, pace }, cx);
        (grant.domains, grant.before, grant.earlier) = (domains, out_before, earlier);
        grant.bound_by = Some(bound_by);
        Some(Reply { grant, retry, told: Told { seq, length, at: now, is_all: bound_by == BoundBy::Wants } })
    }

    /// Charges the child at `slot` for as much of an offer as there is room for.
    fn charge_offer(&mut self, slot: Slot, offer: &Offer, cx: CallContext<'_>) -> Granted {
        let is_free = !cx.config.rules.keep(Rule::LoanCharged) && self.lending.loan(slot).is_some();
        let free_from = is_free.then(|| Amount::from_f64(self.holders.at(slot).demands().wants()));
        // What others show is looked at with their report.
        let prolongs = self.may_have_units_out() && self.holders.at(slot).flags.incarnated;
        self.charge(slot, |ledger, account| {
            let granted = ledger.grant(account, offer);
            if let Some(wanted) = free_from {
                ledger.acknowledge(account, offer.seq.into(), wanted);
            }
            if prolongs {
                ledger.prolong(account, offer.term);
            }
            granted
        })
    }

    /// The length of a lease that counts from the last report of `child`; absent if it would be over.
    pub(super) fn length(&self, now: Time, child: &Child, cx: CallContext<'_>) -> Option<Duration> {
        // A shorter one allows no use in a window.
        let full = match child.flags.provisional && self.terms.window.is_none() {
            true => self.terms.lease_length.min(self.terms.refresh_interval * 2),
            false => self.terms.lease_length,
        };
        let longest = cx.longest.of(&self.id);
        let full = full.min(longest);
        if full.is_zero() || !child.flags.incarnated && self.terms.legacy.counted(full) > longest {
            return None;
        }
        let drift = cx.config.drift;
        let length = match cx.config.rules.keep(Rule::NestedEnd) {
            false => full,
            true => self.supply.length(now, child.last.basis, (full, self.terms.lease_step(drift)), drift)?,
        };
        (child.last.basis + length > now).then_some(length)
    }

    fn grant(&self, now: Time, slot: Slot, lease: ChargedLease, cx: CallContext<'_>) -> Grant {
        let ChargedLease { granted, length, pace } = lease;
        let config = cx.config;
        let child = self.holders.at(slot);
        let order = Order { epoch: config.epoch, seq: child.last_seq() };
        let token = match &config.keys {
            _ if !child.flags.incarnated => {
                let lease = PolledLease {
                    life: child.life,
                    order,
                    amount: granted.amount,
                    ends: child.account().last().map_or(Time::ZERO, |last| last.end),
                    expiry: cx.date.expiry(now, length),
                    origin: config.epoch,
                };
                self.poller_token(child.kind, &child.name, lease, config)
            }
            None => Vec::new(),
            Some(keys) => {
                let content = Content { order, amount: granted.amount };
                keys.token(&self.bearer(child, config), content)
            }
        };
        // Our clients are told more exactly: by `ack_wanted` and by when to try again.
        let refresh_interval = match pace {
            ReturnPace::Hurry if !child.flags.incarnated => SOON.min(self.terms.refresh_interval),
            ReturnPace::Turn(turn) if self.pusher.peer(slot).is_none() => {
                turn.min(self.terms.refresh_interval)
            }
            // They go by that alone, and the lease may be cut short by ours.
            _ if !child.flags.incarnated => self.terms.refresh_interval.min((length / 2).max(SOON)),
            _ => self.terms.refresh_interval,
        };
        Grant {
            resource: self.id.clone(),
            capacity: granted.amount,
            length,
            refresh_interval,
            order: Some(order),
            basis: child.report_id(),
            token,
            ack_wanted: granted.ack_wanted,
            safe_leased: self.terms.reserves(),
            learning: self.says_learning(now),
            learning_left: self.learning_left(now),
            safe_capacity: self.advice(slot),
            burst: self.terms.told_burst(),
            due: self.unit_due(slot, granted.amount),
            window: self.terms.use_window(),
            generation: Some(self.generation()),
            sharing: Some(self.sharing()),
            domains: None,
            before: None,
            earlier: None,
            bound_by: None,
            unenforced: self.lets_pass(slot),
            beside: self.tells_beside(slot),
        }
    }

    /// The amount that is due to the child at `slot`, with its loan.
    pub(super) fn target(&self, now: Time, slot: Slot) -> Amount {
        self.target_bound(now, slot).amount
    }

    /// The amount that is due to the child at `slot`, whatever is lent.
    pub(super) fn due(&self, now: Time, slot: Slot) -> Amount {
        self.due_bound(now, slot).amount
    }

    /// Nothing is granted in fractions of this.
    pub(super) fn grain(&self) -> Amount {
        if self.divides_parts() { Amount::from_micros(1) } else { self.terms.grain() }
    }

    /// Whether parts of a domain's lease are divided: a rule taken out.
    pub(super) fn divides_parts(&self) -> bool {
        self.terms.part.is_some() && !self.ledger.rules().keep(Rule::PartsWhole)
    }

    /// The last grant of the child on its stream if that is as good as `target`, and else `target`: nobody has to
    /// hear of a rounding.
    pub(super) fn steady(&self, slot: Slot, target: Amount) -> Amount {
        let last = self.holders.at(slot).account().last().map(|last| last.amount);
        let told = self.pusher.listeners().told(slot).is_some();
        last.filter(|&last| told && !self.differs(last, target)).unwrap_or(target)
    }

    /// By the policy.
    pub(super) fn share(&self, demands: &Demands) -> f64 {
        self.share_by(&mut None, demands)
    }

    /// The same. The level that was found last, and its priority, are kept in `level`: it is found once for all demands of
    /// that priority that come one after the other, as long as nothing changes.
    pub(super) fn share_by(&self, level: &mut Option<(i64, f64)>, demands: &Demands) -> f64 {
        demands.sum(|demand| self.share_of_level(level, &demand))
    }

    /// That of one demand.
    pub(super) fn share_of(&self, demand: &Demand) -> f64 {
        self.share_of_level(&mut None, demand)
    }

    fn share_of_level(&self, level: &mut Option<(i64, f64)>, demand: &Demand) -> f64 {
        if level.is_none_or(|(priority, _)| priority != demand.priority) {
            *level = self.level(demand.priority).map(|level| (demand.priority, level));
        }
        match *level {
            Some((_, level)) => demand.wants.min(level * f64::from(demand.weight)),
            None => self.holders.shares().share(demand),
        }
    }

    /// The amount that the child at `slot` is told to fall back to, in units. Where something is reserved that is a
    /// lease of its own, and those who know of it are told how much to ask for, if that is limited.
    fn advice(&self, slot: Slot) -> Option<f64> {
        let child = self.holders.at(slot);
        let floor = match self.terms.safe_capacity {
            SafeCapacity::Fixed(_) => self.terms.reserves(),
            SafeCapacity::Dynamic | SafeCapacity::Unlimited => false,
        };
        (floor || self.is_advised(child)).then(|| self.safe_capacity())
    }

    /// Whether a child is told to fall back to what nothing is reserved for: our own only if the template says how much that
    /// is; those who draw no incarnation always, as they expect it.
    fn is_advised(&self, child: &Child) -> bool {
        !child.flags.incarnated || self.advises_all()
    }

    /// The number of those who are told so.
    pub(super) fn advised(&self) -> usize {
        match self.advises_all() {
            true => self.holders.children().len(),
            false => self.holders.legacy().count(),
        }
    }

    fn advises_all(&self) -> bool {
        self.terms.safe_capacity != SafeCapacity::Dynamic && !self.terms.reserves()
    }

    /// The amount that clients are told to fall back to, in units: -1 is without limit. It may be used for ever
    /// once they are cut off, and nothing is reserved for it: it lies outside the promise that the sum stays within
    /// the capacity. Where something is reserved for others, it is no more than what one of them would have of
    /// that.
    pub(super) fn safe_capacity(&self) -> f64 {
        match self.terms.safe_capacity {
            SafeCapacity::Dynamic => {
                let whole = if self.terms.reserves() { self.terms.reserved() } else { self.terms.capacity };
                whole.as_f64() / self.holders.shares().weight().max(1) as f64
            }
            SafeCapacity::Unlimited => -1.0,
            SafeCapacity::Fixed(amount) => amount.as_f64(),
        }
    }

    pub(super) fn sharing(&self) -> Sharing {
        let kind = match self.terms.policy {
            SharePolicy::None => wire::algorithm::Kind::NoAlgorithm,
            SharePolicy::Static => wire::algorithm::Kind::Static,
            SharePolicy::ProportionalShare => wire::algorithm::Kind::ProportionalShare,
            SharePolicy::FairShare => wire::algorithm::Kind::FairShare,
        };
        Sharing { kind, lease_length: self.terms.lease_length, refresh_interval: self.terms.refresh_interval }
    }
}
