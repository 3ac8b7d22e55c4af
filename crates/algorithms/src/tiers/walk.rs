//! The way of a request through the tiers of one policy: the rules themselves.
//!
//! Hits are granted one after the other, all at the same time. Each either fits into the current tier or bursts into one
//! above, which is the current one from then on. So the way leads upwards only, and once a hit is refused all after it are:
//! however many are asked for, those that are granted are the first steps of the same way.

use super::pool::Pool;
use super::window::{Rule, Status};

/// The view that a walk needs of the tiers at one time. Tiers are counted from 1.
pub(super) trait View {
    fn status(&self, tier: usize) -> Status;
    /// Hits that count.
    fn used(&self, tier: usize) -> u32;
}

/// The tiers as they are, at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment<'a> {
    pub(super) pool: &'a Pool,
    pub(super) rules: &'a [Rule],
    /// The queue before that of tier 1.
    pub(super) begin: usize,
    pub(super) now: u64,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// Where it is; 0 is the fake tier.
    pub(super) tier: usize,
    /// Hits that are not granted yet.
    pub(super) left: u32,
    /// Hits that count where it is, those that were granted among them.
    pub(super) used: u32,
    /// Whether it has burst.
    pub(super) has_burst: bool,
    is_begun: bool,
    wanted: u32,
}

/// Hits that are granted in one tier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) tier: usize,
    /// At least 1.
    pub(super) hits: u32,
    /// Whether the tier begins its active time with them.
    pub(super) is_entered: bool,
}

// === impl Moment ===

impl View for Moment<'_> {
    #[inline]
    fn status(&self, tier: usize) -> Status {
        self.rules[tier - 1].status(self.pool.time(self.begin + tier), self.now)
    }

    #[inline]
    fn used(&self, tier: usize) -> u32 {
        self.rules[tier - 1].used(self.pool, self.begin + tier, self.now)
    }
}

/// The active tier with the greatest index, or 0.
#[inline]
pub(super) fn current(rules: &[Rule], view: &impl View) -> usize {
    let is_active = |&tier: &usize| matches!(view.status(tier), Status::Active { .. });
    (1..=rules.len()).rev().find(is_active).unwrap_or(0)
}

/// Where a burst from `tier` leads, and the hits that count there.
fn above(rules: &[Rule], view: &impl View, tier: usize) -> Option<(usize, u32)> {
    for (rule, next) in rules.iter().zip(1..).skip(tier) {
        if rule.active == 0 {
            continue;
        }
        if view.status(next) == Status::Inactive {
            let used = view.used(next);
            if used < rule.limit {
                return Some((next, used));
            }
        }
        if !rule.is_skippable {
            return None;
        }
    }
    None
}

// === impl Walk ===

impl Walk {
    #[inline]
    pub(super) fn new(rules: &[Rule], view: &impl View, hits: u32) -> Walk {
        let tier = current(rules, view);
        let used = if tier > 0 { view.used(tier) } else { 0 };
        Walk { tier, left: hits, used, has_burst: false, is_begun: false, wanted: hits }
    }

    /// Hits that were granted.
    #[inline]
    pub(super) fn granted(&self) -> u32 {
        self.wanted - self.left
    }

    /// `None` when all hits are granted or no more can be.
    #[inline]
    pub(super) fn step(&mut self, rules: &[Rule], view: &impl View) -> Option<Step> {
        if self.left == 0 {
            return None;
        }
        if !self.is_begun && self.tier > 0 {
            self.is_begun = true;
            let room = rules[self.tier - 1].limit.saturating_sub(self.used);
            if room > 0 {
                return Some(self.grant(room, false));
            }
        }
        self.is_begun = true;
        (self.tier, self.used) = above(rules, view, self.tier)?;
        self.has_burst = true;
        Some(self.grant(rules[self.tier - 1].limit - self.used, true))
    }

    /// Goes as far as it can.
    #[inline]
    pub(super) fn run(mut self, rules: &[Rule], view: &impl View) -> Walk {
        while self.step(rules, view).is_some() {}
        self
    }

    #[inline]
    fn grant(&mut self, room: u32, is_entered: bool) -> Step {
        let hits = room.min(self.left);
        self.left -= hits;
        self.used += hits;
        Step { tier: self.tier, hits, is_entered }
    }
}
