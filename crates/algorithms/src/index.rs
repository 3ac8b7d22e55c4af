//! Demands ordered by what they want per unit of weight, with sums.
//!
//! Both bounded policies ask one kind of question: how much do the demands below some point want, and how much do they
//! weigh? Here a B+ tree answers in one descent, and takes a change in one descent.
//!
//! Equal demands are one entry with a count, so a million clients that want the same cost as much as one.
//! The sums of a node are computed from its content whenever something below it changes; nothing is ever added and later
//! subtracted again. They are therefore a function of what the index holds and of its shape, never of the number of
//! changes that led there, and cannot drift.

mod node;

use std::mem;
use std::ops::AddAssign;

use node::{Child, IndexEntry, Node};

/// A multiset of demands, each a pair of wants (finite, >= 0, in the caller's unit) and weight (>= 1).
///
/// The caller picks a unit in which the sum of all wants times any weight is finite.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    root: Node,
    /// Of the whole tree.
    sums: Sums,
}

/// The sums over a group of demands.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Sums {
    pub(crate) wants: f64,
    pub(crate) weight: u64,
}

// === impl Index ===

impl Index {
    pub(crate) fn new() -> Index {
        Index { root: Node::Leaf(Vec::new()), sums: Sums::default() }
    }

    /// Of all demands.
    pub(crate) fn sums(&self) -> Sums {
        self.sums
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sums.weight == 0
    }

    pub(crate) fn insert(&mut self, wants: f64, weight: u32) {
        if let Some(right) = self.root.insert(IndexEntry { wants, weight, count: 1 }) {
            let left = mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            self.root = Node::Inner(vec![Child::new(left), Child::new(right)]);
        }
        self.sums = self.root.sums();
    }

    /// # Panics
    ///
    /// If no equal demand is held.
    pub(crate) fn remove(&mut self, wants: f64, weight: u32) {
        self.root.remove(IndexEntry { wants, weight, count: 1 });
        if let Node::Inner(children) = &mut self.root
            && children.len() == 1
        {
            self.root = children.remove(0).node;
        }
        self.sums = self.root.sums();
    }

    /// The sums of the first demands, up to the first for which `belongs` is false.
    ///
    /// `belongs` sees the sums of all demands before a point and the wants per weight at that point. Once false it must
    /// stay false for all greater points.
    pub(crate) fn prefix(&self, belongs: impl Fn(Sums, f64) -> bool) -> Sums {
        let mut before = Sums::default();
        let mut node = &self.root;
        loop {
            match node {
                Node::Inner(children) => node = Child::last_to_begin(children, &mut before, &belongs),
                Node::Leaf(entries) => {
                    for entry in entries {
                        if !belongs(before, entry.wants_per_weight()) {
                            break;
                        }
                        before += entry.sums();
                    }
                    return before;
                }
            }
        }
    }

    /// The sums of all demands whose wants per weight have the same `key`, in ascending order. A greater number must not
    /// have a lesser key.
    ///
    /// Every group is added up from its own demands, so that a small one loses nothing beside a large one. Only nodes in
    /// which a group ends are looked into: one path down for each.
    pub(crate) fn groups<K: Copy + PartialEq>(&self, key: impl Fn(f64) -> K) -> Vec<(K, Sums)> {
        let mut groups = Vec::new();
        self.root.add_to_groups(None, &key, &mut groups);
        groups
    }
}

