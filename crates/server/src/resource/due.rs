//! The amount that is due to a holder, with what keeps it from being more: decided in one step, and named where a grant says so.

use lessor_algorithms::SharePolicy;
use lessor_proto::message::BoundBy;
use lessor_proto::{Amount, Time};

use super::slab::Slot;
use super::{CallContext, Resource};
use crate::ledger::{Granted, RoomBound};
use crate::mutation::Rule;
use crate::repository::Kind;

/// An amount, and what keeps it from being more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Due {
    pub(super) amount: Amount,
    /// The bound of a share is named [`BoundBy::Level`] here, and looked at more closely by [`Resource::bound_by`].
    pub(super) by: BoundBy,
}

/// The grant that a holder is offered, before the ledger says what there is room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offering {
    pub(super) due: Due,
    /// The most that may be granted, whatever is due.
    pub(super) most: Due,
}

// === impl Due ===

impl Due {
    fn nothing(by: BoundBy) -> Due {
        Due { amount: Amount::ZERO, by }
    }

    /// The same, but no more than `most`, for that reason.
    pub(super) fn at_most(self, most: Amount, by: BoundBy) -> Due {
        if most < self.amount { Due { amount: most, by } } else { self }
    }
}

// === impl Offering ===

impl Offering {
    /// The amount that is offered.
    pub(super) fn offer(&self) -> Due {
        self.due.at_most(self.most.amount, self.most.by)
    }
}

// === impl Resource ===

impl Resource {
    /// The amount that is due to the child at `slot`, with its loan.
    pub(super) fn target_bound(&self, now: Time, slot: Slot) -> Due {
        let due = self.due_bound(now, slot);
        let is_lent = !self.is_learning(now) && !self.is_frozen();
        if self.holders.at(slot).is_withdrawn() || self.changes_kind() || !is_lent {
            return due;
        }
        Due { amount: self.with_loan(slot, due.amount), ..due }
    }

    /// The amount that is due to the child at `slot`, whatever is lent.
    pub(super) fn due_bound(&self, now: Time, slot: Slot) -> Due {
        let child = self.holders.at(slot);
        if child.is_withdrawn() {
            return Due::nothing(BoundBy::Superseded);
        }
        if self.changes_kind() {
            return Due::nothing(BoundBy::OtherKind);
        }
        let wants = child.demands().wants();
        let wanted = Amount::from_f64(wants);
        if self.is_learning(now) {
            let wanted = Due { amount: wanted, by: BoundBy::Wants };
            let charged = wanted.at_most(child.account().charge(), BoundBy::Learning);
            return charged.at_most(self.claims.most_learnt(slot), BoundBy::Claim);
        }
        if self.is_frozen() && !self.ledger.in_debt() {
            let wanted = Due { amount: self.in_wanted_grains(wanted), by: BoundBy::Wants };
            return wanted.at_most(child.account().charge(), BoundBy::Override);
        }
        let due = self.share_bound(slot, wants);
        match self.is_frozen() {
            // Whoever has too much gives that back, and nobody has more for it.
            true => due.at_most(child.account().charge(), BoundBy::Override),
            false => due,
        }
    }

    /// The share of the child at `slot`, which wants so much.
    fn share_bound(&self, slot: Slot, wants: f64) -> Due {
        let (child, wanted) = (self.holders.at(slot), Amount::from_f64(wants));
        let (is_whole, is_gauge) = (self.terms.is_whole(), self.terms.kind == Kind::Gauge);
        let (share, is_all) = if is_whole && !self.divides_parts() {
            let share = self.whole_units(slot);
            // A part of a unit is of no use.
            (share, share >= if is_gauge { self.in_grains(wanted) } else { wanted })
        } else {
            let share = self.share(child.demands());
            (Amount::from_f64(share), share >= wants)
        };
        let by = if is_all { BoundBy::Wants } else { BoundBy::Level };
        Due { amount: share.max(self.kept(slot)), by }
    }

