//! The bucket in one word, for rates too low for shards: a permit is one compare-and-swap, a denial only reads.
//!
//! While the meter *runs*, the bucket behind it stands still, and one word counts what was spent since, in billionths
//! of a unit. What came in since is the rate times the time, so both together are the level, to the grain: starting and
//! stopping round nothing. Where the bucket would have run over, what did not fit is counted as spent, and rounded up:
//! a full bucket may lack a billionth of a unit, and no rounding ever adds to another.
//!
//! The word only grows, and stopping the meter moves it. So whoever finds it where it was has seen the terms under
//! which it was counted, and nothing that was put down for a later run: a compare-and-swap under terms that are over
//! fails. It comes round after 18 thousand million units, which is five hours at the highest rate that is metered.
//!
//! Rates, times and levels are such that all products fit 64 bits for what 18 thousand units take to come in. Then, at
//! the end of the lease, and while the meter stands still, the answer is [`MeterAnswer::AskTheBucket`].

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use lessor_algorithms::bucket::{Bucket, NANO};
use lessor_proto::Time;

use super::Denied;

#[cfg(test)]
mod tests;

/// Billionths in a unit.
const UNIT: i64 = 1_000_000_000;
/// Millionths of a unit a second from which on nothing is metered: the word would come round too soon.
const MAX_RATE: u64 = 1_000_000 * 1_000_000;
/// The largest bucket that is metered, in millionths of a unit, so that the level stays far from the sign bit.
const MAX_BRIM: u64 = 1 << 52;

#[derive(Debug)]
pub(super) struct Meter {
    spent: Spent,
    terms: Posted,
}

/// The amount that was spent since the beginning of time, in billionths of a unit, and a little for every stop.
/// It has its cache lines to itself, since every permit writes it.
#[repr(align(128))]
#[derive(Debug)]
struct Spent(AtomicU64);

/// The terms of the run, written under the central lock only, between two runs.
#[repr(align(64))]
#[derive(Debug)]
struct Posted {
    /// Zero while the meter stands still. The last to be written before a run, and the first to be read.
    until: AtomicU64,
    since: AtomicU64,
    rate: AtomicU64,
    level: AtomicU64,
    rest: AtomicU64,
    brim: AtomicU64,
    /// The value of the word when the run began.
    begin: AtomicU64,
}

/// A bucket at rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MeterTerms {
    /// Nanoseconds at which nothing is given any more.
    until: u64,
    /// Nanoseconds up to which the level is counted.
    since: u64,
    /// Grains a nanosecond.
    rate: u64,
    /// The level, in billionths of a unit, and the rest in grains.
    level: u64,
    rest: u64,
    /// The most there can be, in billionths of a unit.
    brim: u64,
}

/// The answer of the meter to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum MeterAnswer {
    Granted,
    Denied(Denied),
    /// It is for the bucket to decide, and for whoever holds its lock to start the meter afresh.
    AskTheBucket,
}

/// The answer of terms to a request, given what was spent.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Verdict {
    /// The amount that is spent by granting it.
    Costs(u64),
    Denied(Denied),
    OutOfRange,
}

// === impl Meter ===

impl Meter {
    pub(super) const fn new() -> Meter {
        Meter { spent: Spent(AtomicU64::new(0)), terms: Posted::new() }
    }

    /// Takes `n` units, or says why not.
    pub(super) fn spend(&self, n: u32, now: Time) -> MeterAnswer {
        let mut spent = self.spent.0.load(Acquire);
        loop {
            let Some((begin, terms)) = self.terms.read(now.as_nanos()) else {
                return MeterAnswer::AskTheBucket;
            };
            let step = match terms.judge(spent.wrapping_sub(begin), n, now.as_nanos()) {
                Verdict::OutOfRange => return MeterAnswer::AskTheBucket,
                Verdict::Costs(cost) => {
                    let next = spent.wrapping_add(cost);
                    self.spent
                        .0
                        .compare_exchange_weak(spent, next, AcqRel, Acquire)
                        .map(|_| MeterAnswer::Granted)
                }
                // The terms were of one run, and of this one, if the word has not moved.
                Verdict::Denied(denied) => match self.spent.0.load(Acquire) {
                    same if same == spent => Ok(MeterAnswer::Denied(denied)),
                    moved => Err(moved),
                },
            };
            match step {
                Ok(answer) => return answer,
                Err(moved) => spent = moved,
            }
        }
    }

    /// Begins a run; under the central lock only, while the meter stands still.
    pub(super) fn start(&self, terms: MeterTerms) {
        debug_assert_eq!(self.terms.until.load(Relaxed), 0, "a meter is started once");
        self.terms.post(self.spent.0.load(Relaxed), terms);
    }

