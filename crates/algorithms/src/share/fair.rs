//! FairShare: one water level for all.
//!
//! Every demand is a vessel as wide as its weight and as tall as its wants per weight. The capacity is poured in, and the
//! level is the same everywhere: whoever is not full has the same amount per weight, and the full have less.

use super::priority::Band;

/// The level in units per weight at which min(wants, level * weight), summed over all demands, is the capacity; infinite
/// if they all fit.
///
/// The full demands come first in the order of the index. The next one is full as well if the level may rise to its top
/// before the capacity is used up.
pub(super) fn level(band: &Band<'_>) -> f64 {
    let all = band.demands.sums();
    if all.wants <= band.capacity {
        return f64::INFINITY;
    }
    let full = band
        .demands
        .prefix(|full, top| full.wants + top * (all.weight - full.weight) as f64 <= band.capacity);
    // Zero weight is left only if the sums disagree by a rounding error on whether everything fits.
    match all.weight - full.weight {
        0 => f64::INFINITY,
        weight => (band.capacity - full.wants).max(0.0) / weight as f64,
    }
}
