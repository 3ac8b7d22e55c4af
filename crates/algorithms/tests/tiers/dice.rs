//! Random policies and times, from a seed.

use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window, Windows};

/// The times of random policies are multiples of this, so that much happens at the same moment. Nanoseconds.
pub(crate) const UNIT: u64 = 100_000_000;

/// Splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

// === impl Dice ===

impl Dice {
    /// Below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }

    /// From 1 to `last`.
    pub(crate) fn hits(&mut self, last: u64) -> u32 {
        u32::try_from(1 + self.below(last)).unwrap()
    }

    /// In one of `of` cases.
    pub(crate) fn is_one_of(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn units(&mut self, first: u64, last: u64) -> Duration {
        Duration::from_nanos(UNIT * (first + self.below(last - first + 1)))
    }

    pub(crate) fn kind(&mut self) -> Window {
        match self.below(6) {
            0 => Window::Sliding { slices: u16::try_from(1 + self.below(5)).unwrap() },
            1 => Window::Fixed,
            2 => Window::Bucket,
            _ => Window::Exact,
        }
    }

    fn tier(&mut self, kind: Window) -> Tier {
        Tier {
            limit: self.hits(8),
            window: self.units(1, 12),
            active: if self.is_one_of(16) { Duration::ZERO } else { self.units(1, 30) },
            cooldown: if self.is_one_of(3) { Duration::ZERO } else { self.units(1, 30) },
            is_skippable: self.is_one_of(3),
            kind,
        }
    }

    pub(crate) fn policy(&mut self, kind: impl Fn(&mut Dice) -> Window) -> TierPolicy {
        let tiers = if self.is_one_of(16) { 0 } else { 1 + self.below(4) };
        let tiers = (0..tiers).map(|_| {
            let kind = kind(self);
            self.tier(kind)
        });
        let tiers = tiers.collect();
        let hard = self.is_one_of(3).then(|| self.hits(12));
        let global = self.is_one_of(4).then(|| self.hits(20));
        TierPolicy::new(tiers, hard, global).unwrap()
    }

    /// Each policy keeps its windows or resets them.
    pub(crate) fn either_windows(&mut self, contract: &Contract) -> Contract {
        let policies = contract.policies().iter().cloned();
        let policies = policies.map(|policy| match self.is_one_of(2) {
            true => policy.with_windows(Windows::Reset),
            false => policy,
        });
        Contract::new(policies.collect()).unwrap()
    }

    /// Of one policy in half of all cases, or else of up to three.
    pub(crate) fn contract(&mut self, kind: impl Fn(&mut Dice) -> Window) -> Contract {
        let policies = if self.is_one_of(2) { 1 } else { 2 + self.below(2) };
        Contract::new((0..policies).map(|_| self.policy(&kind)).collect()).unwrap()
    }

    /// The time until something happens: nothing, the least, a bit, a multiple of the unit, or that and the least
    /// more or less.
    pub(crate) fn wait(&mut self) -> u64 {
        match self.below(8) {
            0 | 1 => 0,
            2 => 1,
            3 => self.below(UNIT),
            4 => UNIT * self.below(40),
            _ => (UNIT * (1 + self.below(4)) + self.below(3)) - 1,
        }
    }
}
