//! Policies as they are meant.
//!
//! What Charon makes of a configuration before it uses it: what has no effect, or none that somebody could have meant, is
//! taken out, and said.

use std::fmt;
use std::time::Duration;

use super::policy::TierPolicy;
use super::tier::Tier;

/// Nanoseconds.
const SECOND: u128 = 1_000_000_000;

/// A change that was made to a policy. Tiers are counted from 1, as they were before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Normalisation {
    /// A tier that is never active was dropped.
    Dropped {
        /// Which one.
        tier: usize,
    },
    /// A window was cut to the active time.
    WindowCut {
        /// Of which tier.
        tier: usize,
        /// The window as it was.
        from: Duration,
        /// The window as it is.
        to: Duration,
    },
    /// An active time was trimmed to whole windows.
    ActiveTrimmed {
        /// Of which tier.
        tier: usize,
        /// The active time as it was.
        from: Duration,
        /// The active time as it is.
        to: Duration,
    },
    /// A limit was more than the global limit lets through in a window, and was lowered to that.
    LimitLowered {
        /// Of which tier.
        tier: usize,
        /// The limit as it was.
        from: u32,
        /// As it is.
        to: u32,
    },
    /// The hard limit was above the global limit, and was lowered to it.
    HardLowered {
        /// The limit as it was.
        from: u32,
        /// As it is.
        to: u32,
    },
}

/// The policy as it is meant, and what was changed, in the order of the tiers. Once done, doing it again changes nothing.
///
/// ```
/// use std::time::Duration;
/// use lessor_algorithms::tiers::{TierPolicy, Tier, Window, normalise};
///
/// let tier = Tier {
///     limit: 100,
///     window: Duration::from_secs(10),
///     active: Duration::from_secs(25),
///     cooldown: Duration::ZERO,
///     is_skippable: false,
///     kind: Window::Exact,
/// };
/// let (policy, changes) = normalise(&TierPolicy::new(vec![tier], None, None)?);
/// assert_eq!(policy.tiers()[0].active, Duration::from_secs(20));
/// assert_eq!(changes[0].to_string(), "tier 1: active time 25s is trimmed to whole windows, 20s");
/// # Ok::<(), lessor_algorithms::tiers::Invalid>(())
/// ```
#[must_use]
pub fn normalise(policy: &TierPolicy) -> (TierPolicy, Vec<Normalisation>) {
    let global = policy.global_limit();
    let mut changes = Vec::new();
    let mut tiers = Vec::new();
    for (tier, number) in policy.tiers().iter().zip(1..) {
        if tier.active.is_zero() {
            changes.push(Normalisation::Dropped { tier: number });
        } else {
            tiers.push(normal(tier.clone(), number, global, &mut changes));
        }
    }
    let hard = match (policy.hard_limit(), global) {
        (Some(from), Some(to)) if from > to => {
            changes.push(Normalisation::HardLowered { from, to });
            Some(to)
        }
        (hard, _) => hard,
    };
    let normal = TierPolicy::new(tiers, hard, global);
    let normal = normal.unwrap_or_else(|_| unreachable!("nothing becomes empty by this"));
    (normal.with_windows(policy.windows()), changes)
}

/// One tier, the `number`th, which has an active time.
fn normal(mut tier: Tier, number: usize, global: Option<u32>, changes: &mut Vec<Normalisation>) -> Tier {
    if tier.window > tier.active {
        changes.push(Normalisation::WindowCut { tier: number, from: tier.window, to: tier.active });
        tier.window = tier.active;
    }
    let rest = tier.active.as_nanos() % tier.window.as_nanos();
    if rest > 0 {
        // What is left of a duration fits into one.
        let to = tier.active - Duration::from_nanos(u64::try_from(rest).unwrap_or(u64::MAX));
        changes.push(Normalisation::ActiveTrimmed { tier: number, from: tier.active, to });
        tier.active = to;
    }
    let most = global.map_or(u32::MAX, |global| passes(global, tier.window));
    if tier.limit > most {
        changes.push(Normalisation::LimitLowered { tier: number, from: tier.limit, to: most });
        tier.limit = most;
    }
    tier
}

