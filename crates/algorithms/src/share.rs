//! The shares of one resource: the policies, and the demands that they divide a capacity among.
//!
//! A [`Shares`] holds every demand and computes one share at a time, on request. A change of one demand moves the share
//! of everyone, so shares are never stored: each is read off the sums of the index when somebody asks.

mod fair;
mod priority;
mod proportional;

use crate::curve::Curve;
use priority::{Band, Bands};

/// Sums are kept in units of 2^128, so that they stay finite whatever finite numbers are wanted. A power of two changes no
/// digit of a number above 1e-269; smaller ones lose digits in the sums, though never in a share that equals the wants.
const UNIT: f64 = (1u128 << 127) as f64 * 2.0;

/// A way to divide a capacity among demands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharePolicy {
    /// Everyone gets what they want.
    None,
    /// Everyone gets what they want, up to the capacity each: the sum has no limit.
    Static,
    /// Everyone gets an equal share per weight, or less if less is wanted; what that leaves over goes to those who want
    /// more, in proportion to how much more. [Doorman's definition][doc].
    ///
    /// [doc]: https://github.com/youtube/doorman/blob/master/doc/algorithms.md
    ProportionalShare,
    /// Weighted max-min fairness: nobody can get more without taking it from somebody who has less per weight
    /// (Bertsekas and Gallager, *Data Networks*, 6.5.2).
    FairShare,
}

/// The demand of one client.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demand {
    /// The bounded policies serve greater priorities first; the others get what the wants of those leave.
    pub priority: i64,
    /// The number of equal clients that this one stands for, at least 1. Twice the weight counts as two demands of
    /// half the wants.
    pub weight: u32,
    /// Units of the resource, finite, not negative.
    pub wants: f64,
}

/// A capacity, and the demands on it.
///
/// A change and a share cost O(log n) in the number of different demands, and O(b) in the number of priorities at or above
/// that of the demand, which is meant to be small.
#[derive(Clone, Debug)]
pub struct Shares {
    policy: SharePolicy,
    /// Units; may be infinite.
    capacity: f64,
    bands: Bands,
    /// The number of demands.
    len: usize,
}

// === impl SharePolicy ===

impl SharePolicy {
    /// Whether the sum of all shares stays within the capacity.
    #[must_use]
    pub fn is_bounded(self) -> bool {
        matches!(self, SharePolicy::ProportionalShare | SharePolicy::FairShare)
    }
}

// === impl Demand ===

impl Demand {
    /// With wants in units of [`UNIT`], and without the sign of a negative zero, which is equal to zero but sorts before it.
    fn scaled(&self) -> Demand {
        Demand { wants: self.wants / UNIT + 0.0, ..*self }
    }
}

// === impl Shares ===

impl Shares {
    /// No demands on `capacity` units yet.
    ///
    /// # Panics
    ///
    /// If the capacity is negative or not a number. It may be infinite.
    #[must_use]
    pub fn new(policy: SharePolicy, capacity: f64) -> Shares {
        assert!(capacity >= 0.0, "capacity {capacity} is negative");
        Shares { policy, capacity, bands: Bands::default(), len: 0 }
    }

    /// The policy by which the capacity is divided.
    #[must_use]
    pub fn policy(&self) -> SharePolicy {
        self.policy
    }

    /// Divides the same capacity among the same demands in another way.
    pub fn set_policy(&mut self, policy: SharePolicy) {
        self.policy = policy;
    }

    /// Units to divide.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Divides another capacity, in units, among the same demands.
    ///
    /// # Panics
    ///
    /// As [`Shares::new`].
    pub fn set_capacity(&mut self, capacity: f64) {
        assert!(capacity >= 0.0, "capacity {capacity} is negative");
        self.capacity = capacity;
    }

