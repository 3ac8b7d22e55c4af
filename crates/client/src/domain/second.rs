//! The hits of all domains in the last second: exactly and under a lock where they are limited, else by words that
//! anybody adds to.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

use lessor_algorithms::tiers::{Global, Plan};
use lessor_proto::Time;

/// Slices of a second.
const SLICES: u64 = 16;
/// Nanoseconds.
const SLICE: u64 = 1_000_000_000 / SLICES;
/// The hits of nobody, with which plans are made where nothing is limited.
static NOBODY: Global = Global::exact();

/// Slices that are kept: the last second, and as many for those whose clock was read late.
const KEPT: usize = 32;

/// Hits of the last second, forgotten up to a sixteenth of it too early.
#[derive(Debug)]
pub(super) struct Second {
    /// The number of a slice in the upper half, hits in the lower.
    slices: [AtomicU64; KEPT],
}

/// All domains, as one request sees them.
#[derive(Debug)]
pub(super) enum All<'a> {
    /// Their hits together are limited.
    Limited(MutexGuard<'a, Global>),
    /// It is only told. Plans are made as if nobody did anything.
    Told(&'a Second),
}

// === impl Second ===

impl Second {
    pub(super) fn new() -> Second {
        Second { slices: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    #[inline]
    fn record(&self, now: Time, hits: u32) {
        let number = number(now);
        let slice = &self.slices[place(number)];
        // Nearly always it is the slice already: then this is all, and takes the word from other threads only once.
        if slice.fetch_add(u64::from(hits), Ordering::Relaxed) >> 32 != number {
            self.begin(number, hits);
        }
    }

    /// Counts hits in a slice that was another one when they were added to it.
    #[cold]
    fn begin(&self, number: u64, hits: u32) {
        let begun = |word: u64| match word >> 32 == number {
            // By somebody else, who has thrown away what was added before.
            true => word.saturating_add(u64::from(hits)),
            false => number << 32 | u64::from(hits),
        };
        // It always has a value, and so never fails.
        let _ = self.slices[place(number)]
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| Some(begun(word)));
    }

    #[inline]
    fn hits(&self, now: Time) -> u32 {
        let now = number(now);
        let numbers = (0..SLICES).map(|back| now.wrapping_sub(back) & u64::from(u32::MAX));
        let hits = |number: u64| {
            let word = self.slices[place(number)].load(Ordering::Relaxed);
            if word >> 32 == number { word & u64::from(u32::MAX) } else { 0 }
        };
        u32::try_from(numbers.map(hits).sum::<u64>()).unwrap_or(u32::MAX)
    }
}

/// Where a slice is.
#[inline]
fn place(number: u64) -> usize {
    (number % KEPT as u64) as usize
}

/// The slice of a time. It comes round after eight years.
#[inline]
fn number(now: Time) -> u64 {
    (now.as_nanos() / SLICE) & u64::from(u32::MAX)
}

// === impl All ===

impl All<'_> {
    /// The hits of all domains with which plans are made.
    #[inline]
    pub(super) fn global(&self) -> &Global {
        match self {
            All::Limited(global) => global,
            All::Told(_) => &NOBODY,
        }
    }

    /// The hits of a plan are made.
    #[inline]
    pub(super) fn record(&mut self, plan: &Plan) {
        match self {
            All::Limited(global) => global.record(plan.now(), plan.hits()),
            All::Told(_) if plan.hits() == 0 => {}
            All::Told(second) => second.record(Time::from_nanos(plan.now()), plan.hits()),
        }
    }

    /// Those of the last second, by all.
    #[inline]
    pub(super) fn hits(&self, now: Time) -> u32 {
        match self {
            All::Limited(global) => global.hits(now.as_nanos()),
            All::Told(second) => second.hits(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_counts_for_more_than_a_second_nor_less_than_fifteen_sixteenths(
            steps in prop::collection::vec((0u64..400_000_000, 1u32..9), 1..100),
        ) {
            let (second, mut made, mut now) = (Second::new(), Vec::new(), Time::from_nanos(1 << 40));
            for (pause, hits) in steps {
                now += Duration::from_nanos(pause);
                second.record(now, hits);
                made.push((now, hits));
                let within = |nanos: u64| -> u32 {
                    let recent = made.iter().filter(|(at, _)| now.since(*at).as_nanos() < u128::from(nanos));
                    recent.map(|(_, hits)| hits).sum()
                };
                let counted = second.hits(now);
                prop_assert!(within(SLICE * (SLICES - 1)) <= counted && counted <= within(SLICE * SLICES));
            }
        }
    }

    #[test]
    fn hits_of_several_threads_are_all_counted_where_a_slice_begins() {
        let (second, barrier) = (Second::new(), Barrier::new(2));
        let rounds = 1..500_u64;
        let run = || {
            for round in rounds.clone() {
                barrier.wait();
                // The place of a slice of two seconds ago.
                second.record(Time::from_nanos(round * SLICE * KEPT as u64), 3);
                barrier.wait();
                assert_eq!(second.hits(Time::from_nanos(round * SLICE * KEPT as u64)), 6);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(run);
            run();
        });
    }
}
