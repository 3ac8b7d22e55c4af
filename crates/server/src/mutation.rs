//! Rules taken out one at a time, to show that the simulator would notice.
//!
//! Without the feature `mutations` no rule can be taken out: [`Rules`] is empty and every question to it is answered no.

/// The rules of a grantor, perhaps with one of them taken out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rules {
    #[cfg(feature = "mutations")]
    without: Option<Mutation>,
}

/// A rule of a grantor (section 14.3 of the protocol), taken out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mutation {
    /// A report counts for all grants, also for those sent after the one it shows.
    AckWithoutSeq,
    /// A charge ends a tenth before the lease does.
    ShortCharge,
    /// A charge lasts no longer than the lease, whatever clocks do.
    NoDriftMargin,
    /// A smaller grant counts when it is decided, as in Doorman.
    CreditAtDecision,
    /// A life of a client frees what its earlier ones were charged for.
    IncarnationFreesOld,
    /// After a cut, grants made since may add up to more than the limit.
    NoPostCut,
    /// A node's grants may outlive its own lease.
    NoNestedEnd,
    /// A successor takes it that nothing is out.
    NoGhost,
    /// What may be out from before stops counting half way.
    ShortGhost,
    /// Claims are honoured beyond what may be out.
    ClaimsUnlimited,
    /// A report of a node's leader frees what the leader before it was charged for.
    LeaderFreesOld,
    /// A heartbeat renews what is out also while a cut is being carried out.
    RenewInDebt,
}

// === impl Rules ===

impl Rules {
    /// All but one.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn without(mutation: Mutation) -> Rules {
        Rules { without: Some(mutation) }
    }

    /// Whether that one is taken out.
    pub(crate) fn lack(self, mutation: Mutation) -> bool {
        #[cfg(feature = "mutations")]
        return self.without == Some(mutation);
        #[cfg(not(feature = "mutations"))]
        {
            let _ = mutation;
            false
        }
    }
}
