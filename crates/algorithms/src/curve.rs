//! The demand curve: what many demands come to, seen from one level above, in a few numbers.
//!
//! A node of a tree stands for all its clients at its parent. Their sum is not enough: one that wants a hundred and nine
//! that want nothing are not ten that want ten each. What decides is how much they would take together at every water
//! level, the sum of min(wants, level * weight). That curve has a corner at the wants per weight of each client; here
//! they are rounded to a grid of eight corners an octave, and everyone in one *bucket* of the grid is taken to want the
//! mean of the bucket.
//!
//! The grid is the same everywhere and the sums of a bucket are those of its demands, so the curve of a node made from
//! the curves of its children is the curve of all clients below: levels of a tree add no error. Only the bucket in which
//! the water level lies is inexact, the others being full or at the level either way. With g = 2^(1/8) - 1, about 9%, a
//! level found from curves is at most what it ought to be and at least a (1 + g)th of that, and the part of the capacity
//! that goes to the wrong ones is at most g / 4, about 2.3% (the project's protocol, section 9.3; measured on random
//! trees it is below 0.2%).
//!
//! ```
//! use lessor_algorithms::{Demand, SharePolicy, Shares};
//!
//! let of = |wants: &[f64], capacity| {
//!     let mut shares = Shares::new(SharePolicy::FairShare, capacity);
//!     wants.iter().for_each(|&wants| shares.insert(&Demand { priority: 0, weight: 1, wants }));
//!     shares
//! };
//! // One child has an elephant and three mice, the other two who want something in between.
//! let (left, right) = (of(&[1000.0, 1.0, 1.0, 1.0], 0.0), of(&[50.0, 50.0], 0.0));
//! let mut parent = Shares::new(SharePolicy::FairShare, 123.0);
//! left.curve(0).demands(0).chain(right.curve(0).demands(0)).for_each(|demand| parent.insert(&demand));
//!
//! // As if all six were clients of the parent.
//! assert_eq!(parent.level(0), of(&[1000.0, 1.0, 1.0, 1.0, 50.0, 50.0], 123.0).level(0));
//! ```

use std::f64::consts::SQRT_2;
use std::ops::Range;

use crate::Demand;
use crate::index::{Index, Sums};

/// Buckets in an octave of wants per weight.
pub const BUCKETS_PER_OCTAVE: i32 = 8;
/// The least index of a bucket: it begins at 2^-800 units per weight. Who wants less than that wants nothing. All numbers
/// of the grid then have all their digits, in any unit the sums are kept in.
pub const LEAST_INDEX: i32 = -800 * BUCKETS_PER_OCTAVE;

/// Where the buckets of the octave from 1 to 2 begin: the powers of 2^(1/8). These very numbers are the grid.
const EIGHTHS: [f64; BUCKETS_PER_OCTAVE as usize] = [
    1.0,
    1.090_507_732_665_257_7,
    1.189_207_115_002_721,
    1.296_839_554_651_009_6,
    SQRT_2,
    1.542_210_825_407_940_7,
    1.681_792_830_507_429,
    1.834_008_086_409_342_4,
];

/// The demands of one priority, rounded to the grid.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Curve {
    /// Those that hold any demand, in ascending order of their indices.
    pub buckets: Vec<CurveBucket>,
    /// The weight of the demands that want nothing, or so little that it lies below the grid.
    pub idle: u64,
}

/// The demands whose wants per weight lie between two neighbouring points of the grid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CurveBucket {
    /// The greatest whole number not above 8 log2(wants / weight) of each of the demands, and of their mean.
    pub index: i32,
    /// Of all of them together; at least 1.
    pub weight: u64,
    /// The sum of their wants, in units.
    pub wants: f64,
}

// === impl Curve ===

impl Curve {
    /// Of demands whose wants are counted in `unit` units, a power of two.
    pub(crate) fn new(demands: &Index, unit: f64) -> Curve {
        let mut curve = Curve::default();
        for (index, sums) in demands.groups(|wants_per_weight| index_of(wants_per_weight * unit)) {
            match index {
                Some(index) => curve.buckets.push(CurveBucket::new(index, sums, unit)),
                None => curve.idle = sums.weight,
            }
        }
        curve
    }

    /// The curve as demands of `priority` at the level above, one for each bucket and one for those who want nothing.
    ///
    /// Who wants nothing takes nothing, yet counts among those for whom ProportionalShare divides the capacity.
    pub fn demands(&self, priority: i64) -> impl Iterator<Item = Demand> {
        let idle = Demand { priority, weight: saturated(self.idle), wants: 0.0 };
        let buckets = self.buckets.iter().map(move |bucket| bucket.demand(priority));
        (self.idle > 0).then_some(idle).into_iter().chain(buckets)
    }
}

// === impl CurveBucket ===

impl CurveBucket {
    /// `sums` are counted in `unit` units.
    fn new(index: i32, sums: Sums, unit: f64) -> CurveBucket {
        let wants = fitted(index, sums.weight as f64, (sums.wants * unit).min(f64::MAX));
        CurveBucket { index, weight: sums.weight, wants }
    }

    /// The bucket as one demand of `priority` at the level above: so many equal clients, each wanting the mean.
    ///
    /// A weight of 2^32 or more, which is all the clients in the world, counts as 2^32 - 1.
    #[must_use]
    pub fn demand(&self, priority: i64) -> Demand {
        Demand { priority, weight: saturated(self.weight), wants: self.wants }
    }

