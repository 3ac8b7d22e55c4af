//! When a refused request would be granted, if nobody asked for anything until then.
//!
//! That is not when the first hit leaves a window: the current tier may end before, a cooldown may, and falling back into
//! a lower tier can bring room or take it. So the time goes from one such event to the next until there is room.

use super::policy::{Contract, MOST_TIERS};
use super::pool::{Pool, Run};
use super::walk::{Moment, View, Walk, current};
use super::window::{Measure, Rule, Status};

/// Policies whose times of room never meet are not followed further than this.
const ROUNDS: usize = 64;

/// The tiers of one policy at a time to come.
struct Forecast<'a> {
    moment: Moment<'a>,
    cursors: [Cursor; MOST_TIERS],
}

/// How far the window of a tier was followed.
#[derive(Clone, Copy)]
struct Cursor {
    /// The oldest run that counts.
    run: Option<Run>,
    /// Hits that count.
    used: u32,
}

/// The first time, not before `from`, at which all policies and the hard limit would grant `hits`; `None` if they never
/// would. With buckets, whose hits come back one by one, it may be later than the first.
pub(super) fn grants_at(contract: &Contract, pool: &Pool, from: u64, hits: u32) -> Option<u64> {
    let mut at = from;
    for _ in 0..ROUNDS {
        let before = at;
        if let Some(hard) = contract.hard_limit() {
            at = contract.second().falls_to(pool, 0, at, hard.checked_sub(hits)?);
        }
        for policy in 0..contract.policies().len() {
            let (rules, begin) = (contract.rules(policy), contract.begin(policy));
            at = Forecast::new(Moment { pool, rules, begin, now: at }).run(hits)?;
        }
        if at == before {
            break;
        }
    }
    Some(at)
}

// === impl Forecast ===

impl<'a> Forecast<'a> {
    fn new(moment: Moment<'a>) -> Forecast<'a> {
        let mut cursors = [Cursor { run: None, used: 0 }; MOST_TIERS];
        for (cursor, queue) in cursors.iter_mut().zip(moment.begin + 1..).take(moment.rules.len()) {
            *cursor = Cursor { run: moment.pool.oldest(queue), used: moment.pool.total(queue) };
        }
        let mut forecast = Forecast { moment, cursors };
        forecast.follow();
        forecast
    }

    /// Goes on until `hits` would be granted.
    fn run(mut self, hits: u32) -> Option<u64> {
        loop {
            let rules = self.moment.rules;
            let missing = Walk::new(rules, &self, hits).run(rules, &self).left;
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
        self.moment.status(tier)
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
            bucket @ Measure::Bucket { .. } => self.used = bucket.used(pool, queue, now),
        }
    }
}
