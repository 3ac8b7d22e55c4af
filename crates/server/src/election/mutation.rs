//! Rules of the election taken out one at a time, to show that a simulation would notice.
//!
//! Without the feature `mutations` no rule can be taken out: every question to [`ElectionRules`] is answered no.

/// The rules of the election, perhaps with one of them taken out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ElectionRules {
    #[cfg(feature = "mutations")]
    without: Option<ElectionMutation>,
}

/// A rule of the election, taken out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ElectionMutation {
    /// Authority lasts as long as the lease at etcd.
    AuthorityOfTtl,
    /// Authority is counted from the answer of etcd.
    FromAnswer,
    /// A leader that is heard of does not look whether the key is its own.
    NoReadBack,
    /// Writes are not guarded by the leader's key.
    NoGuard,
    /// A write that was given up may be carried out after later ones.
    NoOrder,
    /// The number of an epoch is the revision of etcd.
    EpochOfRevision,
}

// === impl ElectionRules ===

impl ElectionRules {
    /// All but one.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn without(mutation: ElectionMutation) -> ElectionRules {
        ElectionRules { without: Some(mutation) }
    }

    /// Whether that one is taken out.
    pub(super) fn lack(self, mutation: ElectionMutation) -> bool {
        #[cfg(feature = "mutations")]
        return self.without == Some(mutation);
        #[cfg(not(feature = "mutations"))]
        {
            let _ = mutation;
            false
        }
    }
}
