//! Capacity that nobody wants, lent to those who may come to want it.
//!
//! Demand moves faster than messages: what lies at the root is a round trip away from the program that needs it now. So
//! nine tenths of what is left when all wants are met, if nothing else is configured, are lent on top of the shares, to nodes
//! and to clients of ours that state a *peak*; each node does the same with what it has. First by peaks: who states one claims
//! twice that lease, and where there is not enough for all the claims the water level over them is what each gets. What is
//! left is lent evenly, by the number of clients below. Only to those that listen on a stream: from one that polls a loan
//! could not be recalled before that asks again. Only of a rate whose shares are bounded: units of a gauge that are lent
//! could not be taken back while they are in use.
//!
//! A loan is no share. It is given with a report or a heartbeat to who has less than half of its part, never because the
//! spare moved, and stays until it is needed: when somebody is short of its share, or when less than half of what
//! is to be kept free is left. Then the greatest loan that nobody claims goes first, and then the greatest, but none below the
//! part that a raise would go up to, or two holders would take from each other for ever.

use std::collections::{BTreeMap, BTreeSet};

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_proto::message::{BoundBy, HolderKind};
use lessor_proto::{Amount, Time};

use super::slab::Slot;
use super::{CallContext, Resource};
use crate::mutation::Rule;
use crate::repository::Fraction;
use crate::streams::{Peer, Peers};

/// At most so many loans are recalled before others are heard.
const SLICE: usize = 64;

/// Thousandths of a unit, in which what peaks exceed wants by is squared and summed.
const MILLI: f64 = 1e3;

/// The holders that may be lent something, and those that have a loan.
#[derive(Clone, Debug)]
pub(super) struct Lending {
    /// The claims on top of the wants. Their capacity is the amount that may be lent.
    claims: Shares,
    borrowers: BTreeMap<Slot, Borrower>,
    /// Those who have a loan: by how much of it is not claimed, and by how much it is, per weight.
    loans: BTreeSet<(u64, u64, Slot)>,
    /// The peaks that were stated.
    peaks: BTreeMap<Slot, f64>,
    /// Those that may hold nothing, and so borrow nothing.
    barred: BTreeMap<Slot, BoundBy>,
    /// The part of the capacity that nobody wants.
    spare: Amount,
    /// All loans together, in millionths.
    out: u128,
    /// The amount that borrowers are charged for beyond their last grants, in millionths: recalls under way.
    coming: u128,
    /// The squares of what each peak exceeds the wants by, in thousandths, summed.
    spread: u128,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Borrower {
    /// Its claim on top of its wants, and the number of clients that it stands for.
    claim: Demand,
    /// The amount that it was granted last beyond its wants.
    loan: Amount,
    coming: Amount,
    /// In thousandths of a unit.
    excess: u64,
}

/// A recall of loans.
struct LoanRecall {
    /// The amount that is still needed.
    need: Amount,
    /// The number of borrowers that have been told.
    told: u32,
    /// Whether borrowers keep what they claim.
    keeps_claims: bool,
}

// === impl Lending ===

impl Default for Lending {
    fn default() -> Lending {
        Lending {
            claims: Shares::new(SharePolicy::FairShare, 0.0),
            borrowers: BTreeMap::new(),
            loans: BTreeSet::new(),
            peaks: BTreeMap::new(),
            barred: BTreeMap::new(),
            spare: Amount::ZERO,
            out: 0,
            coming: 0,
            spread: 0,
        }
    }
}

impl Lending {
    /// The holder at `slot` states its peak, or that nothing is to be lent to it.
    pub(super) fn set_peak(&mut self, slot: Slot, peak: Option<f64>) {
        match peak {
            Some(peak) => _ = self.peaks.insert(slot, peak),
            None => _ = self.peaks.remove(&slot),
        }
    }

    /// Nothing is lent to the holder at `slot` before it may borrow again, for that reason.
    fn bar(&mut self, slot: Slot, by: BoundBy) {
        self.peaks.remove(&slot);
        self.barred.insert(slot, by);
    }

    /// Why nothing is lent to the holder at `slot` before it may borrow again, if that is so.
    pub(super) fn barred_by(&self, slot: Slot) -> Option<BoundBy> {
        self.barred.get(&slot).copied()
    }

    /// The holder at `slot` may borrow again.
    fn unbar(&mut self, slot: Slot) {
        // Hardly ever any.
        if !self.barred.is_empty() {
            self.barred.remove(&slot);
        }
    }

    /// Nothing is lent to the holder at `slot` any more, and what it stated is forgotten.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.peaks.remove(&slot);
        self.unbar(slot);
        self.set(slot, None);
    }

    /// The amount that the holder at `slot` has beyond its wants, if something may be lent to it.
    pub(super) fn loan(&self, slot: Slot) -> Option<Amount> {
        self.borrowers.get(&slot).map(|borrower| borrower.loan)
    }

    /// Whether something may be lent to anybody.
    pub(super) fn has_borrowers(&self) -> bool {
        !self.borrowers.is_empty()
    }

