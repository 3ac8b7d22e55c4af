//! Laws of shares that hold for all demands, however many and however odd.
//!
//! The shares are compared with an oracle that sorts everything anew each time and goes through it once.

use std::cmp::Reverse;
use std::ops::Range;

use lessor_algorithms::{Demand, SharePolicy, Shares};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Relative; of the share itself.
const EXACT: f64 = 1e-9;
/// Relative to the capacity: where nearly all of it is used up, what is left is the difference of two sums, and no order of
/// adding up tells it better than this.
const ROUNDING: f64 = 1e-14;

// === the oracle ===

/// The share of each of `demands`.
fn oracle(policy: SharePolicy, capacity: f64, demands: &[Demand]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by_key(|&at| Reverse(demands[at].priority));
    let mut shares = vec![0.0; demands.len()];
    let mut left = capacity;
    for band in order.chunk_by(|&a, &b| demands[a].priority == demands[b].priority) {
        let of_band: Vec<Demand> = band.iter().map(|&at| demands[at]).collect();
        let shares_of_band = match policy {
            SharePolicy::None => of_band.iter().map(|demand| demand.wants).collect(),
            SharePolicy::Static => of_band.iter().map(|demand| demand.wants.min(capacity)).collect(),
            SharePolicy::ProportionalShare => proportional(left, &of_band),
            SharePolicy::FairShare => fair(left, &of_band),
        };
        band.iter().zip(shares_of_band).for_each(|(&at, share)| shares[at] = share);
        left = (left - sum(&of_band)).max(0.0);
    }
    shares
}

/// Serves the least wants per weight first; each may take its part of what is left, by weight.
fn fair(mut capacity: f64, demands: &[Demand]) -> Vec<f64> {
    let wants_per_weight = |at: usize| demands[at].wants / f64::from(demands[at].weight);
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|&a, &b| wants_per_weight(a).total_cmp(&wants_per_weight(b)));
    let mut weight: f64 = demands.iter().map(|demand| f64::from(demand.weight)).sum();
    let mut shares = vec![0.0; demands.len()];
    for at in order {
        let own = f64::from(demands[at].weight);
        shares[at] = demands[at].wants.min(capacity / weight * own);
        capacity -= shares[at];
        weight -= own;
    }
    shares
}

/// The formula, term by term. What is missing is counted in great units, lest its sum overflow.
fn proportional(capacity: f64, demands: &[Demand]) -> Vec<f64> {
    if sum(demands) <= capacity {
        return demands.iter().map(|demand| demand.wants).collect();
    }
    let unit = 1e10;
    let weight: f64 = demands.iter().map(|demand| f64::from(demand.weight)).sum();
    let entitled = |demand: &Demand| capacity / weight * f64::from(demand.weight);
    let unused: f64 = demands.iter().map(|demand| (entitled(demand) - demand.wants).max(0.0)).sum();
    let missing = |demand: &Demand| (demand.wants - entitled(demand)).max(0.0) / unit;
    let all_missing: f64 = demands.iter().map(missing).sum();
    let share = |demand: &Demand| match demand.wants <= entitled(demand) {
        true => demand.wants,
        false => entitled(demand) + unused * (missing(demand) / all_missing),
    };
    demands.iter().map(share).collect()
}

fn sum(demands: &[Demand]) -> f64 {
    demands.iter().map(|demand| demand.wants).sum()
}

// === what is compared ===

fn filled(policy: SharePolicy, capacity: f64, demands: &[Demand]) -> Shares {
    let mut shares = Shares::new(policy, capacity);
    demands.iter().for_each(|demand| shares.insert(demand));
    shares
}

/// Every demand against the oracle, and the sum against the capacity.
fn check(shares: &Shares, demands: &[Demand]) {
    let (policy, capacity) = (shares.policy(), shares.capacity());
    let mut total = 0.0;
    for (demand, wanted) in demands.iter().zip(oracle(policy, capacity, demands)) {
        let share = shares.share(demand);
        assert!((0.0..=demand.wants).contains(&share), "{share:e} of {demand:?}");
        let slack = EXACT * wanted + if policy.is_bounded() { ROUNDING * capacity } else { 0.0 };
        assert!(
            (share - wanted).abs() <= slack,
            "{policy:?} of {capacity:e}: {share:e}, not {wanted:e}, of {demand:?}"
        );
        total += share;
    }
    assert!(!policy.is_bounded() || total <= capacity * (1.0 + EXACT), "{total:e} of {capacity:e}");
    assert_eq!(shares.len(), demands.len());
    assert_eq!(shares.weight(), demands.iter().map(|demand| u64::from(demand.weight)).sum::<u64>());
    let wants = sum(demands).min(f64::MAX);
    assert!((shares.wants() - wants).abs() <= 1e-12 * wants);
}

