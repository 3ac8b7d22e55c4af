//! Laws of curves and levels, and of trees whose nodes know of their children only the curves.
//!
//! The oracle is one flat [`Shares`] of all clients, which `laws.rs` compares with something simpler.

use std::collections::BTreeMap;

use lessor_algorithms::curve::{BUCKETS_PER_OCTAVE, CurveBucket};
use lessor_algorithms::{Curve, Demand, SharePolicy, Shares};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The width of a bucket less 1: 2^(1/8) - 1.
const G: f64 = 0.090_507_732_665_257_66;
/// Relative; of sums that were added up in different orders.
const ROUNDING: f64 = 1e-12;

// === trees ===

/// A node of a tree of servers, with the clients below it if it is a leaf.
#[derive(Debug)]
enum Tree {
    Leaf(Vec<Demand>),
    Node(Vec<Tree>),
}

impl Tree {
    /// All clients below, in a fixed order.
    fn clients(&self) -> Vec<Demand> {
        match self {
            Tree::Leaf(clients) => clients.clone(),
            Tree::Node(children) => children.iter().flat_map(Tree::clients).collect(),
        }
    }

    /// The capacity, and those among whom the node has to share it: its clients, or the curves of its children.
    fn shares(&self, capacity: f64) -> Shares {
        match self {
            Tree::Leaf(clients) => filled(capacity, clients),
            Tree::Node(children) => {
                let demands: Vec<Demand> = children.iter().flat_map(Tree::reported).collect();
                filled(capacity, &demands)
            }
        }
    }

    /// The demands that stand for this node at its parent.
    fn reported(&self) -> Vec<Demand> {
        let shares = self.shares(0.0);
        shares.priorities().flat_map(|priority| demands(&shares.curve(priority), priority)).collect()
    }

    /// The share of each client if every node divides the capacity that it got by what it knows.
    fn divided(&self, capacity: f64) -> Vec<f64> {
        let shares = self.shares(capacity);
        let of = |demands: &[Demand]| demands.iter().map(|demand| shares.share(demand)).collect::<Vec<_>>();
        match self {
            Tree::Leaf(clients) => of(clients),
            Tree::Node(children) => {
                let parts = children.iter().map(|child| of(&child.reported()).iter().sum());
                children.iter().zip(parts).flat_map(|(child, part)| child.divided(part)).collect()
            }
        }
    }
}

fn filled(capacity: f64, demands: &[Demand]) -> Shares {
    let mut shares = Shares::new(SharePolicy::FairShare, capacity);
    demands.iter().for_each(|demand| shares.insert(demand));
    shares
}

fn demands(curve: &Curve, priority: i64) -> Vec<Demand> {
    curve.demands(priority).collect()
}

fn wants(demands: &[Demand]) -> f64 {
    demands.iter().map(|demand| demand.wants).sum()
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.max(other)
}

// === what is generated ===

/// Points of the grid and their neighbours; few values, so that many are equal; and every magnitude.
fn amounts() -> impl Strategy<Value = f64> {
    prop_oneof![
        (0..20u32).prop_map(f64::from),
        0.0..1e3,
        (-9.0..15.0).prop_map(|exponent| 10f64.powf(exponent)),
        (0..40i32).prop_map(|index| CurveBucket::bounds(index).start),
        (0..40i32).prop_map(|index| CurveBucket::bounds(index).end.next_down()),
        select(vec![0.0, -0.0, 5e-324, 1e-290, 1e-200, 1e290]),
    ]
}

/// Wants of a few octaves, so that a bucket has many demands of which none is lost beside the others.
fn moderate() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..100.0,
        (0.0..7.0).prop_map(f64::exp2),
        Just(0.0),
        (0..40i32).prop_map(|i| CurveBucket::bounds(i).start)
    ]
}

/// Nearly all in one bucket, at its two ends: the worst there is.
fn crowded() -> impl Strategy<Value = f64> {
    let ends = CurveBucket::bounds(24);
    prop_oneof![Just(ends.start), Just(ends.end.next_down()), ends]
}