    fn set(&mut self, slot: Slot, borrower: Option<Borrower>) {
        let before = self.borrowers.get(&slot).copied();
        if before == borrower {
            return;
        }
        if let Some(before) = before {
            self.borrowers.remove(&slot);
            self.claims.remove(&before.claim);
            self.loans.remove(&before.place(slot));
            self.out -= u128::from(before.loan.as_micros());
            self.coming -= u128::from(before.coming.as_micros());
            self.spread -= before.square();
        }
        if let Some(borrower) = borrower {
            self.borrowers.insert(slot, borrower);
            self.claims.insert(&borrower.claim);
            if borrower.loan > Amount::ZERO {
                self.loans.insert(borrower.place(slot));
            }
            self.out += u128::from(borrower.loan.as_micros());
            self.coming += u128::from(borrower.coming.as_micros());
            self.spread += borrower.square();
        }
    }

    /// The part of the spare that may be lent to `borrower` while that is all that is lent.
    fn part(&self, borrower: &Borrower) -> Amount {
        let rest = (self.claims.capacity() - self.claims.wants()).max(0.0);
        let evenly = rest * f64::from(borrower.claim.weight) / self.claims.weight().max(1) as f64;
        Amount::from_f64(self.claims.share(&borrower.claim) + evenly)
    }

    /// The amount to be kept free.
    fn kept(&self) -> Amount {
        self.spare.saturating_sub(Amount::from_f64(self.claims.capacity()))
    }

    /// Of the spare, what is lent to nobody but perhaps the one who has `loan`.
    fn free_for(&self, loan: Amount) -> Amount {
        let others = self.out.saturating_sub(u128::from(loan.as_micros()));
        let others = u64::try_from(others).map_or(Amount::MAX, Amount::from_micros);
        self.spare.saturating_sub(others)
    }

    /// The amount to be recalled: down to what may be lent, if there is need.
    fn need(&self) -> Amount {
        let half = Amount::from_micros(self.kept().as_micros() / 2);
        let free = self.free_for(Amount::ZERO);
        let is_short = self.out > u128::from(self.spare.as_micros());
        if is_short || free < half && self.coming == 0 {
            let may = Amount::from_f64(self.claims.capacity());
            let over = self.out.saturating_sub(u128::from(may.as_micros()));
            return Amount::from_micros(u64::try_from(over).unwrap_or(u64::MAX));
        }
        Amount::ZERO
    }
}

// === impl Borrower ===

impl Borrower {
    /// Ordered as the bits of doubles that are not negative.
    fn place(&self, slot: Slot) -> (u64, u64, Slot) {
        let weight = f64::from(self.claim.weight);
        let unclaimed = (self.loan.as_f64() - self.claim.wants).max(0.0);
        ((unclaimed / weight).to_bits(), (self.loan.as_f64() / weight).to_bits(), slot)
    }

    fn square(&self) -> u128 {
        u128::from(self.excess) * u128::from(self.excess)
    }
}

// === impl Resource ===

impl Resource {
    /// Notes where the holder at `slot` stands among those who are lent something.
    pub(super) fn enlist(&mut self, slot: Slot) {
        // Who asks without a stream borrows nothing.
        if !self.lending.has_borrowers() && self.pusher.peer(slot).is_none() {
            return;
        }
        let borrower = self.borrower(slot);
        self.lending.set(slot, borrower);
    }

    /// Nothing is lent to the holder at `slot`, which may hold nothing, before it comes back on another stream and may.
    pub(crate) fn bar(&mut self, slot: Slot, by: BoundBy, cx: CallContext<'_>) {
        if cx.config.rules.keep(Rule::RevokedBorrowsNothing) {
            self.lending.bar(slot, by);
        }
    }

    /// The holder at `slot` may borrow again if `peer` is another stream than it listened on before.
    pub(crate) fn unbar_on(&mut self, slot: Slot, peer: Peer) {
        if self.pusher.peer(slot) != Some(peer) {
            self.lending.unbar(slot);
        }
    }

    fn borrower(&self, slot: Slot) -> Option<Borrower> {
        let child = self.holders.at(slot);
        let peak = self.lending.peaks.get(&slot).copied();
        let is_one = self.pusher.peer(slot).is_some()
            && self.terms.spare() > Fraction::NONE
            && (child.kind == HolderKind::Node || peak.is_some())
            && !child.is_withdrawn()
            && !self.lending.barred.contains_key(&slot)
            && self.claims.deferred(slot).is_none();
        if !is_one {
            return None;
        }
        let (wants, holds) = (child.demands().wants(), self.holds(slot));
        let peak = peak.unwrap_or(0.0);
        Some(Borrower {
            claim: Demand {
                priority: 0,
                weight: u32::try_from(child.demands().weight()).unwrap_or(u32::MAX),
                wants: (2.0 * peak - wants).clamp(0.0, f64::MAX),
            },
            loan: holds.saturating_sub(Amount::from_f64(wants)),
            coming: child.account().charge().saturating_sub(holds),
            excess: ((peak - wants).max(0.0) * MILLI) as u64,
        })
    }

