//! Rules of followers taken out one at a time, to show that a simulation would notice.
//!
//! Without the feature `mutations` no rule can be taken out: every question to [`FollowerRules`] is answered yes.

/// The rules of followers, perhaps with one of them taken out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FollowerRules {
    #[cfg(feature = "mutations")]
    without: Option<FollowerRule>,
}

/// A rule of followers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FollowerRule {
    /// A number below the one in force is not put in force.
    ForwardOnly,
    /// The head is read again though nothing is seen on the watch.
    LookAgain,
}

// === impl FollowerRule ===

impl FollowerRule {
    /// All of them.
    pub const ALL: [FollowerRule; 2] = [FollowerRule::ForwardOnly, FollowerRule::LookAgain];
}

// === impl FollowerRules ===

impl FollowerRules {
    /// All but one.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn without(rule: FollowerRule) -> FollowerRules {
        FollowerRules { without: Some(rule) }
    }

    /// Whether that one is kept.
    pub(super) fn keep(self, rule: FollowerRule) -> bool {
        #[cfg(feature = "mutations")]
        return self.without != Some(rule);
        #[cfg(not(feature = "mutations"))]
        {
            let _ = rule;
            true
        }
    }
}
