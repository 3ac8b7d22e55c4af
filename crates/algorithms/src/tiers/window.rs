//! Windows: which hits count, and when they cease to.
//!
//! All kinds but the bucket are one: a hit counts as made at the beginning of its *grain*, and counts until a *span* after
//! that. With a grain of a nanosecond that is the exact log; with a fraction of the window, sliding counters; with the
//! whole window and a span just below it, the fixed window.
//!
//! The bucket is kept as the time at which it will be empty, which is a whole number of nanoseconds and of parts of one, of
//! which there are as many as the limit. So a hit adds a whole number of parts, and nothing is ever rounded.

use std::time::Duration;

use super::pool::{NEVER, Pool};
use super::tier::{Tier, Window, Windows};

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// A tier in the form in which it is applied. Times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    pub(super) limit: u32,
    pub(super) is_skippable: bool,
    pub(super) measure: Measure,
    pub(super) active: u64,
    pub(super) cooldown: u64,
    pub(super) windows: Windows,
}

/// A way to count hits. Times are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    /// As runs.
    Runs {
        /// Within which hits count as made at the same time.
        grain: u64,
        /// Until how long after that they count, inclusive.
        span: u64,
    },
    /// As a level that sinks.
    Bucket {
        /// The most that is in.
        limit: u32,
        /// In what time that runs out.
        window: u64,
    },
}

/// When hits were made that are counted late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    pub(super) at: u64,
    pub(super) now: u64,
    /// The most hits that may be counted one by one.
    pub(super) most: u32,
}

/// The status of a tier at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It can be entered.
    Inactive,
    /// It was entered.
    Active {
        /// The first nanosecond at which it is not.
        until: u64,
    },
    /// It was active, and cannot be entered.
    Cooling {
        /// The first nanosecond at which it can.
        until: u64,
    },
}

// === impl Rule ===

impl Rule {
    pub(super) fn new(tier: &Tier, windows: Windows) -> Rule {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let window = nanos(tier.window);
        let measure = match tier.kind {
            Window::Exact => Measure::Runs { grain: 1, span: window },
            Window::Sliding { slices } => {
                Measure::Runs { grain: window.div_ceil(u64::from(slices)), span: window }
            }
            Window::Fixed => Measure::Runs { grain: window, span: window - 1 },
            Window::Bucket => Measure::Bucket { limit: tier.limit, window },
        };
        Rule {
            limit: tier.limit,
            is_skippable: tier.is_skippable,
            measure,
            active: nanos(tier.active),
            cooldown: nanos(tier.cooldown),
            windows,
        }
    }

    /// Hits that count at `now`. A tier that resets its windows begins with an empty one, so while it is inactive none do.
    #[inline]
    pub(super) fn used(&self, pool: &Pool, queue: usize, now: u64) -> u32 {
        if self.windows == Windows::Reset && self.status(pool.time(queue), now) == Status::Inactive {
            return 0;
        }
        self.measure.used(pool, queue, now)
    }

    /// Begins the active time, `at` some time after any other.
    #[inline]
    pub(super) fn enter(&self, pool: &mut Pool, queue: usize, at: u64) {
        if self.windows == Windows::Reset {
            self.forget_earlier(pool, queue, at);
        }
        pool.set_time(queue, at);
    }

    /// Counts hits that were made some time in the past. Whoever resets its windows takes hits of an earlier active time for
    /// none.
    pub(super) fn record_late(&self, pool: &mut Pool, queue: usize, late: &Late, hits: u32) {
        let since = pool.time(queue);
        if self.windows == Windows::Reset && since != NEVER && late.at < self.first_of(since) {
            return;
        }
        self.measure.record_late(pool, queue, since, late, hits);
    }

    /// The least time at which hits of the active time since `since` may seem to be made. Times are not quite the same
    /// everywhere, and while it cooled down nobody made any.
    fn first_of(&self, since: u64) -> u64 {
        since.saturating_sub(self.cooldown)
    }

    #[cold]
    fn forget_earlier(&self, pool: &mut Pool, queue: usize, since: u64) {
        match self.measure {
            Measure::Runs { .. } => pool.forget_before(queue, self.first_of(since)),
            // A bucket does not know when its hits were made. Those of a tier of which no entry is known yet are of others.
            Measure::Bucket { .. } if pool.time(queue) == NEVER => {}
            Measure::Bucket { .. } => pool.clear(queue),
        }
    }

    /// The window in which hits are counted.
    pub(super) fn window(&self) -> u64 {
        match self.measure {
            // A fixed window ends before the next one begins.
            Measure::Runs { grain, span } => span.max(grain),
            Measure::Bucket { window, .. } => window,
        }
    }

    /// The status of the tier at `now` if it was last entered at `since`, which is before that or never.
    #[inline]
    pub(super) fn status(&self, since: u64, now: u64) -> Status {
        if since == NEVER {
            return Status::Inactive;
        }
        let ends = since.saturating_add(self.active);
        if now < ends {
            return Status::Active { until: ends };
        }
        let cool = ends.saturating_add(self.cooldown);
        if now < cool { Status::Cooling { until: cool } } else { Status::Inactive }
    }
}

// === impl Measure ===

impl Measure {
    /// The last second, exactly.
    pub(super) const SECOND: Measure = Measure::Runs { grain: 1, span: SECOND };
    /// The last second, in sixteen slices: where it is reported and limits nothing.
    pub(super) const ABOUT_A_SECOND: Measure = Measure::slices_of_a_second(16);