    /// Finds what there is to lend.
    pub(super) fn appraise(&mut self) {
        // Nothing is lent where nobody listens, and who begins to listen is answered after another look at this.
        if !self.pusher.has_listeners() {
            return;
        }
        let wanted = match self.ledger.rules().keep(Rule::LendUnwanted) {
            false => 0.0,
            true => self.holders.shares().wants(),
        };
        let spare = self.holders.shares().capacity() - wanted;
        let is_any = spare > 0.0 && !self.ledger.in_debt() && self.holders.shares().policy().is_bounded();
        self.lending.spare = if is_any { Amount::from_f64(spare) } else { Amount::ZERO };
        let may = self.terms.spare().of(self.lending.spare);
        self.lending.claims.set_capacity(may.as_f64());
    }

    /// The amount due to the child at `slot`, which has that share: the share, and its loan.
    pub(super) fn with_loan(&self, slot: Slot, share: Amount) -> Amount {
        let lending = &self.lending;
        let Some(borrower) = lending.borrowers.get(&slot) else { return share };
        if lending.spare == Amount::ZERO {
            return share;
        }
        let (loan, part) = (borrower.loan, lending.part(borrower));
        if loan >= Amount::from_micros(part.as_micros() / 2) {
            return share.saturating_add(loan);
        }
        share.saturating_add(loan.max(part.min(lending.free_for(loan))))
    }

    /// Recalls loans that are needed. Returns how many.
    pub(super) fn recall_loans(&mut self, now: Time, cx: CallContext<'_>, peers: &mut Peers) -> u32 {
        let mut recall = LoanRecall { need: self.lending.need(), told: 0, keeps_claims: true };
        if recall.need == Amount::ZERO || !cx.config.rules.keep(Rule::LoanRecalled) {
            return 0;
        }
        let unclaimed = self.lending.loans.iter().rev().take(SLICE).map(|&(_, _, slot)| slot).collect();
        self.recall_from(now, unclaimed, &mut recall, cx, peers);
        // What is claimed goes when nothing worth a message is left of what is not.
        if recall.told == 0 && recall.need > Amount::ZERO {
            recall.keeps_claims = false;
            let mut loans: Vec<(u64, Slot)> =
                self.lending.loans.iter().map(|&(_, loan, slot)| (loan, slot)).collect();
            loans.sort_unstable_by(|one, other| other.cmp(one));
            let greatest = loans.into_iter().take(SLICE).map(|(_, slot)| slot).collect();
            self.recall_from(now, greatest, &mut recall, cx, peers);
        }
        // There may be more of them than were heard of now; else nobody can give anything.
        self.pusher.unsettle_if(recall.told > 0 && recall.need > Amount::ZERO);
        recall.told
    }

    /// Recalls what is needed from these, down to what they claim or down to their parts.
    fn recall_from(
        &mut self,
        now: Time,
        slots: Vec<Slot>,
        recall: &mut LoanRecall,
        cx: CallContext<'_>,
        peers: &mut Peers,
    ) {
        for slot in slots {
            let borrower = self.lending.borrowers[&slot];
            let part = match cx.config.rules.keep(Rule::RecallToPart) {
                false => Amount::ZERO,
                true => self.lending.part(&borrower),
            };
            let claimed =
                if recall.keeps_claims { Amount::from_f64(borrower.claim.wants) } else { Amount::ZERO };
            let gives = borrower.loan.saturating_sub(part.max(claimed)).min(recall.need);
            let holds = self.holds(slot);
            let keeps = holds.saturating_sub(gives);
            if self.is_worth_telling(holds, keeps) && self.push_at_most(now, slot, keeps, cx, peers) {
                recall.told += 1;
                recall.need = recall.need.saturating_sub(gives);
            }
            if recall.need == Amount::ZERO {
                break;
            }
        }
    }

    /// Whether the holder at `slot` has a loan that it may keep until that is needed.
    pub(super) fn borrows(&self, slot: Slot) -> bool {
        self.holders.shares().wants() < self.holders.shares().capacity()
            && self.lending.loan(slot).is_some_and(|loan| loan > Amount::ZERO)
    }

    /// Whether loans are to be recalled.
    pub(super) fn needs_loans_back(&self) -> bool {
        self.lending.need() > Amount::ZERO && self.ledger.rules().keep(Rule::LoanRecalled)
    }

    /// The least lease that would have let through what all below attempted last, in units a second; absent where nothing is
    /// lent. Peaks of many do not come at the same time, so they do not add up.
    pub(crate) fn peak(&self) -> Option<f64> {
        (self.terms.spare() > Fraction::NONE)
            .then(|| self.holders.shares().wants() + 2.0 * (self.lending.spread as f64).sqrt() / MILLI)
            // Demands without end come to the greatest number there is.
            .map(|peak| peak.min(f64::MAX))
    }
}
