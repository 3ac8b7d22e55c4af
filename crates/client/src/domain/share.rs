//! The share of a domain's limit that can be leased, so that all clients together never pass the limit.
//!
//! A client that holds a rate may have saved some of it up, and another one too. In any window `w`, whatever moves between
//! clients meanwhile, all of them together make at most `rate * w + saved` hits, with `saved` the most that all may have
//! saved up together. With a limit of `L` in a window it is `L` at the most where `rate * w + saved` is less than `L + 1`,
//! because hits are whole.
//!
//! So the lease is cut into *parts*: one, and one more for each ten of the limit. Who holds a part may save up one hit with
//! it, and what is left of the limit flows as the rate. All of a limit below ten flows, and nine tenths of a large one.
//! Where several limits hold, parts are those of the least, and the rate is the least that follows from any.

use std::time::Duration;

use lessor_algorithms::tiers::{Contract, TierPolicy, Windows};
use lessor_proto::Amount;

/// The number of hits of a limit for each further part.
const HITS_PER_PART: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);
/// Nanoseconds in a second, and millionths in a unit.
const SCALE: u128 = 1_000_000_000 * Amount::MICROS_PER_UNIT as u128;

/// The lease of a domain, for all clients together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    parts: u64,
    part: Amount,
}

/// Why limits cannot be leased.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotStrict {
    /// More than one tier.
    #[error("tiers are {0}; {WANTED}")]
    Tiers(usize),
    /// A tier that has to rest.
    #[error("cooldown {0:?}; {WANTED}")]
    Cooldown(Duration),
    /// A tier that lasts longer than its window, or shorter.
    #[error("active {active:?} is not the window, {window:?}; {WANTED}")]
    Active {
        /// The time for which it is active.
        active: Duration,
        /// Its window.
        window: Duration,
    },
    /// A tier that may be passed over.
    #[error("skippable means nothing where there is no other tier; {WANTED}")]
    Skippable,
    /// A limit that each client applies to all its domains.
    #[error(
        "global_limit {0} is about one client; the lease of the resource limits all domains with scope strict"
    )]
    Global(u32),
    /// Windows that are reset, which a lease has not.
    #[error("windows reset means nothing where no tier is entered; {WANTED}")]
    Windows,
    /// So few hits in so long a time that no rate is small enough.
    #[error("limit {limit} in {window:?} is less than a millionth of a hit a second, and cannot be leased")]
    Slow {
        /// Hits.
        limit: u32,
        /// In this time.
        window: Duration,
    },
}

const WANTED: &str = "with scope strict a policy is a hard_limit and at most one tier, which is active for its window and has no \
                      cooldown: a lease of a rate does not burst and rest";

// === impl Share ===

impl Share {
    /// The lease that follows from a contract; nothing if that closes the resource.
    ///
    /// # Errors
    /// With the first thing in it that cannot be leased.
    pub fn of(contract: &Contract) -> Result<Option<Share>, NotStrict> {
        contract.policies().iter().try_for_each(check)?;
        if contract.policies().iter().any(|policy| policy.tiers().is_empty()) {
            return Ok(None);
        }
        let limits = || contract.policies().iter().flat_map(limits_of);
        let least = limits().map(|(limit, _)| limit).min().unwrap_or(0);
        let parts = 1 + u64::from(least / HITS_PER_PART);
        let mut part = u64::MAX / parts;
        for (limit, window) in limits() {
            let hits = u128::from(limit) + 1 - u128::from(parts);
            // A hit counts to the last nanosecond of its window, and the next one is made after that.
            let micros = hits * SCALE / ((window.as_nanos() + 1) * u128::from(parts));
            part = part.min(u64::try_from(micros).unwrap_or(u64::MAX));
            if part == 0 {
                return Err(NotStrict::Slow { limit, window });
            }
        }
        Ok(Some(Share { parts, part: Amount::from_micros(part) }))
    }

    /// All of it, in hits a second: whole parts.
    #[must_use]
    pub fn capacity(&self) -> Amount {
        Amount::from_micros(self.part.as_micros() * self.parts)
    }

    /// The number of its parts: so many hits can be saved up by all clients together, and so many clients can hold
    /// a part of it at the same time.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.parts
    }

    /// The amount of a part: each grant is a multiple of it.
    #[must_use]
    pub fn part(&self) -> Amount {
        self.part
    }

    /// In what time a part brings a hit: the first one after it was granted.
    #[must_use]
    pub fn first_hit(&self) -> Duration {
        let nanos = SCALE.div_ceil(u128::from(self.part.as_micros()));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Whether the limits of a policy can be leased.
fn check(policy: &TierPolicy) -> Result<(), NotStrict> {
    if let Some(global) = policy.global_limit() {
        return Err(NotStrict::Global(global));
    }
    if policy.windows() == Windows::Reset {
        return Err(NotStrict::Windows);
    }
    match policy.tiers() {
        [tier] if !tier.cooldown.is_zero() => Err(NotStrict::Cooldown(tier.cooldown)),
        [tier] if tier.is_skippable => Err(NotStrict::Skippable),
        [tier] if tier.active != tier.window => {
            Err(NotStrict::Active { active: tier.active, window: tier.window })
        }
        [] | [_] => Ok(()),
        tiers => Err(NotStrict::Tiers(tiers.len())),
    }
}

/// The limits of a policy, each with its window.
fn limits_of(policy: &TierPolicy) -> impl Iterator<Item = (u32, Duration)> + use<'_> {
    let tiers = policy.tiers().iter().map(|tier| (tier.limit, tier.window));
    tiers.chain(policy.hard_limit().map(|limit| (limit, SECOND)))
}