    /// The index of the bucket to which `wants` units of `weight` clients belong; `None` if that is nothing, or less per
    /// weight than where the grid begins.
    ///
    /// Monotonic in the quotient of the two, and exact: the quotient lies in [`CurveBucket::bounds`].
    ///
    /// # Panics
    ///
    /// If the weight is zero, or the wants are negative or not finite.
    #[must_use]
    pub fn index_of(wants: f64, weight: u64) -> Option<i32> {
        assert!(weight >= 1, "no weight");
        assert!(wants >= 0.0 && wants.is_finite(), "{wants} is no amount");
        index_of(wants / weight as f64)
    }

    /// From which to below which wants per weight, in units, the bucket of an index reaches. The last one has no end.
    ///
    /// # Panics
    ///
    /// If there is no such bucket: below [`LEAST_INDEX`], or beyond the greatest finite number.
    #[must_use]
    pub fn bounds(index: i32) -> Range<f64> {
        assert!((LEAST_INDEX..1024 * BUCKETS_PER_OCTAVE).contains(&index), "no bucket has the index {index}");
        border(index)..border(index + 1)
    }
}

// === the grid ===

/// No logarithm: the exponent of the number is the octave, and its digits are compared with those of the grid.
fn index_of(wants_per_weight: f64) -> Option<i32> {
    if wants_per_weight < border(LEAST_INDEX) {
        return None;
    }
    let bits = wants_per_weight.to_bits();
    let octave = (bits >> 52) as i32 - 1023;
    let digits = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let eighth = EIGHTHS[1..].iter().filter(|&&begin| begin <= digits).count() as i32;
    Some(octave * BUCKETS_PER_OCTAVE + eighth)
}

/// Where the bucket of an index begins; infinite after the last.
fn border(index: i32) -> f64 {
    let octave = index.div_euclid(BUCKETS_PER_OCTAVE);
    let eighth = index.rem_euclid(BUCKETS_PER_OCTAVE);
    EIGHTHS[eighth as usize] * f64::from_bits(((octave + 1023) as u64) << 52)
}

/// The number nearest to `wants` whose mean lies in the bucket.
///
/// A sum of numbers that lie in the bucket may miss it by its rounding errors. At the next level the mean would then be
/// counted in the neighbouring bucket. Where the sum is beyond all finite numbers, the greatest of them stands for it.
fn fitted(index: i32, weight: f64, wants: f64) -> f64 {
    let bounded = |bound: f64| (bound * weight).min(f64::MAX);
    let mut wants = wants.clamp(bounded(border(index)), bounded(border(index + 1)));
    // The products above are rounded too, which a step or two makes good.
    while index_of(wants / weight) > Some(index) {
        wants = wants.next_down();
    }
    while index_of(wants / weight) < Some(index) && wants < f64::MAX {
        wants = wants.next_up();
    }
    wants
}

/// As far as a demand can count.
fn saturated(weight: u64) -> u32 {
    u32::try_from(weight).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_grid_begins_again_with_every_octave() {
        for (number, index) in
            [(1.0, 0), (1.09, 0), (1.0906, 1), (2.0, 8), (3.0, 12), (0.5, -8), (1024.0, 80)]
        {
            assert_eq!(CurveBucket::index_of(number, 1), Some(index), "{number}");
        }
        assert_eq!(CurveBucket::index_of(3000.0, 1000), Some(12));
        assert_eq!(CurveBucket::index_of(f64::MAX, 1), Some(8191));
        assert!(CurveBucket::bounds(8191).end.is_infinite());
    }

    #[test]
    fn nothing_and_next_to_nothing_lie_below_the_grid() {
        for number in [0.0, -0.0, 5e-324, f64::MIN_POSITIVE, 2f64.powi(-800).next_down()] {
            assert_eq!(CurveBucket::index_of(number, 1), None, "{number:e}");
        }
        assert_eq!(CurveBucket::index_of(2f64.powi(-800), 1), Some(LEAST_INDEX));
    }

    #[test]
    fn a_border_is_the_first_number_of_its_bucket() {
        for index in LEAST_INDEX + 1..8192 {
            assert_eq!(index_of(border(index)), Some(index));
            assert_eq!(index_of(border(index).next_down()), Some(index - 1));
        }
    }

    proptest! {
        #[test]
        fn the_index_is_eight_times_the_logarithm(exponent in -799.9f64..1023.9) {
            let eighths = 8.0 * exponent;
            prop_assume!((eighths - eighths.round()).abs() > 1e-9);
            prop_assert_eq!(index_of(f64::exp2(exponent)), Some(eighths.floor() as i32));
        }

        #[test]
        fn a_sum_that_misses_its_bucket_is_brought_back(
            index in LEAST_INDEX..7680, weight in prop_oneof![1u64..100, 1u64..1 << 53], miss in 0.9..1.2,
        ) {
            let wants = fitted(index, weight as f64, border(index) * weight as f64 * miss);
            prop_assert_eq!(index_of(wants / weight as f64), Some(index));
            let inside = border(index) * (weight as f64) * 1.04;
            prop_assert_eq!(fitted(index, weight as f64, inside).to_bits(), inside.to_bits());
        }
    }
}
