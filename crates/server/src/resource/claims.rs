//! The tally of claims: what became of what holders showed from earlier leaders.

use crate::token::Doubt;

/// The outcomes of what holders showed from earlier epochs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct ClaimTally {
    /// Believed, at least in part.
    pub honoured: u64,
    /// Without a token.
    pub missing: u64,
    /// With a token whose seal does not fit.
    pub forged: u64,
    /// Of this epoch, or of one to come.
    pub not_earlier: u64,
    /// Of more than the token says: what it says was believed.
    pub too_large: u64,
}

// === impl ClaimTally ===

impl ClaimTally {
    /// One more that was not believed, or not in full.
    pub(crate) fn doubt(&mut self, doubt: Doubt) {
        match doubt {
            Doubt::Missing => self.missing += 1,
            Doubt::Forged => self.forged += 1,
            Doubt::NotEarlier => self.not_earlier += 1,
            Doubt::TooLarge => self.too_large += 1,
        }
    }

    /// These as well.
    pub(crate) fn add(&mut self, other: ClaimTally) {
        self.honoured += other.honoured;
        self.missing += other.missing;
        self.forged += other.forged;
        self.not_earlier += other.not_earlier;
        self.too_large += other.too_large;
    }
}