// === impl NotStrict ===

impl NotStrict {
    /// The field of a policy, or of its tier, that holds it.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            NotStrict::Tiers(_) => "tiers",
            NotStrict::Cooldown(_) => "cooldown",
            NotStrict::Active { .. } => "active",
            NotStrict::Skippable => "skippable",
            NotStrict::Global(_) => "global_limit",
            NotStrict::Windows => "windows",
            NotStrict::Slow { .. } => "limit",
        }
    }
}

#[cfg(test)]
mod tests {
    use lessor_algorithms::tiers::{Tier, Window};

    use super::*;

    fn tier(limit: u32, window: u64) -> Tier {
        let window = Duration::from_secs(window);
        Tier {
            limit,
            window,
            active: window,
            cooldown: Duration::ZERO,
            is_skippable: false,
            kind: Window::Exact,
        }
    }

    fn share(tiers: Vec<Tier>, hard: Option<u32>) -> Result<Option<Share>, NotStrict> {
        Share::of(&Contract::from(TierPolicy::new(tiers, hard, None).unwrap()))
    }

    #[track_caller]
    fn check(tiers: Vec<Tier>, hard: Option<u32>, parts: u64, capacity: f64) {
        let share = share(tiers, hard).unwrap().unwrap();
        assert_eq!((share.parts(), share.capacity().as_f64()), (parts, capacity));
        let part = u128::from(share.part().as_micros());
        let brought = part * share.first_hit().as_nanos();
        assert!((SCALE..SCALE + part).contains(&brought), "{brought}");
    }

    #[test]
    fn all_of_a_small_limit_flows_and_nine_tenths_of_a_large_one() {
        check(vec![tier(1, 10)], None, 1, 0.099_999);
        check(vec![tier(5, 1)], None, 1, 4.999_999);
        check(vec![tier(10, 1)], None, 2, 8.999_998);
        check(vec![tier(19, 1)], None, 2, 17.999_998);
        check(vec![tier(100, 10)], None, 11, 8.999_991);
        check(vec![tier(1_000, 1)], None, 101, 899.999_991);
    }

    #[test]
    fn the_least_of_all_limits_decides() {
        check(vec![tier(100, 10)], Some(80), 9, 9.199_998);
        check(vec![tier(100, 10)], Some(8), 1, 7.999_999);
        let policies = [(300, 10), (40, 1)]
            .map(|(limit, window)| TierPolicy::new(vec![tier(limit, window)], None, None));
        let contract = Contract::new(policies.map(Result::unwrap).to_vec()).unwrap();
        assert_eq!(Share::of(&contract).unwrap().unwrap().capacity(), Amount::from_micros(29_599_995));
    }

    #[test]
    fn without_tiers_it_is_closed() {
        assert_eq!(share(vec![], Some(80)), Ok(None));
    }

    #[test]
    fn what_bursts_or_rests_is_told_with_its_field() {
        let second = Duration::from_secs(1);
        let cases = [
            (vec![tier(5, 1), tier(50, 5)], None, "tiers"),
            (vec![Tier { cooldown: second, ..tier(5, 1) }], None, "cooldown"),
            (vec![Tier { active: second * 2, ..tier(5, 1) }], None, "active"),
            (vec![Tier { is_skippable: true, ..tier(5, 1) }], None, "skippable"),
            (vec![tier(1, 2_000_000)], None, "limit"),
            (vec![tier(5, 1)], Some(9), "global_limit"),
        ];
        for (tiers, global, field) in cases {
            let contract = Contract::from(TierPolicy::new(tiers, None, global).unwrap());
            let why = Share::of(&contract).unwrap_err();
            assert_eq!(why.field(), field, "{why}");
        }
        let reset = TierPolicy::new(vec![tier(5, 1)], None, None).unwrap().with_windows(Windows::Reset);
        assert_eq!(Share::of(&Contract::from(reset)), Err(NotStrict::Windows));
        assert_eq!(NotStrict::Windows.field(), "windows");
        let told = share(vec![tier(5, 1), tier(50, 5)], None).unwrap_err().to_string();
        assert!(told.starts_with(
            "tiers are 2; with scope strict a policy is a hard_limit and at most one tier, which"
        ));
    }
}