fn clients(wants: impl Strategy<Value = f64>) -> impl Strategy<Value = Vec<Demand>> {
    let weights = prop_oneof![Just(1), 1..10u32];
    let client = (0..3i64, weights, wants).prop_map(|(priority, weight, wants)| Demand {
        priority,
        weight,
        wants: wants * f64::from(weight),
    });
    vec(client, 0..12)
}

/// Some branches are deeper than others.
fn trees(wants: impl Strategy<Value = f64> + 'static) -> impl Strategy<Value = Tree> {
    let leaf = clients(wants).prop_map(Tree::Leaf);
    leaf.prop_recursive(3, 20, 4, |below| vec(below, 1..4).prop_map(Tree::Node))
}

fn any_tree() -> impl Strategy<Value = Tree> {
    prop_oneof![trees(moderate()), trees(crowded())]
}

/// Gives all clients the same priority.
fn one_band(tree: &mut Tree) {
    match tree {
        Tree::Leaf(clients) => clients.iter_mut().for_each(|client| client.priority = 0),
        Tree::Node(children) => children.iter_mut().for_each(one_band),
    }
}

// === laws of curves ===

proptest! {
    /// The model puts every demand in its place by itself.
    #[test]
    fn a_curve_is_the_demands_put_into_their_buckets(
        clients in vec((amounts(), 1..100u32), 0..300), removed in 0..300usize,
    ) {
        let clients: Vec<Demand> =
            clients.iter().map(|&(wants, weight)| Demand { priority: 0, weight, wants }).collect();
        let mut shares = filled(1.0, &clients);
        let (gone, kept) = clients.split_at(removed.min(clients.len()));
        gone.iter().for_each(|demand| shares.remove(demand));

        let (mut buckets, mut idle) = (BTreeMap::<i32, (u64, f64)>::new(), 0);
        for demand in kept {
            let weight = u64::from(demand.weight);
            match CurveBucket::index_of(demand.wants, weight) {
                None => idle += weight,
                Some(index) => {
                    let (weights, wants) = buckets.entry(index).or_default();
                    *weights += weight;
                    *wants += demand.wants;
                }
            }
        }
        let curve = shares.curve(0);
        prop_assert_eq!(curve.idle, idle);
        prop_assert_eq!(curve.buckets.len(), buckets.len());
        for (bucket, (index, (weight, wants))) in curve.buckets.iter().zip(buckets) {
            prop_assert_eq!((bucket.index, bucket.weight), (index, weight));
            prop_assert!(close(bucket.wants, wants), "{:e}, not {:e}", bucket.wants, wants);
        }
    }

    /// A small bucket beside a great one is where a difference of two sums would lose it.
    #[test]
    fn the_mean_of_a_bucket_lies_in_the_bucket(clients in vec((amounts(), 1..100_000u32), 0..300)) {
        let clients: Vec<Demand> =
            clients.iter().map(|&(wants, weight)| Demand { priority: 0, weight, wants }).collect();
        for bucket in filled(1.0, &clients).curve(0).buckets {
            prop_assert_eq!(CurveBucket::index_of(bucket.wants, bucket.weight), Some(bucket.index));
        }
    }

    #[test]
    fn the_curve_of_a_curve_is_the_curve(clients in vec((amounts(), 1..100u32), 0..300)) {
        let clients: Vec<Demand> =
            clients.iter().map(|&(wants, weight)| Demand { priority: 7, weight, wants }).collect();
        let once = filled(1.0, &clients).curve(7);
        let twice = filled(1.0, &demands(&once, 7)).curve(7);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_tree_reports_the_curve_of_all_its_clients(tree in any_tree()) {
        let (flat, root) = (filled(1.0, &tree.clients()), tree.shares(1.0));
        prop_assert!(flat.priorities().eq(root.priorities()));
        prop_assert!(flat.priorities().is_sorted_by(|a, b| a > b));
        prop_assert_eq!(flat.priorities().count(), flat.bands());
        for priority in flat.priorities() {
            let (flat, root) = (flat.curve(priority), root.curve(priority));
            prop_assert_eq!(flat.idle, root.idle);
            prop_assert_eq!(flat.buckets.len(), root.buckets.len());
            for (one, other) in flat.buckets.iter().zip(&root.buckets) {
                prop_assert_eq!((one.index, one.weight), (other.index, other.weight));
                prop_assert!(close(one.wants, other.wants));
            }
        }
    }

    // === laws of levels ===

    #[test]
    fn a_share_is_what_the_level_gives_to_the_last_bit(
        capacity in prop_oneof![amounts(), Just(f64::MAX), Just(f64::INFINITY)],
        clients in vec((-2..3i64, 1..1_000u32, prop_oneof![amounts(), Just(f64::MAX)]), 0..60),
    ) {
        let clients: Vec<Demand> =
            clients.iter().map(|&(priority, weight, wants)| Demand { priority, weight, wants }).collect();
        let mut shares = filled(capacity.abs(), &clients);
        for demand in &clients {
            let level = shares.level(demand.priority).unwrap();
            let share = demand.wants.min(level * f64::from(demand.weight));
            prop_assert_eq!(shares.share(demand).to_bits(), share.to_bits());
        }
        for policy in [SharePolicy::None, SharePolicy::Static, SharePolicy::ProportionalShare] {
            shares.set_policy(policy);
            prop_assert_eq!(shares.level(0), None);
        }
    }

    #[test]
    fn a_level_from_curves_is_within_a_bucket_below_the_level(tree in any_tree(), portion in 0.0..1.1) {
        let clients = tree.clients();
        let capacity = portion * wants(&clients);
        let (flat, root) = (filled(capacity, &clients), tree.shares(capacity));
        for priority in flat.priorities() {
            let (exact, found) = (flat.level(priority).unwrap(), root.level(priority).unwrap());
            // Where all but a rounding error of the band fits, one may see that it fits and the other not.
            let (left, all) = (flat.capacity_for(priority), band_wants(&clients, priority));
            if (left - all).abs() > 1e-9 * capacity && left > 1e-9 * capacity {
                prop_assert!(found <= exact * (1.0 + 1e-9), "{} above {}", found, exact);
                prop_assert!(found >= exact / (1.0 + G) * (1.0 - 1e-9), "{} below {}", found, exact);
            }
        }
    }

    #[test]
    fn a_tree_divides_as_a_flat_server_but_for_a_quarter_of_a_bucket(tree in any_tree(), portion in 0.0..1.1) {
        let clients = tree.clients();
        let capacity = portion * wants(&clients);
        check_division(&tree, capacity);
    }

    #[test]
    fn the_bound_holds_with_all_in_one_bucket(mut tree in trees(crowded()), portion in 0.95..1.0) {
        one_band(&mut tree);
        check_division(&tree, portion * wants(&tree.clients()));
    }
}

fn band_wants(clients: &[Demand], priority: i64) -> f64 {
    clients.iter().filter(|client| client.priority == priority).map(|client| client.wants).sum()
}

/// Every client within a bucket of what it would get from a flat server, and the sum of what went to the wrong ones,
/// which is returned.
fn check_division(tree: &Tree, capacity: f64) -> f64 {
    let clients = tree.clients();
    let flat = filled(capacity, &clients);
    let slack = 1e-9 * capacity;
    let mut misplaced = 0.0;
    for (client, got) in clients.iter().zip(tree.divided(capacity)) {
        let fair = flat.share(client);
        assert!(got <= fair * (1.0 + G) + slack, "{got}, not {fair}, for {client:?}");
        assert!(got >= fair / (1.0 + G) - slack, "{got}, not {fair}, for {client:?}");
        misplaced += (got - fair).max(0.0);
    }
    assert!(misplaced <= G / 4.0 * capacity + slack, "{misplaced} of {capacity} misplaced");
    misplaced
}

// === examples ===

/// The first leaf is known exactly, of the second only that it wants something within the bucket on average. At six
/// tenths of the bucket the second is taken to be full, and its own great ones get what the first should have had.
#[test]
fn leaves_with_one_end_of_a_bucket_and_with_both_are_divided_worst() {
    let ends = CurveBucket::bounds(24);
    let small = vec![Demand { priority: 0, weight: 1, wants: ends.start }; 389];
    let great = vec![Demand { priority: 0, weight: 1, wants: ends.end.next_down() }; 611];
    let (alone, among_small) = great.split_at(386);
    let tree = Tree::Node(vec![Tree::Leaf(alone.to_vec()), Tree::Leaf([&small, among_small].concat())]);

    let level = ends.start + 0.6 * (ends.end - ends.start);
    let capacity = 389.0 * ends.start + 611.0 * level;
    let flat = filled(capacity, &tree.clients());
    assert!(close(flat.level(0).unwrap(), level));
    let misplaced = check_division(&tree, capacity) / capacity;
    assert!((0.007..0.008).contains(&misplaced), "{misplaced}");
}

#[test]
fn an_elephant_and_mice_do_not_get_the_shares_of_twenty() {
    let client = |wants| Demand { priority: 0, weight: 1, wants };
    let mut herd = vec![client(1.0); 19];
    herd.push(client(1000.0));
    let tree = Tree::Node(vec![Tree::Leaf(herd), Tree::Leaf(vec![client(100.0); 5])]);
    let divided = tree.divided(319.0);
    assert!(divided[..19].iter().all(|&got| close(got, 1.0)));
    assert!(divided[19..].iter().all(|&got| close(got, 50.0)), "{divided:?}");
}

#[test]
fn where_nobody_has_a_priority_the_level_tells_whether_anything_is_left() {
    let mut shares = filled(10.0, &[Demand { priority: 5, weight: 2, wants: 8.0 }]);
    assert_eq!([9, 5, 1].map(|priority| shares.level(priority)), [Some(f64::INFINITY); 3]);
    assert!(
        [(9, 10.0), (5, 10.0), (1, 2.0)]
            .iter()
            .all(|&(priority, left)| close(shares.capacity_for(priority), left))
    );
    shares.set_capacity(8.0);
    assert_eq!(
        [9, 5, 1].map(|priority| shares.level(priority)),
        [Some(f64::INFINITY), Some(f64::INFINITY), Some(0.0)]
    );
    shares.set_capacity(6.0);
    assert_eq!([5, 1].map(|priority| shares.level(priority)), [Some(3.0), Some(0.0)]);
    assert_eq!(shares.curve(1), Curve::default());
}

#[test]
fn a_million_clients_are_a_few_buckets() {
    let mut shares = Shares::new(SharePolicy::FairShare, 1.0);
    (0..1_000_000u32).for_each(|number| {
        shares.insert(&Demand { priority: 0, weight: 1, wants: f64::from(number % 65_536) });
    });
    let curve = shares.curve(0);
    assert_eq!(curve.idle, 16);
    assert_eq!(curve.buckets.iter().map(|bucket| bucket.weight).sum::<u64>(), 1_000_000 - 16);
    assert!(curve.buckets.len() <= 16 * BUCKETS_PER_OCTAVE as usize);
    let wants: f64 = curve.buckets.iter().map(|bucket| bucket.wants).sum();
    assert!(close(wants, shares.wants()));
}

#[test]
fn beyond_the_greatest_number_a_bucket_wants_that_number() {
    let clients = [Demand { priority: 0, weight: 1, wants: f64::MAX }; 3];
    let bucket = filled(1.0, &clients).curve(0).buckets[0];
    assert_eq!(bucket, CurveBucket { index: 8191, weight: 3, wants: f64::MAX });
}
