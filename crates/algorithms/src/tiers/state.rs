//! A look at a domain: what each of its tiers does.

use super::domain::Domain;
use super::policy::Contract;
use super::walk::{View, current};
use super::window::Status;

/// A tier of a domain at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierState {
    /// Counted from 0.
    pub policy: usize,
    /// Counted from 1.
    pub tier: usize,
    /// Whether it is inactive, active or cooling down, and until when.
    pub status: Status,
    /// Whether it is the current tier of its policy.
    pub is_current: bool,
    /// Hits in a window.
    pub limit: u32,
    /// Hits that count.
    pub hits: u32,
    /// Hits that fit in.
    pub remaining: u32,
}

/// All tiers of a domain at a time, in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The current tier of the policy that has the least part of its limit left; nothing where none is active.
    pub current: Option<TierState>,
    /// The first nanosecond at which no tier cools down; nothing if none does.
    pub cooling_until: Option<u64>,
}

// === impl TierState ===

impl TierState {
    /// The part of the limit that is left, from 0 to 1.
    #[must_use]
    pub fn left(&self) -> f64 {
        f64::from(self.remaining) / f64::from(self.limit)
    }
}

// === impl Domain ===

impl Domain {
    /// The tiers of all policies, in order.
    pub fn tiers<'a>(&'a self, contract: &'a Contract, now: u64) -> impl Iterator<Item = TierState> + 'a {
        let now = now.max(self.last());
        (0..contract.policies().len()).flat_map(move |policy| {
            let moment = self.moment(contract, policy, now);
            let current = current(moment.rules, &moment);
            (1..=moment.rules.len()).map(move |tier| {
                let (limit, hits) = (moment.rules[tier - 1].limit, moment.used(tier));
                TierState {
                    policy,
                    tier,
                    status: moment.status(tier),
                    is_current: tier == current,
                    limit,
                    hits,
                    remaining: limit.saturating_sub(hits),
                }
            })
        })
    }

    /// Where it stands, in short.
    #[must_use]
    pub fn standing(&self, contract: &Contract, now: u64) -> Standing {
        let mut standing = Standing { current: None, cooling_until: None };
        for tier in self.tiers(contract, now) {
            if let Status::Cooling { until } = tier.status {
                standing.cooling_until = standing.cooling_until.max(Some(until));
            }
            if tier.is_current && standing.current.is_none_or(|least| tier.left() < least.left()) {
                standing.current = Some(tier);
            }
        }
        standing
    }

    /// Hits that were made and could not be counted yet.
    #[must_use]
    pub fn debt(&self) -> u32 {
        self.pool.debt()
    }

    /// Hits of the last second, as exact as [`super::Decision::hits_in_second`].
    #[must_use]
    pub fn hits_in_second(&self, contract: &Contract, now: u64) -> u32 {
        contract.second().used(&self.pool, 0, now.max(self.last()))
    }
}
