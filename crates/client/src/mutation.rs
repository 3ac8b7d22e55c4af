//! Rules of a holder that can be taken out one by one, to see that a test notices.
//!
//! Without the feature `mutations` nothing can be taken out: [`HolderRules`] is empty and every question to it is answered yes.

/// The rules of a holder, perhaps with one of them taken out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HolderRules {
    #[cfg(feature = "mutations")]
    without: Option<HolderRule>,
}

/// A rule of a holder: of a client, and of a node towards the one above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HolderRule {
    /// Grants are adopted in the order in which they were made.
    InOrder,
    /// A lease is counted from the report that its grant answers.
    FromReport,
    /// A renewal extends a lease if the last grant was adopted.
    RenewAdopted,
    /// Capacity that a report gives back is used no more.
    PromiseKept,
    /// Leaders of epochs below the fence are not reported to, nor are their grants adopted.
    Fence,
    /// A node reports that it holds all that it has handed out.
    OutIsHeld,
    /// A client reports that it holds the units of a gauge that are in use, also where its lease is less.
    UnitsHeld,
    /// Units of a gauge are told as such for as long as any count, also where their holder takes the resource for a rate by now.
    UnitsAreUnits,
    /// Units of a gauge in use are read after the limit is lowered, and a report is built of that.
    UseReadAfter,
    /// The deadline of a permit moves ahead with each lease until it has passed.
    DeadlineStays,
    /// Safe capacity is used where it is no more than the last lease gave.
    SafeWithinLease,
    /// A grant of nothing by a server that is learning does not end safe capacity.
    SafeWhileLearning,
    /// A use in a window is granted only under a lease that lasts until the unit is free again.
    LeaseOutlives,
    /// A unit is kept for the window on the fastest clock that there may be.
    WindowOutlasted,
    /// A refund frees the unit that would be free first.
    RefundFirst,
    /// Uses in a window are not given back by whoever leaves.
    UsesLeft,
    /// A job that was done is said on the next stream as well, to a grantor that asks for it there.
    JobsSaidAgain,
}

#[cfg(feature = "mutations")]
thread_local! {
    static ASKED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Takes the rules that this thread has asked for since they were last taken: a bit for each, by its number.
#[cfg(feature = "mutations")]
#[must_use]
pub fn take_asked() -> u64 {
    ASKED.take()
}

// === impl HolderRule ===

impl HolderRule {
    /// All of them.
    pub const ALL: [HolderRule; 17] = [
        HolderRule::InOrder,
        HolderRule::FromReport,
        HolderRule::RenewAdopted,
        HolderRule::PromiseKept,
        HolderRule::Fence,
        HolderRule::OutIsHeld,
        HolderRule::UnitsHeld,
        HolderRule::UnitsAreUnits,
        HolderRule::UseReadAfter,
        HolderRule::DeadlineStays,
        HolderRule::SafeWithinLease,
        HolderRule::SafeWhileLearning,
        HolderRule::LeaseOutlives,
        HolderRule::WindowOutlasted,
        HolderRule::RefundFirst,
        HolderRule::UsesLeft,
        HolderRule::JobsSaidAgain,
    ];
}

// === impl HolderRules ===

impl HolderRules {
    /// All but one of them.
    #[cfg(feature = "mutations")]
    #[must_use]
    pub const fn without(rule: HolderRule) -> HolderRules {
        HolderRules { without: Some(rule) }
    }

    /// Whether that one is kept.
    pub(crate) fn keep(self, rule: HolderRule) -> bool {
        #[cfg(feature = "mutations")]
        {
            ASKED.set(ASKED.get() | 1 << rule as u32);
            self.without != Some(rule)
        }
        #[cfg(not(feature = "mutations"))]
        {
            let _ = rule;
            true
        }
    }
}
