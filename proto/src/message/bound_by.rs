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

    /// The one of that name; none of a later version.
    #[must_use]
    pub fn named(name: &str) -> Option<BoundBy> {
        BoundBy::ALL.into_iter().find(|by| by.as_str() == name)
    }

    /// The bound in words, as people are told it: "it is bound by …".
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            BoundBy::Wants => "its own wants: it gets all that it asks for",
            BoundBy::Level => {
                "the level: everybody of its priority gets so much at the most, each by its weight"
            }
            BoundBy::Band => "greater priorities: they want all that there is",
            BoundBy::Static => "the template: STATIC gives everybody no more than its capacity",
            BoundBy::Turn => "whole units: its turn for one more has not come",
            BoundBy::OthersOut => {
                "leases of others that are above their shares: what they were told to give back they have not yet"
            }
            BoundBy::KeptFree => "what is kept free for others that wait for what is theirs",
            BoundBy::Ghost => "what leaders before this one left out to holders that have not shown it",
            BoundBy::Mark => "the mark: more is granted when a larger one is written for successors",
            BoundBy::LeaseAbove => {
                "the lease of this node from the one above: there is none, or it is of nothing"
            }
            BoundBy::Debt => "a cut: more is out than the capacity, and nobody grows before that is over",
            BoundBy::Learning => {
                "the server learns what is out from before its start, and grants no more than was there"
            }
            BoundBy::Claim => "what it has from a leader before this one: it is told nothing else yet",
            BoundBy::LegacyFraction => {
                "legacy_max_fraction: clients without incarnation have no more than that together"
            }
            BoundBy::Superseded => "another life of the same id: this one has not been heard of since",
            BoundBy::OtherKind => {
                "the other kind: units a second and units in use do not mix while something of before is out"
            }
            BoundBy::Recall => "a recall: an operator, or rules of access, took it back",
            BoundBy::NoTemplate => "no template covers the resource any more",
            BoundBy::Override => "an override: an operator has frozen the resource, or drained this holder",
        }
    }

    /// The things that would let it be more, or what to wait for.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            BoundBy::Wants => "nothing has to be done, unless it wants more",
            BoundBy::Level => "more capacity, fewer wants of others, or a greater priority for it",
            BoundBy::Band => {
                "more capacity than those want, fewer wants of theirs, or a greater priority for it"
            }
            BoundBy::Static => "more capacity in the template, or an algorithm that shares",
            BoundBy::Turn => "wait for the turn, or give it more capacity",
            BoundBy::OthersOut => "wait: it is over when they have reported, or their leases have ended",
            BoundBy::KeptFree => "wait: they are served first",
            BoundBy::Ghost => "wait until the last of those leases has certainly ended",
            BoundBy::Mark => "wait a moment; if it lasts, look at etcd, or at the state directory",
            BoundBy::LeaseAbove => "look at the node above, and at the way there",
            BoundBy::Debt => "wait: it is over when holders have given back, or after a lease at the latest",
            BoundBy::Learning => "wait until it has learnt",
            BoundBy::Claim => "wait until that has ended, or is claimed",
            BoundBy::LegacyFraction => "a larger legacy_max_fraction, or a client that draws an incarnation",
            BoundBy::Superseded => "if both live, give each an id of its own",
            BoundBy::OtherKind => "wait until the leases of before have ended",
            BoundBy::Recall => "`lessor admin recall` lists recalls, and --lift ends one",
            BoundBy::NoTemplate => "a template that matches its name",
            BoundBy::Override => "`lessor overrides` lists them, and `lessor lift` ends one",
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

    #[test]
    fn every_reason_has_a_name_and_words_of_its_own() {
        for by in BoundBy::ALL {
            assert_eq!(BoundBy::named(by.as_str()), Some(by));
            assert!(![by.what(), by.remedy()].iter().any(|words| words.is_empty() || words.ends_with('.')));
        }
        let words: std::collections::BTreeSet<_> = BoundBy::ALL.iter().map(|by| by.what()).collect();
        assert_eq!((words.len(), BoundBy::named("the_weather")), (BoundBy::ALL.len(), None));
    }
}
