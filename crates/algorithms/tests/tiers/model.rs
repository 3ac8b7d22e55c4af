//! The rules word for word, on lists of hits, one hit after the other. Slow, and too simple to be wrong.

use std::time::Duration;

use lessor_algorithms::tiers::{Ask, Bound, Contract, Tier, TierPolicy, Window, Windows};

const SECOND: u64 = 1_000_000_000;

/// One domain.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) histories: Vec<History>,
    hard: Option<u32>,
    global: Option<u32>,
    /// When the hits of the domain were made.
    pub(crate) hits: Vec<u64>,
    pub(crate) debt: u32,
    pub(crate) last: u64,
}

/// The history of the tiers of one policy.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) tiers: Vec<Tier>,
    windows: Windows,
    /// When each tier was entered.
    pub(crate) since: Vec<Option<u64>>,
    pub(crate) hits: Vec<Hit>,
}

/// A hit that was logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) at: u64,
    /// Counted from 1.
    pub(crate) tier: usize,
    /// When the tier was entered in which it was made.
    since: u64,
}

/// The answer of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) granted: u32,
    pub(crate) policy: usize,
    pub(crate) tier: usize,
    pub(crate) tier_limit: u32,
    pub(crate) hits_in_tier: u32,
    pub(crate) burst: bool,
    pub(crate) bound: Option<Bound>,
    pub(crate) debt: u32,
}

// === impl Model ===

impl Model {
    pub(crate) fn new(contract: &Contract) -> Model {
        let histories = contract.policies().iter().map(History::new).collect();
        let (hard, global) = (contract.hard_limit(), contract.global_limit());
        Model { histories, hard, global, hits: Vec::new(), debt: 0, last: 0 }
    }

    /// `by_all` are the hits of all domains.
    pub(crate) fn request(&mut self, by_all: &mut Vec<u64>, now: u64, ask: Ask) -> Answer {
        let now = now.max(self.last);
        self.last = now;
        let debt = self.debt;
        let want = debt + ask.copies();
        let before = (self.clone(), by_all.clone());
        let (allowed, bound, policy) = self.allowed(by_all, now, want);

        let made = (0..want).take_while(|_| self.hit(by_all, now)).count();
        assert_eq!(made, allowed as usize, "the least that one of the limits allows is what all of them do");
        let left = allowed.saturating_sub(debt);
        let granted = if allowed < debt || left < ask.min() { 0 } else { left };
        let paid = allowed.min(debt);
        (*self, *by_all) = before;
        let tiers_before = self.histories[policy].since.clone();
        (0..paid + granted).for_each(|_| assert!(self.hit(by_all, now)));
        self.debt = debt - paid;

        let history = &self.histories[policy];
        let tier = history.current(now);
        let burst = paid + granted > 0 && history.since != tiers_before;
        let bound = if granted == ask.copies() {
            None
        } else if paid < debt {
            Some(Bound::Debt)
        } else {
            bound
        };
        let (tier_limit, hits_in_tier) = match tier {
            0 => (0, 0),
            _ => (history.tiers[tier - 1].limit, history.used(tier, now)),
        };
        Answer { granted, policy, tier, tier_limit, hits_in_tier, burst, bound, debt: self.debt }
    }

    /// Returns how many of `want` hits the strictest limit allows, which one that is, and the strictest policy.
    fn allowed(&self, by_all: &[u64], now: u64, want: u32) -> (u32, Option<Bound>, usize) {
        let alone = |history: &History| {
            let mut history = history.clone();
            (0..want).take_while(|_| history.hit(now)).count() as u32
        };
        let (policy, allowed) = self
            .histories
            .iter()
            .map(alone)
            .enumerate()
            .min_by_key(|&(policy, allowed)| (allowed, policy))
            .unwrap();
        let mut strictest = (allowed, (allowed < want).then_some(Bound::Tiers));
        let others = [
            (self.hard, of_second(&self.hits, now), Bound::Hard),
            (self.global, of_second(by_all, now), Bound::Global),
        ];
        for (limit, used, bound) in others {
            if let Some(limit) = limit
                && limit.saturating_sub(used) < strictest.0
            {
                strictest = (limit.saturating_sub(used), Some(bound));
            }
        }
        (strictest.0, strictest.1, policy)
    }

    /// One hit, if all limits allow it.
    fn hit(&mut self, by_all: &mut Vec<u64>, now: u64) -> bool {
        let fits = |limit: Option<u32>, hits: &[u64]| limit.is_none_or(|limit| of_second(hits, now) < limit);
        let fits = fits(self.hard, &self.hits) && fits(self.global, by_all);
        let all = fits && self.histories.iter().all(|history| history.clone().hit(now));
        if all {
            self.histories.iter_mut().for_each(|history| assert!(history.hit(now)));
            self.hits.push(now);
            by_all.push(now);
        }
        all
    }

    /// Makes debt, or takes the newest hits back.
    pub(crate) fn settle(&mut self, now: u64, delta: i64) {
        let hits = u32::try_from(delta.unsigned_abs()).unwrap();
        if delta >= 0 {
            self.debt += hits;
            return;
        }
        self.pass(now);
        let forgiven = hits.min(self.debt);
        self.debt -= forgiven;
        for _ in forgiven..hits {
            self.hits.pop();
            for history in &mut self.histories {
                let newest = (0..history.hits.len()).max_by_key(|&at| {
                    let hit = history.hits[at];
                    (history.counts_as(&hit), hit.tier)
                });
                newest.map(|at| history.hits.remove(at));
            }
        }
    }