fn policies() -> impl Strategy<Value = SharePolicy> {
    select(vec![
        SharePolicy::None,
        SharePolicy::Static,
        SharePolicy::ProportionalShare,
        SharePolicy::FairShare,
    ])
}

fn capacities() -> impl Strategy<Value = f64> {
    prop_oneof![
        select(vec![0.0, 0.3, 1.0, 120.0, 1e13, f64::MAX, f64::INFINITY]),
        0.0..1e4,
        (-9.0..15.0).prop_map(|exponent| 10f64.powf(exponent)),
    ]
}

/// Few values, so that many are equal; fractions; and every magnitude.
fn demands(count: Range<usize>) -> impl Strategy<Value = Vec<Demand>> {
    let wants = prop_oneof![
        (0..20u32).prop_map(f64::from),
        0.0..1e3,
        (-9.0..15.0).prop_map(|exponent| 10f64.powf(exponent)),
        select(vec![0.0, -0.0, 1e-200, 1e300, f64::MAX]),
    ];
    let weights = prop_oneof![Just(1), 1..10u32, 1..1_000u32];
    let priorities = prop_oneof![Just(0), -2..3i64, select(vec![i64::MIN, i64::MAX])];
    vec(
        (priorities, weights, wants).prop_map(|(priority, weight, wants)| Demand { priority, weight, wants }),
        count,
    )
}

proptest! {
    #[test]
    fn shares_are_the_oracles(
        policy in policies(), capacity in capacities(), demands in demands(0..60),
    ) {
        check(&filled(policy, capacity, &demands), &demands);
    }

    #[test]
    fn many_demands_share_as_exactly_as_few(
        policy in policies(), portion in 0.0..1.2, wants in vec(0.0..1e3, 2_000..5_000),
    ) {
        let demands: Vec<_> = wants.iter().map(|&wants| Demand { priority: 0, weight: 1, wants }).collect();
        check(&filled(policy, portion * sum(&demands), &demands), &demands);
    }

    #[test]
    fn neither_the_order_of_insertion_nor_what_was_removed_matters(
        policy in policies(),
        capacity in capacities(),
        demands in demands(1..60).prop_shuffle(),
        removed in 0..60usize,
    ) {
        let mut shares = Shares::new(SharePolicy::None, 1.0);
        demands.iter().rev().for_each(|demand| shares.insert(demand));
        let (gone, kept) = demands.split_at(removed.min(demands.len()));
        gone.iter().for_each(|demand| shares.remove(demand));
        shares.set_policy(policy);
        shares.set_capacity(capacity);

        check(&shares, kept);
        let straight = filled(policy, capacity, kept);
        prop_assert_eq!(shares.bands(), straight.bands());
        for demand in kept {
            let (one, other) = (shares.share(demand), straight.share(demand));
            let slack = EXACT * one + if policy.is_bounded() { ROUNDING * capacity } else { 0.0 };
            prop_assert!((one - other).abs() <= slack, "{} or {}", one, other);
        }
    }

    /// Serving a greater priority less, or a lower one before it, would show here.
    #[test]
    fn nobody_gets_anything_before_all_greater_priorities_have_all_they_want(
        policy in select(vec![SharePolicy::ProportionalShare, SharePolicy::FairShare]),
        capacity in capacities(),
        demands in demands(1..60),
    ) {
        let shares = filled(policy, capacity, &demands);
        let unmet = demands.iter().filter(|demand| shares.share(demand) < demand.wants * (1.0 - EXACT));
        if let Some(first_unmet) = unmet.map(|demand| demand.priority).max() {
            for demand in demands.iter().filter(|demand| demand.priority < first_unmet) {
                prop_assert!(shares.share(demand) <= ROUNDING * capacity);
            }
        }
    }

    #[test]
    fn a_weight_is_as_good_as_so_many_demands(
        policy in select(vec![SharePolicy::ProportionalShare, SharePolicy::FairShare]),
        capacity in 0.0..1e4,
        wants in vec((0.0..1e3, 1..9u32), 1..30),
    ) {
        let mut one_each = Shares::new(policy, capacity);
        let mut heavy = Shares::new(policy, capacity);
        let single = |wants| Demand { priority: 0, weight: 1, wants };
        let group = |wants, weight| Demand { priority: 0, weight, wants: wants * f64::from(weight) };
        for &(wants, weight) in &wants {
            (0..weight).for_each(|_| one_each.insert(&single(wants)));
            heavy.insert(&group(wants, weight));
        }
        for &(wants, weight) in &wants {
            let (one, all) = (one_each.share(&single(wants)), heavy.share(&group(wants, weight)));
            prop_assert!((one * f64::from(weight) - all).abs() <= EXACT * all, "{} times {}, {}", one, weight, all);
        }
    }
}

