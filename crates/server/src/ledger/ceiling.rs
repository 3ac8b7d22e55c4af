//! The ceiling of a ledger: how much may be out before a larger mark is written.

use lessor_proto::{Amount, Time};

use super::{Ghost, GhostOrigin, Ledger, amount, micros};
use crate::mutation::Rule;

/// The ceiling that a successor would find written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ceiling {
    /// The most that is out.
    pub total: Amount,
    /// The most of it that lasts longer than until `rest_end`.
    pub lasting: Amount,
    /// When the rest of it is over.
    pub rest_end: Time,
}

// === impl Ledger ===

impl Ledger {
    /// Changes the ceiling: another mark has been written, or is about to be if it is a lower one. Returns whether it was
    /// another.
    pub fn set_ceiling(&mut self, ceiling: Option<Ceiling>) -> bool {
        self.lack = Amount::ZERO;
        std::mem::replace(&mut self.ceiling, ceiling) != ceiling
    }

    /// The limit of the sum before a larger mark is written.
    #[must_use]
    pub fn ceiling(&self) -> Option<Ceiling> {
        self.ceiling
    }

    /// The part of the sum that outlasts the moment by which the rest is over by the record; all of it where nothing is written of a
    /// rest.
    #[must_use]
    pub fn lasting(&self) -> Amount {
        let ending = self.ceiling.map_or(Amount::ZERO, |ceiling| self.ghost.ending_by(ceiling.rest_end));
        amount(self.total - micros(ending))
    }

    /// The amount that would outlast the rest if `claimed` were claimed, where that would pass the ceiling; nothing where it fits.
    ///
    /// While a record is on its way that says more of the rest than the one before, and says it to be over later, the ceiling
    /// allows for either: the ghost that one of them counts as the rest passes it by itself, and all of a claim is too much.
    #[must_use]
    pub fn lacks_room(&self, claimed: Amount, origin: GhostOrigin) -> Amount {
        let Some(ceiling) = self.ceiling.filter(|_| self.rules.keep(Rule::ClaimWritten)) else {
            return Amount::ZERO;
        };
        let ending = |ghost: &Ghost| ghost.ending_by(ceiling.rest_end);
        let moved = ending(&self.ghost).saturating_sub(ending(&self.ghost.without(claimed, origin)));
        match self.lasting().saturating_add(moved) <= ceiling.lasting {
            true => Amount::ZERO,
            false if moved > Amount::ZERO => moved,
            false => claimed.min(self.ghost()),
        }
    }

    /// Forgets what was cut: the ceiling allows for it.
    pub fn forget_lack(&mut self) {
        self.lack = Amount::ZERO;
    }

    /// The most by which anything was cut because of the ceiling since that was set.
    #[must_use]
    pub fn lack(&self) -> Amount {
        self.lack
    }

    pub(super) fn below_ceiling(&self) -> Amount {
        match self.ceiling {
            Some(ceiling) if self.rules.keep(Rule::MarkFirst) => self.room_below(ceiling),
            _ => Amount::MAX,
        }
    }

    fn room_below(&self, ceiling: Ceiling) -> Amount {
        let room = amount(micros(ceiling.total).saturating_sub(self.total));
        match self.rules.keep(Rule::RestGuarded) {
            false => room,
            true => room.min(ceiling.lasting.saturating_sub(self.lasting())),
        }
    }

    /// Somebody could grow by `growth` if there were no ceiling.
    pub(super) fn miss(&mut self, growth: Amount) {
        if let Some(ceiling) = self.ceiling {
            self.lack = self.lack.max(growth.saturating_sub(self.room_below(ceiling)));
        }
    }
}