    /// Forgets what does not count.
    pub(crate) fn pass(&mut self, now: u64) {
        self.last = self.last.max(now);
        let now = self.last;
        self.hits.retain(|&at| now <= at + SECOND);
        for history in &mut self.histories {
            let copy = history.clone();
            history.hits.retain(|hit| copy.counts(hit, now));
        }
    }

    pub(crate) fn is_idle(&self, now: u64) -> bool {
        let mut then = self.clone();
        then.pass(now);
        let is_rested = |history: &History| {
            history.hits.is_empty()
                && (1..=history.tiers.len()).all(|tier| history.is_inactive(tier, then.last))
        };
        then.debt == 0 && then.hits.is_empty() && then.histories.iter().all(is_rested)
    }
}

/// Of these hits, those of the last second.
pub(crate) fn of_second(hits: &[u64], now: u64) -> u32 {
    hits.iter().filter(|&&at| now <= at + SECOND).count() as u32
}

// === impl History ===

impl History {
    fn new(policy: &TierPolicy) -> History {
        let tiers = policy.tiers().to_vec();
        History { since: vec![None; tiers.len()], tiers, windows: policy.windows(), hits: Vec::new() }
    }

    /// One hit, if the tiers allow it.
    fn hit(&mut self, now: u64) -> bool {
        let current = self.current(now);
        if current > 0 && self.used(current, now) < self.tiers[current - 1].limit {
            self.log(current, now);
            return true;
        }
        for tier in current + 1..=self.tiers.len() {
            if self.tiers[tier - 1].active.is_zero() {
                continue;
            }
            if self.is_inactive(tier, now) && self.used(tier, now) < self.tiers[tier - 1].limit {
                self.since[tier - 1] = Some(now);
                if self.windows == Windows::Reset {
                    self.hits.retain(|hit| hit.tier != tier);
                }
                self.log(tier, now);
                return true;
            }
            if !self.tiers[tier - 1].is_skippable {
                return false;
            }
        }
        false
    }

    fn log(&mut self, tier: usize, now: u64) {
        self.hits.push(Hit { at: now, tier, since: self.since[tier - 1].unwrap() });
    }

    /// The active tier with the greatest index.
    pub(crate) fn current(&self, now: u64) -> usize {
        (1..=self.tiers.len()).rev().find(|&tier| self.is_active(tier, now)).unwrap_or(0)
    }

    fn is_active(&self, tier: usize, now: u64) -> bool {
        self.since[tier - 1].is_some_and(|since| now - since < nanos(self.tiers[tier - 1].active))
    }

    fn is_inactive(&self, tier: usize, now: u64) -> bool {
        let Tier { active, cooldown, .. } = self.tiers[tier - 1];
        self.since[tier - 1].is_none_or(|since| now - since >= nanos(active) + nanos(cooldown))
    }

    /// Hits that count in a tier.
    pub(crate) fn used(&self, tier: usize, now: u64) -> u32 {
        if self.windows == Windows::Reset && self.is_inactive(tier, now) {
            return 0;
        }
        let of_tier = self.hits.iter().filter(|hit| hit.tier == tier);
        match self.tiers[tier - 1].kind {
            Window::Bucket => self.level(of_tier, tier, now),
            _ => of_tier.filter(|hit| self.counts(hit, now)).count() as u32,
        }
    }

    /// Whether a hit counts; those of a bucket do as long as any of them does.
    fn counts(&self, hit: &Hit, now: u64) -> bool {
        let Tier { window, kind, .. } = self.tiers[hit.tier - 1];
        let window = nanos(window);
        match kind {
            Window::Exact | Window::Sliding { .. } => now <= self.counts_as(hit) + window,
            // Its window has not ended.
            Window::Fixed => now < self.counts_as(hit) + window,
            Window::Bucket => {
                let of_tier = self.hits.iter().filter(|other| other.tier == hit.tier);
                self.level(of_tier, hit.tier, now) > 0
            }
        }
    }

    /// The time of the slice in which a hit was made.
    fn counts_as(&self, hit: &Hit) -> u64 {
        let tier = &self.tiers[hit.tier - 1];
        let slice = match tier.kind {
            Window::Exact | Window::Bucket => return hit.at,
            Window::Sliding { slices } => nanos(tier.window).div_ceil(u64::from(slices)),
            Window::Fixed => nanos(tier.window),
        };
        let slices_before = (hit.at - hit.since) / slice;
        hit.since + slices_before * slice
    }

    /// The level that is left in a bucket, as whole hits. Where the limit is the number of hits that leave it in a
    /// window, a hit is as many drops as a window has nanoseconds, and the limit is the number of drops that leave
    /// it in a nanosecond.
    fn level<'a>(&self, hits: impl Iterator<Item = &'a Hit>, tier: usize, now: u64) -> u32 {
        let Tier { limit, window, .. } = self.tiers[tier - 1];
        let drops_of_hit = u128::from(nanos(window));
        let drained = |level: u128, time: u64| level.saturating_sub(u128::from(time) * u128::from(limit));
        let (level, last) =
            hits.fold((0, 0), |(level, last), hit| (drained(level, hit.at - last) + drops_of_hit, hit.at));
        u32::try_from(drained(level, now - last).div_ceil(drops_of_hit)).unwrap()
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}
