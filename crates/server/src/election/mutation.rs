//! Rules of the election taken out one at a time, to show that a simulation would notice.
//!
//! Without the feature `mutations` no rule can be taken out: every question to [`ElectionRules`] is answered yes.

/// The rules of the election, perhaps with one of them taken out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ElectionRules {
    #[cfg(feature = "mutations")]
    without: Option<ElectionRule>,
}

/// A rule of the election.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ElectionRule {
    /// Authority ends well before the lease at etcd does.
    AuthorityBelowTtl,
    /// Authority is counted from before etcd was asked.
    FromQuestion,
    /// A leader that is heard of looks whether the key is its own.
    ReadBack,
    /// Writes are guarded by the leader's key.
    Guard,
    /// A write that was given up is not carried out after later ones.
    Order,
    /// The number of an epoch goes by the date.
    EpochByDate,
    /// A record is believed only at the etcd at which it was written.
    AtItsCluster,
}

// === impl ElectionRules ===

impl ElectionRules {
    /// All but one.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn without(rule: ElectionRule) -> ElectionRules {
        ElectionRules { without: Some(rule) }
    }

    /// Whether that one is kept.
    pub(super) fn keep(self, rule: ElectionRule) -> bool {
        #[cfg(feature = "mutations")]
        return self.without != Some(rule);
        #[cfg(not(feature = "mutations"))]
        {
            let _ = rule;
            true
        }
    }
}