// === a long life ===

/// Splitmix64: enough disorder for a test, the same every time.
fn scrambled(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Wants over twelve orders of magnitude, so that sums kept by adding and subtracting would be lost soon.
fn any_demand(dice: u64) -> Demand {
    let magnitude = 10f64.powi((dice % 13) as i32 - 4);
    let wants = (dice >> 40) as f64 * magnitude / 1e7;
    Demand { priority: (dice >> 8) as i64 % 2, weight: (dice >> 16) as u32 % 5 + 1, wants }
}

#[test]
fn a_million_random_changes_leave_no_drift() {
    let mut demands: Vec<Demand> = (0..300).map(|number| any_demand(scrambled(number))).collect();
    let mut shares = filled(SharePolicy::FairShare, 1e6, &demands);
    for change in 0..1_000_000 {
        let dice = scrambled(1_000 + change);
        let demand = &mut demands[dice as usize % 300];
        shares.remove(demand);
        *demand = any_demand(scrambled(dice));
        shares.insert(demand);
        if change % 10_000 == 0 {
            shares.set_policy(if change % 20_000 == 0 {
                SharePolicy::FairShare
            } else {
                SharePolicy::ProportionalShare
            });
            shares.set_capacity(10f64.powi((change / 10_000 % 10) as i32));
            check(&shares, &demands);
        }
    }
    let straight = filled(shares.policy(), shares.capacity(), &demands);
    assert!((shares.wants() - straight.wants()).abs() <= 1e-12 * straight.wants());

    demands.iter().for_each(|demand| shares.remove(demand));
    assert_eq!((shares.wants(), shares.weight(), shares.len(), shares.bands()), (0.0, 0, 0, 0));
}

#[test]
fn the_greatest_numbers_give_finite_shares_that_add_up() {
    let wants = |wants| Demand { priority: 0, weight: 1, wants };
    let demands: Vec<_> = (0..1_000).map(|_| wants(f64::MAX)).chain([wants(1.0), wants(0.0)]).collect();
    for policy in [SharePolicy::ProportionalShare, SharePolicy::FairShare] {
        for capacity in [0.0, 0.3, 1e13, f64::MAX, f64::INFINITY] {
            let shares = filled(policy, capacity, &demands);
            check(&shares, &demands);
            assert!(demands.iter().all(|demand| shares.share(demand).is_finite()));
        }
    }
}

/// They lose digits in the sums, which matters to nobody, and must not do more than that.
#[test]
fn the_least_numbers_give_shares_within_bounds() {
    let wants = |wants| Demand { priority: 0, weight: 1, wants };
    let demands = [0.0, 5e-324, f64::MIN_POSITIVE, 1e-290, 1.0].map(wants);
    for policy in [SharePolicy::ProportionalShare, SharePolicy::FairShare] {
        for capacity in [0.0, 5e-324, f64::MIN_POSITIVE, 1e-290, 0.5, 2.0] {
            let shares = filled(policy, capacity, &demands);
            let each = demands.map(|demand| shares.share(&demand));
            assert!(each.iter().zip(&demands).all(|(share, demand)| (0.0..=demand.wants).contains(share)));
            assert!(each.iter().sum::<f64>() <= capacity * (1.0 + EXACT) + 1e-269);
        }
    }
}

#[test]
#[should_panic(expected = "only a demand that was inserted can be removed")]
fn removing_from_a_band_that_is_not_there_panics() {
    Shares::new(SharePolicy::FairShare, 1.0).remove(&Demand { priority: 0, weight: 1, wants: 1.0 });
}

#[test]
#[should_panic(expected = "wants no amount")]
fn wants_that_are_no_number_are_refused_at_the_door() {
    Shares::new(SharePolicy::FairShare, 1.0).insert(&Demand { priority: 0, weight: 1, wants: f64::NAN });
}
