//! ProportionalShare, as Doorman's documentation defines it.
//!
//! Everyone is entitled to an equal share per weight. What some leave of theirs goes to those who want more than theirs,
//! in proportion to how much more. With capacity 120 and wants of 1000, 50 and 10, each is entitled to 40; the 30 that the
//! last leaves are divided 960 to 10 between the others.

use super::Demand;
use super::priority::Band;

/// The share of `demand`, one of the band's.
pub(super) fn share(band: &Band<'_>, demand: &Demand) -> f64 {
    let all = band.demands.sums();
    if all.wants <= band.capacity {
        return demand.wants;
    }
    let equal = band.capacity / all.weight as f64;
    let entitled = equal * f64::from(demand.weight);
    if demand.wants <= entitled {
        return demand.wants;
    }
    let modest = band.demands.prefix(|_, wants_per_weight| wants_per_weight < equal);
    let unused = equal * modest.weight as f64 - modest.wants;
    let missing = (all.wants - modest.wants) - equal * (all.weight - modest.weight) as f64;
    // In this order, for `unused / missing` may be too small a number to have digits.
    entitled + unused.max(0.0) * ((demand.wants - entitled) / missing).clamp(0.0, 1.0)
}
