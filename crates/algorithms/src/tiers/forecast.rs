//! The forecast of a refusal: the time at which the request would be granted, if nobody asked for anything until then.
//!
//! That is not when the first hit leaves a window: the current tier may end before, a cooldown may, and falling back into
//! a lower tier can bring room or take it. So the time goes from one such event to the next until there is room.

use super::global::Global;
use super::policy::{Contract, MOST_TIERS};
use super::pool::{NEVER, Pool, Run};
use super::tier::Windows;
use super::walk::{Moment, View, Walk, current};
use super::window::{Measure, Rule, Status};

/// Limits whose times of room never meet are not followed further than this.
const STEPS: usize = 1000;

/// All that limits one domain.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    pub(super) contract: &'a Contract,
    pub(super) pool: &'a Pool,
    pub(super) global: &'a Global,
}

/// The tiers of one policy at a time to come.
struct Forecast<'a> {
    moment: Moment<'a>,
    cursors: [Cursor; MOST_TIERS],
}

/// The point up to which the window of a tier was followed.
#[derive(Clone, Copy)]
struct Cursor {
    /// When it was last entered.
    since: u64,
    /// The oldest run that counts.
    run: Option<Run>,
    /// Hits that count.
    used: u32,
}

// === impl Limits ===

impl Limits<'_> {
    /// The first time, not before `from`, at which all limits would grant `hits`; `None` if they never would. With buckets,
    /// whose hits come back one by one, it may be later than the first.
    pub(super) fn grant_at(&self, from: u64, hits: u32) -> Option<u64> {
        let policies = self.contract.policies().len();
        let (mut at, mut agreed) = (from, 0);
        for step in 0..STEPS {
            let then = match step % (policies + 2) {
                0 => self.second_at(at, hits)?,
                1 => self.global.grants_at(self.contract.global_limit(), at, hits)?,
                other => self.policy_at(other - 2, at, hits)?,
            };
            agreed = if then == at { agreed + 1 } else { 1 };
            at = then;
            if agreed == policies + 2 {
                break;
            }
        }
        Some(at)
    }

    fn second_at(&self, from: u64, hits: u32) -> Option<u64> {
        let Some(hard) = self.contract.hard_limit() else { return Some(from) };
        Some(self.contract.second().falls_to(self.pool, 0, from, hard.checked_sub(hits)?))
    }

    fn policy_at(&self, policy: usize, from: u64, hits: u32) -> Option<u64> {
        let (rules, begin) = (self.contract.rules(policy), self.contract.begin(policy));
        Forecast::new(Moment { pool: self.pool, rules, begin, now: from }).run(hits)
    }
}

// === impl Forecast ===

impl<'a> Forecast<'a> {
    fn new(moment: Moment<'a>) -> Forecast<'a> {
        let mut cursors = [Cursor { since: NEVER, run: None, used: 0 }; MOST_TIERS];
        for (cursor, queue) in cursors.iter_mut().zip(moment.begin + 1..).take(moment.rules.len()) {
            let pool = moment.pool;
            *cursor = Cursor { since: pool.time(queue), run: pool.oldest(queue), used: pool.total(queue) };
        }
        let mut forecast = Forecast { moment, cursors };
        forecast.follow();
        forecast
    }

    /// Goes on until `hits` would be granted.
    fn run(&mut self, hits: u32) -> Option<u64> {
        loop {
            let rules = self.moment.rules;
            let missing = Walk::new(rules, self, hits).run(rules, self).left;
            if missing == 0 {
                return Some(self.moment.now);
            }
            self.moment.now = self.next_event(missing)?;
            self.follow();
        }
    }

    /// The next time at which something changes that could help.
    fn next_event(&self, missing: u32) -> Option<u64> {
        let tiers = current(self.moment.rules, self).max(1)..=self.moment.rules.len();
        let events = tiers.flat_map(|tier| {
            let ends = match self.status(tier) {
                Status::Active { until } | Status::Cooling { until } => Some(until),
                Status::Inactive => None,
            };
            [ends, self.next_room(tier, missing)]
        });
        events.flatten().filter(|&at| at > self.moment.now).min()
    }

    /// When the window of a tier next has more room.
    fn next_room(&self, tier: usize, missing: u32) -> Option<u64> {
        let Moment { pool, rules, begin, now } = self.moment;
        match rules[tier - 1].measure {
            Measure::Runs { span, .. } => {
                self.cursors[tier - 1].run.map(|run| run.at.saturating_add(span).saturating_add(1))
            }
            bucket @ Measure::Bucket { .. } => {
                let used = self.used(tier);
                let aim = used.min(rules[tier - 1].limit).saturating_sub(missing);
                (used > 0).then(|| bucket.falls_to(pool, begin + tier, now, aim))
            }
        }
    }

    /// Lets go what does not count any more.
    fn follow(&mut self) {
        let Moment { pool, rules, begin, now } = self.moment;
        for ((cursor, rule), queue) in self.cursors.iter_mut().zip(rules).zip(begin + 1..) {
            cursor.follow(rule, pool, queue, now);
        }
    }
}

impl View for Forecast<'_> {
    fn status(&self, tier: usize) -> Status {
        self.moment.rules[tier - 1].status(self.cursors[tier - 1].since, self.moment.now)
    }

    fn used(&self, tier: usize) -> u32 {
        self.cursors[tier - 1].used
    }
}

// === impl Cursor ===

impl Cursor {
    fn follow(&mut self, rule: &Rule, pool: &Pool, queue: usize, now: u64) {
        match rule.measure {
            Measure::Runs { span, .. } => {
                while let Some(run) = self.run
                    && run.at.saturating_add(span) < now
                {
                    self.used -= run.count;
                    self.run = pool.after(run);
                }
            }
            Measure::Bucket { .. } => self.used = rule.used(pool, queue, now),
        }
        // No hit is made meanwhile, so it stays empty until it is entered.
        if rule.windows == Windows::Reset && rule.status(self.since, now) == Status::Inactive {
            (self.run, self.used) = (None, 0);
        }
    }
}
