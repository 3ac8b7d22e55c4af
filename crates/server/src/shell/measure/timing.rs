//! A histogram of times: a count for each bucket, and the sum.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// The bounds of what is over in milliseconds, in nanoseconds: from ten microseconds to a tenth of a second.
pub(in crate::shell) const PROMPT: &[u64] =
    &[10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 30_000_000, 100_000_000];

/// The bounds of what goes through a network and perhaps a lease, in nanoseconds: from a millisecond to a minute.
pub(in crate::shell) const SLOW: &[u64] = &[
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];

const NANOS_PER_SECOND: f64 = 1e9;

/// A histogram of times.
#[derive(Debug)]
pub(in crate::shell) struct Timing {
    /// The upper bounds, which rise.
    bounds: &'static [u64],
    /// The number of times in each bucket, and of those beyond the last bound.
    counts: Box<[AtomicU64]>,
    /// All of them together, in nanoseconds.
    sum: AtomicU64,
}

/// A histogram as it was at one moment, as far as counting goes on meanwhile.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::shell) struct TimingSnapshot {
    bounds: &'static [u64],
    counts: Vec<u64>,
    sum: u64,
}

// === impl Timing ===

impl Timing {
    /// A histogram with these bounds, in nanoseconds.
    pub(in crate::shell) fn new(bounds: &'static [u64]) -> Timing {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Timing { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Something took so long.
    pub(in crate::shell) fn note(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let place = self.bounds.iter().take_while(|&&bound| bound < nanos).count();
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(in crate::shell) fn snapshot(&self) -> TimingSnapshot {
        TimingSnapshot {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

// === impl TimingSnapshot ===

impl TimingSnapshot {
    /// The histogram of all that is in any of `timings`, which have the same bounds; nothing if there are none.
    pub(in crate::shell) fn of_all(timings: &[Timing]) -> Option<TimingSnapshot> {
        timings.iter().map(Timing::snapshot).reduce(|mut all, one| {
            all.counts.iter_mut().zip(&one.counts).for_each(|(all, one)| *all += one);
            all.sum += one.sum;
            all
        })
    }

    /// The number of times.
    pub(in crate::shell) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(in crate::shell) fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        // The encoder sums the buckets up, and knows the last bucket by its bound.
        let bounds = self.bounds.iter().map(|&bound| bound as f64 / NANOS_PER_SECOND).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(self.counts.iter().copied()).collect();
        let sum = self.sum as f64 / NANOS_PER_SECOND;
        encoder.encode_histogram::<NoLabelSet>(sum, self.count(), &buckets, None)
    }

    /// Writes it as a family of its own.
    pub(in crate::shell) fn encode_alone(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
    ) -> fmt::Result {
        self.encode(encoder.encode_descriptor(name, help, None, MetricType::Histogram)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_it_does_not_pass() {
        let timing = Timing::new(&[10, 20]);
        for nanos in [0, 10, 11, 20, 21, 5_000] {
            timing.note(Duration::from_nanos(nanos));
        }
        let snapshot = timing.snapshot();
        assert_eq!((snapshot.counts.clone(), snapshot.sum, snapshot.count()), (vec![2, 2, 2], 5_062, 6));
        let all = TimingSnapshot::of_all(&[timing, Timing::new(&[10, 20])]);
        assert_eq!(all, Some(snapshot));
    }
}