    /// The last second in so many slices, at least one.
    pub(super) const fn slices_of_a_second(slices: u64) -> Measure {
        Measure::Runs { grain: SECOND.div_ceil(slices), span: SECOND }
    }

    /// Hits that count at `now`.
    #[inline]
    pub(super) fn used(self, pool: &Pool, queue: usize, now: u64) -> u32 {
        match self {
            Measure::Runs { span, .. } => pool.hits_from(queue, now.saturating_sub(span)),
            Measure::Bucket { limit, window } => {
                let parts = empty_at(pool, queue, limit).saturating_sub(u128::from(now) * u128::from(limit));
                // Most buckets are empty, and dividing takes long.
                if parts == 0 {
                    return 0;
                }
                u32::try_from(parts.div_ceil(u128::from(window))).unwrap_or(u32::MAX)
            }
        }
    }

    /// Counts hits of `now`, which is not before any that are counted. Grains begin at `base`.
    #[inline]
    pub(super) fn record(self, pool: &mut Pool, queue: usize, base: u64, now: u64, hits: u32) {
        match self {
            Measure::Runs { grain, span } => {
                pool.renew(queue, now.saturating_sub(span), hits, |newest| match newest {
                    // The same grain; dividing takes longer than all the rest.
                    Some(run) if run.at >= base && now.saturating_sub(run.at) < grain => run.at,
                    Some(run) => self.begin(base, now).max(run.at),
                    None => self.begin(base, now),
                });
            }
            Measure::Bucket { limit, window } => {
                let empty = empty_at(pool, queue, limit).max(u128::from(now) * u128::from(limit));
                put(pool, queue, limit, empty + u128::from(hits) * u128::from(window));
            }
        }
    }

    /// Counts hits that were made `late.at` some time, no later than `late.now`. Grains begin at `base`. Where `late.most` are
    /// counted already no time is remembered for them: they are forgotten with earlier ones.
    pub(super) fn record_late(self, pool: &mut Pool, queue: usize, base: u64, late: &Late, hits: u32) {
        let Measure::Runs { span, .. } = self else { return self.record(pool, queue, base, late.at, hits) };
        self.expire(pool, queue, late.now);
        let begin = self.begin(base, late.at);
        if begin.saturating_add(span) < late.now {
            return;
        }
        if pool.total(queue) >= late.most {
            pool.join(queue, begin, hits);
        } else {
            pool.insert(queue, begin, hits);
        }
    }

    /// Forgets what counts at no time from `now` on.
    pub(super) fn expire(self, pool: &mut Pool, queue: usize, now: u64) {
        match self {
            Measure::Runs { span, .. } => pool.forget_before(queue, now.saturating_sub(span)),
            Measure::Bucket { limit, .. } => {
                let is_empty = empty_at(pool, queue, limit) <= u128::from(now) * u128::from(limit);
                if is_empty {
                    pool.clear(queue);
                }
            }
        }
    }

    /// The first time, not before `from`, at which at most `most` hits count, if none are added.
    pub(super) fn falls_to(self, pool: &Pool, queue: usize, from: u64, most: u32) -> u64 {
        match self {
            Measure::Runs { span, .. } => {
                let (mut left, mut at) = (pool.total(queue), from);
                for run in pool.runs(queue) {
                    if left <= most {
                        break;
                    }
                    left -= run.count;
                    at = at.max(run.at.saturating_add(span).saturating_add(1));
                }
                at
            }
            Measure::Bucket { limit, window } => {
                let kept = u128::from(most) * u128::from(window);
                let at = empty_at(pool, queue, limit).saturating_sub(kept).div_ceil(u128::from(limit));
                u64::try_from(at).unwrap_or(u64::MAX).max(from)
            }
        }
    }

    /// Takes up to `hits` of the newest hits back.
    pub(super) fn forget(self, pool: &mut Pool, queue: usize, now: u64, hits: u32) {
        match self {
            Measure::Runs { .. } => pool.forget_newest(queue, hits),
            Measure::Bucket { limit, window } => {
                let floor = u128::from(now) * u128::from(limit);
                let parts = u128::from(hits) * u128::from(window);
                let empty = empty_at(pool, queue, limit);
                if empty > floor {
                    put(pool, queue, limit, empty.saturating_sub(parts).max(floor));
                }
            }
        }
    }

    /// As when hits of `at` count. Grains begin at `base`.
    fn begin(self, base: u64, at: u64) -> u64 {
        match self {
            Measure::Runs { grain, .. } if grain > 1 && at > base => at - (at - base) % grain,
            _ => at,
        }
    }
}

// === buckets ===

/// When a bucket will be empty, in parts of nanoseconds, of which there are `limit` in one.
#[inline]
fn empty_at(pool: &Pool, queue: usize, limit: u32) -> u128 {
    pool.newest(queue).map_or(0, |run| u128::from(run.at) * u128::from(limit) + u128::from(run.count))
}

fn put(pool: &mut Pool, queue: usize, limit: u32, empty_at: u128) {
    let limit = u128::from(limit);
    let at = u64::try_from(empty_at / limit).unwrap_or(u64::MAX);
    // A remainder is less than the limit, which is a `u32`.
    pool.put(queue, at, (empty_at % limit) as u32);
}
