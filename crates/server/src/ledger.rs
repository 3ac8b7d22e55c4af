//! Charges: who may hold how much until when, and the sum of it.
//!
//! A grantor counts for every holder the *largest* grant that it has sent and that is neither superseded by a report nor
//! run out on its own clock. An increase counts at once; a decrease counts when the holder has said that it keeps to it,
//! or when the larger grant has ended. That is the whole difference to counting what was decided last, and it is what
//! makes the sum of what holders believe stay within the limit whatever is lost, late or dead.
//!
//! When the limit is cut below what is out the ledger is in *debt*: until the sum fits again nobody grows, and the grants
//! made since the cut must fit the limit by themselves, or renewals at the old amounts would never let it fit.
//!
//! So it is when a holder shows a grantor that learns more than there is room for: the limit was cut while nobody
//! granted. The amount that it shows is in use until it says otherwise, and counts in full; what others were granted
//! goes on counting as granted since the cut, so that nobody takes it from them by what he shows.
//!
//! Capacity that may be out under earlier leaders is a *ghost*: a charge without a holder. It counts until the last of
//! those leases has certainly ended, and holders who show what they have claim their part of it.
//!
//! Where there are marks the sum stays within the *ceiling* as well: what a successor would find written down. So does what of
//! it outlasts the moment by which the record says that a part of the ghost is over. It does not
//! say what is due to whom, only how much of it can be granted before a larger mark is written.
//!
//! Amounts are integers, and the sum is kept in passing; [`Ledger::total`] is what [`Account::charge`] sums up to, and
//! the ghost.

mod account;
mod ceiling;
mod debt;
mod ghost;

use std::time::Duration;

use lessor_proto::{Amount, Drift, Time};

pub use account::{Account, Entry};
pub use ceiling::Ceiling;
pub use debt::Cut;
use debt::Debt;
pub use ghost::{Ghost, GhostOrigin, Part};

use crate::mutation::{Rule, Rules};

/// The sum of all charges of one resource against its limit.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// The limit of the sum; absent for resources whose sum is not limited.
    limit: Option<Amount>,
    /// In millionths.
    total: u128,
    /// The cuts of the limit below what was out. Capacity from before the start is from before all of them.
    debt: Debt,
    /// The capacity that may be out under earlier leaders to holders that are not known; part of the sum.
    ghost: Ghost,
    /// The limit of the sum before a larger mark is written; absent where there are no marks.
    ceiling: Option<Ceiling>,
    /// The most by which anything was cut because of that.
    lack: Amount,
    /// Grants that ask for something back.
    recalls: u64,
    rules: Rules,
}

/// The amount that a holder should get, and how it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The share due.
    pub target: Amount,
    /// Nothing may be granted in fractions of this: a unit for gauges, a millionth for rates.
    pub grain: Amount,
    /// No more than this, whatever there is room for.
    pub most: Amount,
    /// The term for which it counts.
    pub term: Term,
    /// The number of the grant.
    pub seq: u32,
}

/// The time for which a grant lasts, for the two who count.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// When the report was received on which the end of the grant is counted.
    pub basis: Time,
    /// The time for which the holder may use it, counted from when it sent that report.
    pub length: Duration,
    /// The bound on the error of clocks.
    pub drift: Drift,
}

/// The grant that was written into the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// The amount: the target, or as much of it as there is room for.
    pub amount: Amount,
    /// The holder is still charged for more than this until it reports: it should do so at once.
    pub ack_wanted: bool,
    /// The bound that left too little room; absent: all that was offered was granted.
    pub bound: Option<RoomBound>,
}

/// The bound that leaves too little room for a grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoomBound {
    /// More is out than the limit since it was cut, and nobody grows.
    Debt,
    /// The ceiling: a larger mark has to be written first.
    Ceiling,
    /// The charges of others.
    Others,
    /// The ghost, and no holder beside it.
    Ghost,
    /// The limit by itself.
    Limit,
}

/// The number that what holders have from before the start bears: it is from before all cuts.
const BEFORE_START: u32 = 0;

// === impl Ledger ===

impl Ledger {
    /// A ledger in which nothing is out.
    #[must_use]
    pub fn new(limit: Option<Amount>, rules: Rules) -> Ledger {
        Ledger {
            limit,
            total: 0,
            debt: Debt::none(),
            ghost: Ghost::default(),
            ceiling: None,
            lack: Amount::ZERO,
            recalls: 0,
            rules,
        }
    }

    /// The cuts of a debt, oldest first and each to less than the one before; none without a debt.
    #[must_use]
    pub fn cuts(&self) -> &[Cut] {
        self.debt.cuts()
    }