    /// The whole grains in an amount that is wanted: a part of a unit is of no use, and a part of a part is.
    fn in_wanted_grains(&self, amount: Amount) -> Amount {
        let floor = self.in_grains(amount);
        match self.terms.kind {
            Kind::Rate if floor < amount => floor.saturating_add(self.terms.grain()),
            Kind::Rate | Kind::Gauge => floor,
        }
    }

    fn in_grains(&self, amount: Amount) -> Amount {
        let grain = self.terms.grain().as_micros().max(1);
        Amount::from_micros(amount.as_micros() / grain * grain)
    }

    /// The offer to the child at `slot` where `due` is due to it.
    #[inline]
    pub(super) fn offering(&self, slot: Slot, due: Due) -> Offering {
        let (part, most) = self.within_part(slot, self.steady(slot, due.amount));
        let due = match part < due.amount && self.differs(part, due.amount) {
            true => Due { amount: part, by: BoundBy::LegacyFraction },
            false => Due { amount: part, ..due },
        };
        let most = Due { amount: most, by: BoundBy::LegacyFraction };
        let beside = self.beside_reserve(slot);
        // Where nothing is kept of what is free, the ledger says what there is too little room for.
        let is_kept = || beside < self.holders.at(slot).account().charge().saturating_add(self.ledger.free());
        match beside < most.amount && is_kept() {
            true => Offering { due, most: Due { amount: beside, by: BoundBy::KeptFree } },
            false => Offering { due, most },
        }
    }

    /// Why no lease can be granted, of any amount.
    pub(super) fn unlet(&self, now: Time, cx: CallContext<'_>) -> BoundBy {
        let is_let = !cx.longest.of(&self.id).is_zero();
        match is_let && self.is_leased() && self.supply.until() <= now {
            true => BoundBy::LeaseAbove,
            false => BoundBy::Mark,
        }
    }

    /// The bound of the amount that was granted to the child at `slot` of what it was offered.
    pub(super) fn bound_by(&self, slot: Slot, offering: &Offering, granted: &Granted) -> BoundBy {
        let by = granted.bound.map_or(offering.offer().by, |bound| match bound {
            RoomBound::Debt => BoundBy::Debt,
            RoomBound::Ceiling => BoundBy::Mark,
            RoomBound::Others => BoundBy::OthersOut,
            RoomBound::Ghost => BoundBy::Ghost,
            RoomBound::Limit => BoundBy::Level,
        });
        match by {
            BoundBy::Level => self.bound_of_share(slot),
            BoundBy::Wants => self.recalled_by(slot).unwrap_or(BoundBy::Wants),
            by => by,
        }
    }

    /// The bound of the share of the child at `slot`, which is less than it wants.
    fn bound_of_share(&self, slot: Slot) -> BoundBy {
        let shares = self.holders.shares();
        if shares.policy() == SharePolicy::Static {
            return BoundBy::Static;
        }
        if shares.capacity() <= 0.0 {
            return match self.ledger.ghost() {
                _ if !self.terms.is_covered() => BoundBy::NoTemplate,
                Amount::ZERO if self.is_leased() => BoundBy::LeaseAbove,
                Amount::ZERO => BoundBy::Level,
                _ => BoundBy::Ghost,
            };
        }
        if self.terms.is_whole() && !self.divides_parts() && self.awaits_turn(slot) {
            return BoundBy::Turn;
        }
        let mut demands = self.holders.at(slot).demands().iter();
        let unmet = demands.find(|demand| self.share_of(demand) < demand.wants);
        match unmet.is_some_and(|demand| shares.capacity_for(demand.priority) <= 0.0) {
            true => BoundBy::Band,
            false => BoundBy::Level,
        }
    }

    /// Why the child at `slot` wants nothing, if what it has was taken back by an operator or by rules.
    fn recalled_by(&self, slot: Slot) -> Option<BoundBy> {
        let is_recalled = self.holders.at(slot).demands().wants() <= 0.0
            && self.ledger.rules().keep(Rule::RevokedBorrowsNothing);
        self.lending.barred_by(slot).filter(|_| is_recalled)
    }
}