    /// Ends the run and says what was spent in it, in billionths of a unit; `None` if there was none. Under the central
    /// lock only.
    pub(super) fn stop(&self) -> Option<u64> {
        if self.terms.until.swap(0, AcqRel) == 0 {
            return None;
        }
        // Whoever finds the word moved finds that zero as well, and whoever does not find it moved no more: his
        // compare-and-swap fails.
        let spent = self.spent.0.fetch_add(1, AcqRel);
        Some(spent.wrapping_sub(self.terms.begin.load(Relaxed)))
    }
}

// === impl Posted ===

impl Posted {
    const fn new() -> Posted {
        Posted {
            until: AtomicU64::new(0),
            since: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            level: AtomicU64::new(0),
            rest: AtomicU64::new(0),
            brim: AtomicU64::new(0),
            begin: AtomicU64::new(0),
        }
    }

    /// The value of the word at the beginning, and the terms; `None` if they do not hold at `now`. Torn terms are
    /// possible, but not while the word stays where it was: each value brings with it all that was done before it
    /// was written, and so the stop before it.
    fn read(&self, now: u64) -> Option<(u64, MeterTerms)> {
        let until = self.until.load(Acquire);
        if now >= until {
            return None;
        }
        let terms = MeterTerms {
            until,
            since: self.since.load(Acquire),
            rate: self.rate.load(Acquire),
            level: self.level.load(Acquire),
            rest: self.rest.load(Acquire),
            brim: self.brim.load(Acquire),
        };
        Some((self.begin.load(Acquire), terms))
    }

    fn post(&self, begin: u64, terms: MeterTerms) {
        self.begin.store(begin, Release);
        self.since.store(terms.since, Release);
        self.rate.store(terms.rate, Release);
        self.level.store(terms.level, Release);
        self.rest.store(terms.rest, Release);
        self.brim.store(terms.brim, Release);
        self.until.store(terms.until, Release);
    }
}

// === impl MeterTerms ===

impl MeterTerms {
    /// Those of `bucket` until the end of the lease, unless it flows too fast or is too large to be metered.
    pub(super) fn of(bucket: &Bucket, until: Time) -> Option<MeterTerms> {
        let (rate, brim) = (bucket.rate_micros(), bucket.capacity_micros());
        if rate == 0 || rate >= MAX_RATE || brim > MAX_BRIM {
            return None;
        }
        let (nano, grains) = (u128::from(NANO), bucket.grains());
        Some(MeterTerms {
            until: until.as_nanos(),
            since: bucket.at(),
            rate,
            level: u64::try_from(grains / nano).ok()?,
            rest: u64::try_from(grains % nano).ok()?,
            brim: brim * 1000,
        })
    }

    /// The verdict on a request for `n` at `now`, when `spent` is spent. Torn terms give any answer, but no panic.
    fn judge(&self, spent: u64, n: u32, now: u64) -> Verdict {
        let income =
            self.rate.checked_mul(now.saturating_sub(self.since)).and_then(|i| i.checked_add(self.rest));
        let Some(income) = income else { return Verdict::OutOfRange };
        let (whole, rest) = (income / NANO, income % NANO);
        // Below zero for whoever is late behind another's clock.
        let level = self.level.wrapping_add(whole).wrapping_sub(spent).cast_signed();
        let (brim, price) = (self.brim.cast_signed(), i64::from(n) * UNIT);
        if level.min(brim) < price {
            return Verdict::Denied(self.denial(n, level, rest, now));
        }
        let run_over =
            if level < brim { 0 } else { level.wrapping_sub(brim).wrapping_add(i64::from(rest > 0)) };
        Verdict::Costs(price.wrapping_add(run_over).cast_unsigned())
    }

    fn denial(&self, n: u32, level: i64, rest: u64, now: u64) -> Denied {
        let burst = self.brim / UNIT.cast_unsigned();
        if u64::from(n) > burst {
            return Denied::AboveBurst { n, burst };
        }
        let missing = (i64::from(n) * UNIT).saturating_sub(level).cast_unsigned();
        let nanos = match missing.checked_mul(NANO) {
            Some(grains) => grains.saturating_sub(rest).div_ceil(self.rate.max(1)),
            None => wide_nanos(missing, rest, self.rate),
        };
        let late = self.since.saturating_sub(now);
        Denied::Spent { retry_after: Duration::from_nanos(nanos.saturating_add(late)) }
    }
}

/// In how many nanoseconds the rate brings so many billionths of a unit less the rest.
fn wide_nanos(missing: u64, rest: u64, rate: u64) -> u64 {
    let grains = (u128::from(missing) * u128::from(NANO)).saturating_sub(u128::from(rest));
    u64::try_from(grains.div_ceil(u128::from(rate.max(1)))).unwrap_or(u64::MAX)
}