    /// The sum that grants can still reach: the limit without the ghost.
    #[must_use]
    pub fn shareable(&self) -> Option<Amount> {
        self.limit.map(|limit| limit.saturating_sub(self.ghost()))
    }

    /// The rules that it keeps.
    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    /// The limit of the sum.
    #[must_use]
    pub fn limit(&self) -> Option<Amount> {
        self.limit
    }

    /// Changes the limit. Below what is out it brings debt. A further cut within a debt does not begin it anew: what was
    /// granted since the first one goes on counting against that, or the two together could pass either limit.
    pub fn set_limit(&mut self, limit: Option<Amount>) {
        self.limit = limit;
        match limit.filter(|&limit| self.total > micros(limit)) {
            Some(limit) => self.debt.cut(limit),
            None => self.debt.end(),
        }
    }

    /// The sum of all charges, in millionths: more than an [`Amount`] holds when the sum is not limited.
    #[must_use]
    pub fn total(&self) -> u128 {
        self.total
    }

    /// The sum without the ghost: what is charged to holders, in millionths.
    #[must_use]
    pub fn lent(&self) -> u128 {
        self.total - micros(self.ghost())
    }

    /// Whether more is out than the limit since it was cut.
    #[must_use]
    pub fn in_debt(&self) -> bool {
        self.debt.is_open()
    }

    /// By how much the sum passes the limit without a cut that explains it: nothing, always.
    #[must_use]
    pub fn overcommitment(&self) -> Amount {
        match self.limit {
            Some(limit) if !self.in_debt() => amount(self.total.saturating_sub(micros(limit))),
            _ => Amount::ZERO,
        }
    }

    /// The number of grants that were smaller than what their holder was charged for, and so asked it to
    /// acknowledge that.
    #[must_use]
    pub fn recalls(&self) -> u64 {
        self.recalls
    }

    /// The amount that is free to be handed out.
    #[must_use]
    pub fn headroom(&self) -> Amount {
        self.free().min(self.below_ceiling())
    }

    /// As much of `target` as there is room for. Remembers what there is no room for because of the ceiling.
    pub fn reachable(&mut self, account: &Account, target: Amount) -> Amount {
        let (charged, free) = (account.charge(), self.free());
        self.miss(target.saturating_sub(charged).min(free));
        target.min(charged.saturating_add(self.headroom()))
    }

    /// By how much the sum passes the limit, whether or not a cut explains it.
    #[must_use]
    pub fn excess(&self) -> Amount {
        self.limit.map_or(Amount::ZERO, |limit| amount(self.total.saturating_sub(micros(limit))))
    }

    /// The amount that is free within the limit.
    #[must_use]
    pub fn free(&self) -> Amount {
        match self.limit {
            Some(limit) => amount(micros(limit).saturating_sub(self.total)),
            None => Amount::MAX,
        }
    }

    /// Forgets the grants of `account` that have ended.
    pub fn expire(&mut self, account: &mut Account, now: Time) {
        if account.next_end().is_none_or(|end| end > now) {
            return;
        }
        self.change(account, |account| account.expire(now));
    }

    /// The holder has promised to use no more than `held` under all grants up to `seq`.
    pub fn acknowledge(&mut self, account: &mut Account, seq: u64, held: Amount) {
        let seq = if self.rules.keep(Rule::AckBySeq) { seq } else { u64::MAX };
        self.change(account, |account| account.acknowledge(seq, held));
    }

    /// Charges `shown`, which the holder has from before the start, until `end`, whatever the ceiling: the record says
    /// meanwhile that it does not know. What there is no room for is a debt.
    pub fn take_up(&mut self, account: &mut Account, shown: Amount, end: Time) {
        let clips = !self.rules.keep(Rule::ShownBeyondLimit);
        let amount = if clips { shown.min(self.free()) } else { shown };
        self.change(account, |account| account.add(Entry { amount, end, seq: 0, cut: BEFORE_START }));
        if let Some(limit) = self.limit.filter(|&limit| self.total > micros(limit)) {
            self.debt.begin_as_shown(limit);
        }
    }

    /// Charges `claimed`, which the holder has from an earlier leader, out of the ghost; as much of it as that has left.
    /// The sum stays the same. It is not counted as granted since a cut. Promises about grants from `seq` on are about it.
    pub fn claim(&mut self, account: &mut Account, claimed: Amount, seq: u32, origin: GhostOrigin) -> Amount {
        let limited = self.rules.keep(Rule::ClaimsLimited);
        let amount = if limited { claimed.min(self.ghost()) } else { claimed };
        let (end, taken) = (self.ghost_end(), amount.min(self.ghost()));
        let origin = if self.rules.keep(Rule::ClaimFromOrigin) { origin } else { GhostOrigin::Last };
        self.ghost = self.ghost.without(taken, origin);
        self.total -= micros(taken);
        self.change(account, |account| account.add(Entry { amount, end, seq, cut: BEFORE_START }));
        amount
    }