/// The most hits that a limit of `per_second` lets through in a window. A hit counts to the last nanosecond of a second,
/// and so it does in a window: as many times the limit as seconds were begun in it, of a nanosecond more each.
fn passes(per_second: u32, window: Duration) -> u32 {
    let seconds = (window.as_nanos() + 1).div_ceil(SECOND + 1);
    u32::try_from(seconds.saturating_mul(u128::from(per_second))).unwrap_or(u32::MAX)
}

// === impl Normalisation ===

impl fmt::Display for Normalisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Normalisation::Dropped { tier } => write!(f, "tier {tier} has no active time and is dropped"),
            Normalisation::WindowCut { tier, from, to } => {
                write!(f, "tier {tier}: window {from:?} is cut to the active time, {to:?}")
            }
            Normalisation::ActiveTrimmed { tier, from, to } => {
                write!(f, "tier {tier}: active time {from:?} is trimmed to whole windows, {to:?}")
            }
            Normalisation::LimitLowered { tier, from, to } => {
                write!(
                    f,
                    "tier {tier}: limit {from} is lowered to {to}, all that the global limit lets through"
                )
            }
            Normalisation::HardLowered { from, to } => {
                write!(f, "hard limit {from} is lowered to the global limit, {to}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiers::Window;

    /// Limit, window, active time, cooldown, in milliseconds.
    fn tier(limit: u32, window: u64, active: u64, cooldown: u64) -> Tier {
        Tier {
            limit,
            window: Duration::from_millis(window),
            active: Duration::from_millis(active),
            cooldown: Duration::from_millis(cooldown),
            is_skippable: false,
            kind: Window::Exact,
        }
    }

    fn check(tiers: &[Tier], limits: [Option<u32>; 2], expected: &[Tier], changes: &[&str]) -> TierPolicy {
        let [hard, global] = limits;
        let (policy, told) = normalise(&TierPolicy::new(tiers.to_vec(), hard, global).unwrap());
        assert_eq!(policy.tiers(), expected);
        assert_eq!(told.iter().map(ToString::to_string).collect::<Vec<_>>(), changes);
        assert_eq!(normalise(&policy), (policy.clone(), vec![]));
        policy
    }

    #[test]
    fn a_policy_that_says_what_it_means_stays_as_it_is() {
        let tiers = [tier(5, 1000, 1000, 0), tier(50, 5000, 10_000, 15_000)];
        check(&tiers, [Some(20), Some(100)], &tiers, &[]);
        check(&[], [None, None], &[], &[]);
    }

    #[test]
    fn each_change_is_told_with_the_number_that_the_tier_had() {
        check(
            &[tier(1, 1, 0, 7), tier(2, 300, 200, 7), tier(3, 1000, 2999, 0), tier(4, 400, 900, 0)],
            [None, None],
            &[tier(2, 200, 200, 7), tier(3, 1000, 2000, 0), tier(4, 400, 800, 0)],
            &[
                "tier 1 has no active time and is dropped",
                "tier 2: window 300ms is cut to the active time, 200ms",
                "tier 3: active time 2.999s is trimmed to whole windows, 2s",
                "tier 4: active time 900ms is trimmed to whole windows, 800ms",
            ],
        );
    }

    #[test]
    fn limits_that_the_global_one_never_lets_be_reached_are_lowered_to_what_it_does() {
        let policy = check(
            &[
                tier(101, 1000, 1000, 0),
                tier(6001, 60_000, 60_000, 0),
                tier(500, 100, 100, 0),
                tier(6000, 60_000, 60_000, 0),
            ],
            [Some(200), Some(100)],
            &[
                tier(100, 1000, 1000, 0),
                tier(6000, 60_000, 60_000, 0),
                tier(100, 100, 100, 0),
                tier(6000, 60_000, 60_000, 0),
            ],
            &[
                "tier 1: limit 101 is lowered to 100, all that the global limit lets through",
                "tier 2: limit 6001 is lowered to 6000, all that the global limit lets through",
                "tier 3: limit 500 is lowered to 100, all that the global limit lets through",
                "hard limit 200 is lowered to the global limit, 100",
            ],
        );
        assert_eq!((policy.hard_limit(), policy.global_limit()), (Some(100), Some(100)));
        assert_eq!(passes(u32::MAX, Duration::from_nanos(u64::MAX)), u32::MAX);
        // The sixty-first second is begun.
        assert_eq!(passes(7, Duration::from_nanos(60_000_000_060)), 7 * 61);
        assert_eq!(passes(7, Duration::from_nanos(60_000_000_059)), 7 * 60);
    }
}
