//! The reason of an amount: what kept a grant from being larger.

use crate::wire;

/// The bound of a grant: of all that could have kept its amount down the one that did.
///
/// The list is closed, so that clients can count by it how long they were short, and of what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BoundBy {
    /// Its own wants: it has all of them, or more.
    Wants,
    /// The level of its priority: everybody there gets as much, each by its weight, or in proportion to what it wants.
    Level,
    /// Greater priorities have taken all that there is.
    Band,
    /// The capacity of a template without sharing, which gives as much to each.
    Static,
    /// Whole units: the turn for one more has not come.
    Turn,
    /// Leases of others that are more than their shares, until they have given that back or it has ended.
    OthersOut,
    /// The part that is kept free for others that miss what is theirs for good.
    KeptFree,
    /// The part that leaders before this one may have left out to nobody knows whom.
    Ghost,
    /// The mark that is written down for a successor: a larger one is on its way.
    Mark,
    /// The lease of the node from the one above: there is none, or it is of nothing.
    LeaseAbove,
    /// A cut: more is out than the capacity, and nobody grows before that is over.
    Debt,
    /// The grantor does not know what is out, and grants no more than was there before.
    Learning,
    /// A lease from a leader before this one, which it has claimed: it is told of nothing else.
    Claim,
    /// The part that those who draw no incarnation may have together.
    LegacyFraction,
    /// Another life of the same id has taken its place.
    Superseded,
    /// Leases of the other kind that are out: rates and gauges do not mix.
    OtherKind,
    /// An operator, or rules of access, took it back.
    Recall,
    /// No template covers the resource any more.
    NoTemplate,
    /// An override by an operator, for a while: it is frozen, or drained.
    Override,
}

// === impl BoundBy ===

impl BoundBy {
    /// All of them.
    pub const ALL: [BoundBy; 19] = [
        BoundBy::Wants,
        BoundBy::Level,
        BoundBy::Band,
        BoundBy::Static,
        BoundBy::Turn,
        BoundBy::OthersOut,
        BoundBy::KeptFree,
        BoundBy::Ghost,
        BoundBy::Mark,
        BoundBy::LeaseAbove,
        BoundBy::Debt,
        BoundBy::Learning,
        BoundBy::Claim,
        BoundBy::LegacyFraction,
        BoundBy::Superseded,
        BoundBy::OtherKind,
        BoundBy::Recall,
        BoundBy::NoTemplate,
        BoundBy::Override,
    ];

    /// The name, as in metrics and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            BoundBy::Wants => "wants",
            BoundBy::Level => "level",
            BoundBy::Band => "band",
            BoundBy::Static => "static",
            BoundBy::Turn => "turn",
            BoundBy::OthersOut => "others_out",
            BoundBy::KeptFree => "kept_free",
            BoundBy::Ghost => "ghost",
            BoundBy::Mark => "mark",
            BoundBy::LeaseAbove => "lease_above",
            BoundBy::Debt => "debt",
            BoundBy::Learning => "learning",
            BoundBy::Claim => "claim",
            BoundBy::LegacyFraction => "legacy_fraction",
            BoundBy::Superseded => "superseded",
            BoundBy::OtherKind => "other_kind",
            BoundBy::Recall => "recall",
            BoundBy::NoTemplate => "no_template",
            BoundBy::Override => "override",
        }
    }

    /// As it stands in a lease; absent: it is of a later version.
    pub(super) fn from_wire(number: i32) -> Option<BoundBy> {
        let number = wire::lease::BoundBy::try_from(number).ok()?;
        BoundBy::ALL.into_iter().find(|by| by.wire() == number)
    }

    /// The number of it in a lease.
    pub(super) fn to_wire(self) -> i32 {
        self.wire().into()
    }

    fn wire(self) -> wire::lease::BoundBy {
        match self {
            BoundBy::Wants => wire::lease::BoundBy::Wants,
            BoundBy::Level => wire::lease::BoundBy::Level,
            BoundBy::Band => wire::lease::BoundBy::Band,
            BoundBy::Static => wire::lease::BoundBy::Static,
            BoundBy::Turn => wire::lease::BoundBy::Turn,
            BoundBy::OthersOut => wire::lease::BoundBy::OthersOut,
            BoundBy::KeptFree => wire::lease::BoundBy::KeptFree,
            BoundBy::Ghost => wire::lease::BoundBy::Ghost,
            BoundBy::Mark => wire::lease::BoundBy::Mark,
            BoundBy::LeaseAbove => wire::lease::BoundBy::LeaseAbove,
            BoundBy::Debt => wire::lease::BoundBy::Debt,
            BoundBy::Learning => wire::lease::BoundBy::Learning,
            BoundBy::Claim => wire::lease::BoundBy::Claim,
            BoundBy::LegacyFraction => wire::lease::BoundBy::LegacyFraction,
            BoundBy::Superseded => wire::lease::BoundBy::Superseded,
            BoundBy::OtherKind => wire::lease::BoundBy::OtherKind,
            BoundBy::Recall => wire::lease::BoundBy::Recall,
            BoundBy::NoTemplate => wire::lease::BoundBy::NoTemplate,
            BoundBy::Override => wire::lease::BoundBy::Override,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_comes_back_from_the_wire_and_one_of_a_later_version_is_none() {
        for by in BoundBy::ALL {
            assert_eq!(BoundBy::from_wire(by.to_wire()), Some(by));
        }
        let numbers: std::collections::BTreeSet<_> = BoundBy::ALL.iter().map(|by| by.to_wire()).collect();
        let names: std::collections::BTreeSet<_> = BoundBy::ALL.iter().map(|by| by.as_str()).collect();
        assert_eq!((numbers.len(), names.len()), (BoundBy::ALL.len(), BoundBy::ALL.len()));
        assert_eq!(BoundBy::from_wire(1_000), None);
    }
}