// === impl Sums ===

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Sums) {
        self.wants += other.wants;
        self.weight += other.weight;
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::node::{INNER_MAX, LEAF_MAX};
    use super::*;

    /// Asserts all that must hold of a subtree; returns its height, its entries and its bytes on the heap.
    fn check_node(node: &Node, is_root: bool) -> (usize, usize, usize) {
        assert!(is_root || !node.is_sparse());
        match node {
            Node::Leaf(entries) => {
                assert!(entries.len() <= LEAF_MAX);
                assert!(entries.iter().all(|entry| entry.count > 0));
                assert!(entries.is_sorted_by(|a, b| a.order(b) == Ordering::Less));
                (0, entries.len(), entries.capacity() * size_of::<IndexEntry>())
            }
            Node::Inner(children) => {
                assert!((2..=INNER_MAX).contains(&children.len()));
                let mut below = (0, 0, children.capacity() * size_of::<Child>());
                for (at, child) in children.iter().enumerate() {
                    assert_eq!(child.first, child.node.first());
                    assert_eq!(child.sums, child.node.sums());
                    let (height, entries, bytes) = check_node(&child.node, false);
                    assert!(at == 0 || below.0 == height + 1);
                    below = (height + 1, below.1 + entries, below.2 + bytes);
                }
                assert!(children.windows(2).all(|pair| last(&pair[0].node).order(&pair[1].first).is_lt()));
                below
            }
        }
    }

    fn last(node: &Node) -> IndexEntry {
        match node {
            Node::Leaf(entries) => entries[entries.len() - 1],
            Node::Inner(children) => last(&children[children.len() - 1].node),
        }
    }

    fn check(index: &Index) -> (usize, usize, usize) {
        assert_eq!(index.sums, index.root.sums());
        check_node(&index.root, true)
    }

    /// Splitmix64: enough disorder for a test, the same every time.
    fn scrambled(number: u64) -> u64 {
        let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn wants_of(number: u64) -> f64 {
        (scrambled(number) >> 11) as f64 * 1e-9
    }

    #[test]
    fn equal_demands_are_one_entry() {
        let mut index = Index::new();
        (0..100_000).for_each(|_| index.insert(0.1, 3));
        assert_eq!(check(&index).1, 1);
        assert_eq!(index.sums(), Sums { wants: 0.1 * 100_000.0, weight: 300_000 });
    }

    #[test]
    fn different_demands_of_equal_wants_per_weight_stay_apart() {
        let mut index = Index::new();
        index.insert(10.0, 1);
        index.insert(20.0, 2);
        index.insert(30.0, 3);
        index.remove(20.0, 2);
        assert_eq!(check(&index).1, 2);
        assert_eq!(index.sums(), Sums { wants: 40.0, weight: 4 });
    }

    #[test]
    fn growing_and_shrinking_in_any_order_keeps_the_shape() {
        let ascending: fn(u64) -> f64 = |number| number as f64;
        let descending: fn(u64) -> f64 = |number| 1e6 - number as f64;
        for wants in [ascending, descending, wants_of] {
            let mut index = Index::new();
            for number in 0..20_000 {
                index.insert(wants(number), 1);
                if number % 1_000 == 0 {
                    check(&index);
                }
            }
            assert_eq!(check(&index).1, 20_000);
            for number in 0..20_000 {
                index.remove(wants(number), 1);
                if number % 1_000 == 0 {
                    check(&index);
                }
            }
            assert!(index.is_empty());
            assert_eq!(check(&index).1, 0);
        }
    }

    #[test]
    fn a_different_demand_takes_less_than_30_bytes() {
        let mut index = Index::new();
        (0..50_000).for_each(|number| index.insert(wants_of(number), 1));
        (0..200_000).for_each(|number| {
            index.remove(wants_of(number), 1);
            index.insert(wants_of(number + 50_000), 1);
        });
        let (_, entries, bytes) = check(&index);
        assert!(bytes < 30 * entries, "{} bytes each", bytes as f64 / entries as f64);
    }

    #[test]
    #[should_panic(expected = "only a demand that was inserted can be removed")]
    fn removing_what_was_not_inserted_panics() {
        let mut index = Index::new();
        index.insert(10.0, 1);
        index.remove(10.0, 2);
    }

    proptest! {
        #[test]
        fn a_prefix_sums_up_all_demands_below_a_point(
            demands in prop::collection::vec((0u32..200, 1u32..4), 0..600),
            removed in 0usize..600,
            point in 0.0..200.0,
        ) {
            let mut index = Index::new();
            demands.iter().for_each(|&(wants, weight)| index.insert(wants.into(), weight));
            let (gone, kept) = demands.split_at(removed.min(demands.len()));
            gone.iter().for_each(|&(wants, weight)| index.remove(wants.into(), weight));
            check(&index);

            let mut below = Sums::default();
            for &(wants, weight) in kept {
                if f64::from(wants) / f64::from(weight) < point {
                    below += IndexEntry { wants: wants.into(), weight, count: 1 }.sums();
                }
            }
            prop_assert_eq!(index.prefix(|_, wants_per_weight| wants_per_weight < point), below);
        }
    }
}