    /// The grant that the account was last given lasts as long as `term` says, if that is longer.
    pub fn extend(&mut self, account: &mut Account, term: Term) {
        account.extend(self.end(term));
    }

    /// Everything that the account is charged for lasts as long as `term` says, if that is longer. So it is with units in
    /// flight: those that were recalled may be used as long as the lease is renewed, until their holder says that it has
    /// done with them.
    pub fn prolong(&mut self, account: &mut Account, term: Term) {
        self.prolong_from(account, 0, term);
    }

    /// The same of what was granted from `seq` on: its holder shows that grant, and has put those before away.
    pub(crate) fn prolong_from(&mut self, account: &mut Account, seq: u64, term: Term) {
        let end = self.end(term);
        self.change(account, |account| account.prolong_from(seq, end));
    }

    /// Grants what is offered, as far as there is room, and charges it.
    pub fn grant(&mut self, account: &mut Account, offer: &Offer) -> Granted {
        let charged = account.charge();
        let (room, bound) = self.room(account, offer.target.min(offer.most));
        let amount = room.round_down(offer.grain);
        let (end, cut) = (self.end(offer.term), self.debt.number());
        if !self.rules.keep(Rule::CreditAtAck) {
            self.change(account, Account::clear);
        }
        self.change(account, |account| account.add(Entry { amount, end, seq: offer.seq, cut }));
        assert!(
            self.overcommitment() == Amount::ZERO || !self.rules.keep(Rule::ClaimsLimited),
            "granted {amount} beyond the limit: {self:?}"
        );
        let ack_wanted = charged > amount;
        self.recalls += u64::from(ack_wanted);
        Granted { amount, ack_wanted, bound }
    }

    /// Everything `account` was charged for is free: its holder has promised to use nothing, or all of it has ended.
    pub fn close(&mut self, account: &mut Account) {
        self.change(account, Account::clear);
    }

    /// The part of `target` that may be granted, and why it is not all.
    fn room(&mut self, account: &Account, target: Amount) -> (Amount, Option<RoomBound>) {
        let charged = account.charge();
        if !self.in_debt() {
            let room = self.reachable(account, target);
            return (room, (room < target).then(|| self.bound_of_room(charged)));
        }
        let room = target.min(charged).min(self.beside_granted(account));
        (room, (room < target).then_some(RoomBound::Debt))
    }

    /// The most that fits beside what others were granted since the cuts of a debt. Without a debt that has no limit.
    #[must_use]
    pub fn beside_granted(&self, account: &Account) -> Amount {
        match self.in_debt() {
            false => Amount::MAX,
            true if !self.rules.keep(Rule::PostCut) => self.limit.unwrap_or(Amount::MAX),
            true if !self.rules.keep(Rule::EveryCut) => self.debt.room_since_last(account),
            true => self.debt.room(account),
        }
    }

    /// The bound that keeps one who is charged for `charged` from growing: the ceiling, or what is out within the limit.
    fn bound_of_room(&self, charged: Amount) -> RoomBound {
        match self.free() {
            free if self.below_ceiling() < free => RoomBound::Ceiling,
            _ if self.lent() > micros(charged) => RoomBound::Others,
            _ if self.ghost() > Amount::ZERO => RoomBound::Ghost,
            _ => RoomBound::Limit,
        }
    }

    /// Every change of an account passes here, so that the sums follow.
    fn change(&mut self, account: &mut Account, change: impl FnOnce(&mut Account)) {
        let (charge, since) = (account.charge(), self.debt.charges(account));
        change(account);
        self.total = self.total + micros(account.charge()) - micros(charge);
        self.debt.note(&since, account);
        self.settle_debt();
    }

    fn settle_debt(&mut self) {
        if self.in_debt() && self.limit.is_none_or(|limit| self.total <= micros(limit)) {
            self.debt.end();
        }
    }

    /// When a grant is certainly over.
    fn end(&self, term: Term) -> Time {
        if !self.rules.keep(Rule::FullCharge) {
            return term.basis + term.length / 10 * 9;
        }
        if !self.rules.keep(Rule::DriftMargin) {
            return term.basis + term.length;
        }
        term.drift.grantor_end(term.basis, term.length)
    }
}

trait RoundDown {
    fn round_down(self, grain: Amount) -> Amount;
}

impl RoundDown for Amount {
    fn round_down(self, grain: Amount) -> Amount {
        let grain = grain.as_micros().max(1);
        Amount::from_micros(self.as_micros() / grain * grain)
    }
}

fn micros(amount: Amount) -> u128 {
    u128::from(amount.as_micros())
}

fn amount(micros: u128) -> Amount {
    Amount::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
