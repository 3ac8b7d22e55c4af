//! The question that tiers are asked, and the decision that they answer with.

/// A request for a number of hits, and the least number of them that is of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    min: u32,
    copies: u32,
}

/// The answer to a request. Times in nanoseconds, limits and hits of a second in hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Hits that are granted: 0, or between the least and the most that were asked for.
    pub granted: u32,
    /// The least hard limit of the policies.
    pub hard_limit: Option<u32>,
    /// The least global limit of the policies.
    pub global_limit: Option<u32>,
    /// The policy that allows the least, counted from 0; the first of equals. The tier is one of its tiers.
    pub policy: usize,
    /// The tier that is the current one after the grant; 0 is the fake one.
    pub tier: usize,
    /// Of that tier; 0 of the fake one.
    pub tier_limit: u32,
    /// The window in which that many hits may be made; 0 of the fake one.
    pub tier_window: u64,
    /// Those that count in that tier, the granted ones among them.
    pub hits_in_tier: u32,
    /// Hits of the domain in the last second, the granted ones among them. Exact where there is a hard limit, or else
    /// forgotten up to a sixteenth of a second too early.
    pub hits_in_second: u32,
    /// The same of all domains.
    pub hits_in_second_by_all: u32,
    /// Whether a tier was entered by this request, be it the first one.
    pub burst: bool,
    /// The limit that kept it from being granted in full.
    pub bound: Option<Bound>,
    /// If nothing is granted that was asked for: when it would be, if nobody asked before. `None` also if it never would be.
    /// A domain in debt is told when it can pay the next part.
    pub retry_at: Option<u64>,
    /// Hits that are owed after this.
    pub debt: u32,
}

/// A limit on a request. Where several bind equally, the first of them is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// Hits that were made and could not be counted yet.
    Debt,
    /// The tiers of the policy that the decision names.
    Tiers,
    /// The hard limit.
    Hard,
    /// The global limit.
    Global,
}

/// A decision that was not carried out yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub(super) decision: Decision,
    pub(super) now: u64,
    /// Hits that pay for debt.
    pub(super) paid: u32,
    /// The tier that takes all hits, if there is one policy and no tier is entered.
    pub(super) only_tier: Option<usize>,
}

// === impl Ask ===

impl Ask {
    /// One hit.
    pub const ONE: Ask = Ask { min: 1, copies: 1 };

    /// A request for so many hits or none.
    #[must_use]
    #[inline]
    pub const fn exactly(copies: u32) -> Ask {
        Ask { min: copies, copies }
    }

    /// As many as possible.
    #[must_use]
    pub const fn up_to(copies: u32) -> Ask {
        Ask::between(if copies == 0 { 0 } else { 1 }, copies)
    }

    /// As many as possible, or none if that is less than `min`.
    ///
    /// # Panics
    ///
    /// If `min` is greater than `copies`.
    #[must_use]
    #[inline]
    pub const fn between(min: u32, copies: u32) -> Ask {
        assert!(min <= copies, "the least is more than the most");
        Ask { min, copies }
    }

    /// The least that is of use.
    #[must_use]
    #[inline]
    pub const fn min(self) -> u32 {
        self.min
    }

    /// The most that is wanted.
    #[must_use]
    #[inline]
    pub const fn copies(self) -> u32 {
        self.copies
    }
}

// === impl Plan ===

impl Plan {
    /// The decision that will be the answer.
    #[must_use]
    #[inline]
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Hits that the domain will have made by this: those granted, and those that pay for debt.
    #[must_use]
    #[inline]
    pub fn hits(&self) -> u32 {
        self.paid + self.decision.granted
    }

    /// For when it was made, in nanoseconds.
    #[must_use]
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }
}
