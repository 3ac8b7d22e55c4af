//! Measures that many threads add to without waiting for each other: counts and times, each by one label of a closed set.
//!
//! Adding is an atomic addition or three, and takes no lock; so it is done after the lock of the node is given back.

mod timing;

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

pub(in crate::shell) use self::timing::{PROMPT, SLOW, Timing, TimingSnapshot};

/// A label whose values are known.
pub(in crate::shell) trait Label: Copy {
    /// Its name.
    const NAME: &'static str;
    /// The values.
    const VALUES: &'static [&'static str];

    /// The place of this one among them.
    fn place(self) -> usize;
}

/// A count for each value of a label.
#[derive(Debug)]
pub(in crate::shell) struct Counts<L>(Box<[AtomicU64]>, PhantomData<fn(L)>);

/// A histogram of times for each value of a label.
#[derive(Debug)]
pub(in crate::shell) struct Timings<L>(Box<[Timing]>, PhantomData<fn(L)>);

// === impl Counts ===

impl<L: Label> Default for Counts<L> {
    fn default() -> Counts<L> {
        Counts(L::VALUES.iter().map(|_| AtomicU64::new(0)).collect(), PhantomData)
    }
}

impl<L: Label> Counts<L> {
    /// One more.
    pub(in crate::shell) fn add(&self, label: L) {
        self.0[label.place()].fetch_add(1, Ordering::Relaxed);
    }

    /// One less, of what comes and goes.
    pub(in crate::shell) fn remove(&self, label: L) {
        self.0[label.place()].fetch_sub(1, Ordering::Relaxed);
    }

    /// Sets the count, of what is looked at all at once.
    pub(in crate::shell) fn set(&self, label: L, count: u64) {
        self.0[label.place()].store(count, Ordering::Relaxed);
    }

    /// The count of one value.
    pub(in crate::shell) fn of(&self, label: L) -> u64 {
        self.0[label.place()].load(Ordering::Relaxed)
    }

    /// All of them, each with its value.
    pub(in crate::shell) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        L::VALUES.iter().zip(&self.0).map(|(&value, count)| (value, count.load(Ordering::Relaxed)))
    }

    /// Writes them as a counter.
    pub(in crate::shell) fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (value, count) in self.iter() {
            ConstCounter::<u64>::new(count).encode(family.encode_family(&[(L::NAME, value)])?)?;
        }
        Ok(())
    }
}

// === impl Timings ===

impl<L: Label> Timings<L> {
    /// Histograms with these bounds, in nanoseconds.
    pub(in crate::shell) fn new(bounds: &'static [u64]) -> Timings<L> {
        Timings(L::VALUES.iter().map(|_| Timing::new(bounds)).collect(), PhantomData)
    }

    /// Something of that kind took so long.
    pub(in crate::shell) fn note(&self, label: L, took: Duration) {
        self.0[label.place()].note(took);
    }

    /// The histograms of all values.
    pub(in crate::shell) fn all(&self) -> &[Timing] {
        &self.0
    }

    /// Writes them.
    pub(in crate::shell) fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (&value, timing) in L::VALUES.iter().zip(&self.0) {
            timing.snapshot().encode(family.encode_family(&[(L::NAME, value)])?)?;
        }
        Ok(())
    }
}