    /// Adds a demand. Equal ones count each for itself.
    ///
    /// # Panics
    ///
    /// If the weight is zero, or the wants are negative or not finite.
    pub fn insert(&mut self, demand: &Demand) {
        assert!(demand.weight >= 1, "{demand:?} has no weight");
        assert!(demand.wants >= 0.0 && demand.wants.is_finite(), "{demand:?} wants no amount");
        self.bands.insert(&demand.scaled());
        self.len += 1;
    }

    /// Takes out a demand. To change one, remove it as it was and insert it as it is to be.
    ///
    /// # Panics
    ///
    /// If no demand equal to it is there.
    pub fn remove(&mut self, demand: &Demand) {
        self.bands.remove(&demand.scaled());
        self.len -= 1;
    }

    /// The units that a demand which has been inserted gets: never more than it wants.
    #[must_use]
    pub fn share(&self, demand: &Demand) -> f64 {
        match self.policy {
            SharePolicy::None => demand.wants,
            SharePolicy::Static => demand.wants.min(self.capacity),
            SharePolicy::ProportionalShare => self.bounded_share(demand, proportional::share),
            SharePolicy::FairShare => {
                let level = fair::level(&self.band_of(demand)) * UNIT;
                demand.wants.min(level * f64::from(demand.weight))
            }
        }
    }

    /// Under FairShare, the water level for the demands of `priority`, in units per weight: each of them gets
    /// `wants.min(level * weight)`, to the last bit what [`Shares::share`] says. Infinite if all they want fits.
    ///
    /// Where no demand has the priority, it is the level that one of next to nothing would find: infinite if greater
    /// priorities leave anything, and otherwise zero. `None` under the other policies, which know no level.
    #[must_use]
    pub fn level(&self, priority: i64) -> Option<f64> {
        if self.policy != SharePolicy::FairShare {
            return None;
        }
        Some(match self.bands.band(priority, self.capacity / UNIT) {
            Some(band) => fair::level(&band) * UNIT,
            None if self.capacity_for(priority) > 0.0 => f64::INFINITY,
            None => 0.0,
        })
    }

    /// The part of the capacity that the wants of all greater priorities leave, in units; whether or not a demand
    /// has `priority`.
    ///
    /// The bounded policies divide this among the demands of the priority.
    #[must_use]
    pub fn capacity_for(&self, priority: i64) -> f64 {
        self.bands.left_for(priority, self.capacity / UNIT) * UNIT
    }

    /// The demand curve of one priority as seen from the level above, which need not know each of the demands.
    /// Empty if no demand has the priority.
    ///
    /// Costs O(b log n) for b buckets, of which an octave of wants per weight has eight. Read off the index like
    /// every other sum here: a function of the demands, however often they have changed.
    #[must_use]
    pub fn curve(&self, priority: i64) -> Curve {
        self.bands.demands(priority).map_or_else(Curve::default, |demands| Curve::new(demands, UNIT))
    }

    /// By a policy that divides what is left for one band among the demands of that band.
    fn bounded_share(&self, demand: &Demand, share: fn(&Band<'_>, &Demand) -> f64) -> f64 {
        (share(&self.band_of(demand), &demand.scaled()) * UNIT).min(demand.wants)
    }

    fn band_of(&self, demand: &Demand) -> Band<'_> {
        let band = self.bands.band(demand.priority, self.capacity / UNIT);
        band.expect("only a demand that was inserted has a share")
    }

    /// The wants of all demands together, in units; the greatest finite number if they are more than that.
    #[must_use]
    pub fn wants(&self) -> f64 {
        (self.bands.sums().wants * UNIT).min(f64::MAX)
    }

    /// The weight of all demands together.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.bands.sums().weight
    }

    /// The number of demands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no demand.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of priorities that occur among the demands.
    #[must_use]
    pub fn bands(&self) -> usize {
        self.bands.len()
    }

    /// The priorities that occur among the demands, the greatest first.
    pub fn priorities(&self) -> impl Iterator<Item = i64> {
        self.bands.priorities()
    }

    /// Whether a priority occurs among the demands.
    #[must_use]
    pub fn has_band(&self, priority: i64) -> bool {
        self.bands.has(priority)
    }
}
