//! Tiers, policies and contracts: the limits of a domain, checked once.

use std::fmt;

use super::tier::{Tier, Window, Windows};
use super::window::{Measure, Rule};

/// The most tiers that a policy may have.
pub const MOST_TIERS: usize = 8;

/// The most policies that a contract may have.
pub const MOST_POLICIES: usize = 16;

/// The tiers of a domain, in ascending order, and what it may do in a second.
///
/// ```
/// use std::time::Duration;
/// use lessor_algorithms::tiers::{TierPolicy, Tier, Window};
///
/// let tier = |limit, window, active, cooldown| Tier {
///     limit,
///     window: Duration::from_secs(window),
///     active: Duration::from_secs(active),
///     cooldown: Duration::from_secs(cooldown),
///     is_skippable: false,
///     kind: Window::Exact,
/// };
/// assert!(TierPolicy::new(vec![tier(5, 1, 1, 0), tier(50, 5, 5, 15)], Some(20), None).is_ok());
///
/// let wrong = TierPolicy::new(vec![tier(5, 1, 1, 0), tier(0, 5, 5, 15)], None, None);
/// assert_eq!(wrong.unwrap_err().to_string(), "tier 2: limit 0 grants nothing, at least 1 is wanted");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TierPolicy {
    tiers: Vec<Tier>,
    hard: Option<u32>,
    global: Option<u32>,
    windows: Windows,
}

/// Why something is not a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// The limit of a tier is 0.
    Limit {
        /// Counted from 1.
        tier: usize,
    },
    /// The window of a tier is empty.
    Window {
        /// Counted from 1.
        tier: usize,
    },
    /// A time is beyond 2^64 nanoseconds, 584 years.
    Long {
        /// Counted from 1.
        tier: usize,
        /// Which of the times.
        field: &'static str,
    },
    /// A window of no slices.
    Slices {
        /// Counted from 1.
        tier: usize,
    },
    /// The hard limit is 0.
    Hard,
    /// The global limit is 0.
    Global,
    /// More than [`MOST_TIERS`].
    Tiers {
        /// The number of tiers.
        found: usize,
    },
    /// None, or more than [`MOST_POLICIES`].
    Policies {
        /// The number of policies.
        found: usize,
    },
}

/// The policies of one domain, all of which must hold, in the form in which they are applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contract {
    policies: Vec<TierPolicy>,
    /// The tiers of all policies, one after the other.
    rules: Vec<Rule>,
    /// Where in `rules` each policy ends.
    ends: Vec<usize>,
    /// The least of all hard limits.
    hard: Option<u32>,
    /// The least of all global limits.
    global: Option<u32>,
}

// === impl TierPolicy ===

impl TierPolicy {
    /// `tiers` in ascending order; at most `hard` hits a second by one domain, and `global` by all. Without tiers the
    /// resource is closed.
    ///
    /// # Errors
    ///
    /// If a limit is 0, a window is empty, a time too long, or there are too many tiers.
    pub fn new(tiers: Vec<Tier>, hard: Option<u32>, global: Option<u32>) -> Result<TierPolicy, Invalid> {
        if tiers.len() > MOST_TIERS {
            return Err(Invalid::Tiers { found: tiers.len() });
        }
        for (tier, number) in tiers.iter().zip(1..) {
            check(tier, number)?;
        }
        match (hard, global) {
            (Some(0), _) => Err(Invalid::Hard),
            (_, Some(0)) => Err(Invalid::Global),
            _ => Ok(TierPolicy { tiers, hard, global, windows: Windows::Keep }),
        }
    }

    /// The same policy with other windows; those of [`TierPolicy::new`] are kept.
    #[must_use]
    pub fn with_windows(self, windows: Windows) -> TierPolicy {
        TierPolicy { windows, ..self }
    }

    /// The way in which earlier hits count when a tier is entered again.
    #[must_use]
    pub fn windows(&self) -> Windows {
        self.windows
    }

    /// In ascending order; tier 1 comes first.
    #[must_use]
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// Hits a second by one domain.
    #[must_use]
    #[inline]
    pub fn hard_limit(&self) -> Option<u32> {
        self.hard
    }

    /// Hits a second by all domains.
    #[must_use]
    #[inline]
    pub fn global_limit(&self) -> Option<u32> {
        self.global
    }
}

impl TierPolicy {
    fn rules(&self) -> impl Iterator<Item = Rule> {
        self.tiers.iter().map(|tier| Rule::new(tier, self.windows))
    }
}

/// Looks for what makes a tier meaningless. It is the `number`th.
fn check(tier: &Tier, number: usize) -> Result<(), Invalid> {
    let times = [("window", tier.window), ("active time", tier.active), ("cooldown", tier.cooldown)];
    for (field, time) in times {
        if time.as_nanos() > u128::from(u64::MAX) {
            return Err(Invalid::Long { tier: number, field });
        }
    }
    if tier.limit == 0 {
        return Err(Invalid::Limit { tier: number });
    }
    if tier.window.is_zero() {
        return Err(Invalid::Window { tier: number });
    }
    if tier.kind == (Window::Sliding { slices: 0 }) {
        return Err(Invalid::Slices { tier: number });
    }
    Ok(())
}

// === impl Contract ===

impl Contract {
    /// Of one policy or several. The least of their hard and global limits count.
    ///
    /// # Errors
    ///
    /// If there is none, or there are too many.
    pub fn new(policies: Vec<TierPolicy>) -> Result<Contract, Invalid> {
        if policies.is_empty() || policies.len() > MOST_POLICIES {
            return Err(Invalid::Policies { found: policies.len() });
        }
        let rules = policies.iter().flat_map(TierPolicy::rules).collect();
        let ends = policies.iter().scan(0, |end, policy| {
            *end += policy.tiers.len();
            Some(*end)
        });
        let ends = ends.collect();
        let hard = policies.iter().filter_map(|policy| policy.hard).min();
        let global = policies.iter().filter_map(|policy| policy.global).min();
        Ok(Contract { policies, rules, ends, hard, global })
    }

    /// The policies that it was made of.
    #[must_use]
    #[inline]
    pub fn policies(&self) -> &[TierPolicy] {
        &self.policies
    }

    /// The least of the hard limits, in hits a second.
    #[must_use]
    #[inline]
    pub fn hard_limit(&self) -> Option<u32> {
        self.hard
    }

    /// The least of the global limits, in hits a second.
    #[must_use]
    #[inline]
    pub fn global_limit(&self) -> Option<u32> {
        self.global
    }

    /// The tiers of one policy.
    #[inline]
    pub(super) fn rules(&self, policy: usize) -> &[Rule] {
        &self.rules[self.begin(policy)..self.ends[policy]]
    }

    /// The queue of the fake tier of a policy, so that adding the index of a tier gives that tier's. Queue 0 is the second's.
    #[inline]
    pub(super) fn begin(&self, policy: usize) -> usize {
        if policy == 0 { 0 } else { self.ends[policy - 1] }
    }

    /// Queues of a domain: one for each tier and one for the second.
    #[inline]
    pub(super) fn queues(&self) -> usize {
        self.rules.len() + 1
    }

    /// The measure of the hits of the last second: exact if they are limited.
    #[inline]
    pub(super) fn second(&self) -> Measure {
        if self.hard.is_some() { Measure::SECOND } else { Measure::ABOUT_A_SECOND }
    }
}

impl From<TierPolicy> for Contract {
    fn from(policy: TierPolicy) -> Contract {
        Contract::new(vec![policy]).unwrap_or_else(|_| unreachable!("there is one"))
    }
}

// === impl Invalid ===

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Limit { tier } => {
                write!(f, "tier {tier}: limit 0 grants nothing, at least 1 is wanted")
            }
            Invalid::Window { tier } => write!(f, "tier {tier}: the window is empty"),
            Invalid::Long { tier, field } => write!(f, "tier {tier}: the {field} is longer than 584 years"),
            Invalid::Slices { tier } => write!(f, "tier {tier}: a window of 0 slices, at least 1 is wanted"),
            Invalid::Hard => write!(f, "hard limit 0 grants nothing, at least 1 is wanted"),
            Invalid::Global => write!(f, "global limit 0 grants nothing, at least 1 is wanted"),
            Invalid::Tiers { found } => write!(f, "{found} tiers, at most {MOST_TIERS} are wanted"),
            Invalid::Policies { found } => {
                write!(f, "{found} policies in a contract, 1 to {MOST_POLICIES} are wanted")
            }
        }
    }
}

impl std::error::Error for Invalid {}
