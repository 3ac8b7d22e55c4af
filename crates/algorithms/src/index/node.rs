//! The nodes of the tree: what they hold, and how they split and join.

use std::cmp::Ordering;

use super::Sums;

/// A leaf splits above this many entries.
pub(super) const LEAF_MAX: usize = 48;
/// An inner node splits above this many children.
pub(super) const INNER_MAX: usize = 32;
/// A node filled to less than one part in so many joins a neighbour. A quarter, not a half: a node fresh from a split is far
/// from joining again, so putting in and taking out at one place splits and joins nothing.
const JOIN_PART: usize = 4;
/// Spare places a vector may have after a change. It bounds the memory without growing at every insertion.
const SPARE: usize = 4;

/// All demands of one size. Sixteen bytes: the index of a million different demands is little more than these.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct IndexEntry {
    pub(super) wants: f64,
    pub(super) weight: u32,
    /// The number of equal demands, at least one.
    pub(super) count: u32,
}

/// All leaves lie at the same depth. Only the root may be empty, or an inner node with fewer than two children.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Ascending, no two equal in [`Entry::order`].
    Leaf(Vec<IndexEntry>),
    /// Ascending.
    Inner(Vec<Child>),
}

/// A subtree as its parent sees it.
#[derive(Clone, Debug)]
pub(super) struct Child {
    /// A copy of the least entry below; it divides this child from the one before.
    pub(super) first: IndexEntry,
    pub(super) sums: Sums,
    pub(super) node: Node,
}

// === impl Node ===

impl Node {
    /// Returns the right half if the node had to be split.
    pub(super) fn insert(&mut self, entry: IndexEntry) -> Option<Node> {
        match self {
            Node::Leaf(entries) => match entries.binary_search_by(|held| held.order(&entry)) {
                Ok(at) => {
                    let count = &mut entries[at].count;
                    *count = count.checked_add(1).expect("fewer than 2^32 equal demands");
                    None
                }
                Err(at) => {
                    if entries.len() == entries.capacity() {
                        entries.reserve_exact(entries.len().clamp(1, SPARE));
                    }
                    entries.insert(at, entry);
                    split(entries, LEAF_MAX).map(Node::Leaf)
                }
            },
            Node::Inner(children) => {
                let at = Child::position(children, &entry);
                let right = children[at].node.insert(entry);
                children[at].refresh();
                if let Some(right) = right {
                    children.insert(at + 1, Child::new(right));
                }
                split(children, INNER_MAX).map(Node::Inner)
            }
        }
    }

    pub(super) fn remove(&mut self, entry: IndexEntry) {
        match self {
            Node::Leaf(entries) => {
                let at = entries.binary_search_by(|held| held.order(&entry));
                let at = at.expect("only a demand that was inserted can be removed");
                entries[at].count -= 1;
                if entries[at].count == 0 {
                    entries.remove(at);
                    trim(entries);
                }
            }
            Node::Inner(children) => {
                let at = Child::position(children, &entry);
                children[at].node.remove(entry);
                if children[at].node.is_sparse() && children.len() > 1 {
                    Child::join(children, at.min(children.len() - 2));
                } else {
                    children[at].refresh();
                }
            }
        }
    }

    pub(super) fn is_sparse(&self) -> bool {
        match self {
            Node::Leaf(entries) => entries.len() < LEAF_MAX / JOIN_PART,
            Node::Inner(children) => children.len() < INNER_MAX / JOIN_PART,
        }
    }

    pub(super) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        match self {
            Node::Leaf(entries) => entries.iter().for_each(|entry| sums += entry.sums()),
            Node::Inner(children) => children.iter().for_each(|child| sums += child.sums),
        }
        sums
    }

    /// Appends the groups of this node to those of all before it (see [`Index::groups`](super::Index::groups)); `next` is
    /// the key of the demand that follows the node, if one does.
    pub(super) fn add_to_groups<K: Copy + PartialEq>(
        &self,
        next: Option<K>,
        key: &impl Fn(f64) -> K,
        groups: &mut Vec<(K, Sums)>,
    ) {
        match self {
            Node::Leaf(entries) => {
                entries
                    .iter()
                    .for_each(|entry| add_to_last(groups, key(entry.wants_per_weight()), entry.sums()));
            }
            Node::Inner(children) => {
                let mut begin = key(children[0].first.wants_per_weight());
                for (at, child) in children.iter().enumerate() {
                    let end = children.get(at + 1).map(|right| key(right.first.wants_per_weight())).or(next);
                    if end == Some(begin) {
                        add_to_last(groups, begin, child.sums);
                    } else {
                        child.node.add_to_groups(end, key, groups);
                    }
                    begin = end.unwrap_or(begin);
                }
            }
        }
    }

    pub(super) fn first(&self) -> IndexEntry {
        match self {
            Node::Leaf(entries) => entries[0],
            Node::Inner(children) => children[0].first,
        }
    }

    /// Moves all of `right`, which follows this node, into it; returns the right half if that is too much for one.
    fn append(&mut self, right: Node) -> Option<Node> {
        match (self, right) {
            (Node::Leaf(entries), Node::Leaf(mut more)) => {
                entries.append(&mut more);
                split(entries, LEAF_MAX).map(Node::Leaf)
            }
            (Node::Inner(children), Node::Inner(mut more)) => {
                children.append(&mut more);
                split(children, INNER_MAX).map(Node::Inner)
            }
            _ => unreachable!("neighbours lie at the same depth"),
        }
    }
}

// === impl Child ===

impl Child {
    pub(super) fn new(node: Node) -> Child {
        Child { first: node.first(), sums: node.sums(), node }
    }

    fn refresh(&mut self) {
        self.first = self.node.first();
        self.sums = self.node.sums();
    }

    /// Which of `children` holds `entry`, or is the place for it.
    fn position(children: &[Child], entry: &IndexEntry) -> usize {
        children[1..].partition_point(|child| child.first.order(entry) != Ordering::Greater)
    }

    /// The last child whose first demand belongs to the prefix (see [`Index::prefix`]); `before` grows by all before it.
    pub(super) fn last_to_begin<'a>(
        children: &'a [Child],
        before: &mut Sums,
        belongs: impl Fn(Sums, f64) -> bool,
    ) -> &'a Node {
        for pair in children.windows(2) {
            let mut with_left = *before;
            with_left += pair[0].sums;
            if !belongs(with_left, pair[1].first.wants_per_weight()) {
                return &pair[0].node;
            }
            *before = with_left;
        }
        &children[children.len() - 1].node
    }

    /// Makes one child of those at `at` and `at + 1`, or two halves.
    fn join(children: &mut Vec<Child>, at: usize) {
        let right = children.remove(at + 1).node;
        let rest = children[at].node.append(right);
        children[at].refresh();
        if let Some(rest) = rest {
            children.insert(at + 1, Child::new(rest));
        }
    }
}

// === impl IndexEntry ===

impl IndexEntry {
    pub(super) fn wants_per_weight(&self) -> f64 {
        self.wants / f64::from(self.weight)
    }

    /// By wants per weight. Where that is the same, by the pair itself, so that only what is equal counts as equal and the
    /// sum of an entry is exactly its wants times its count.
    pub(super) fn order(&self, other: &IndexEntry) -> Ordering {
        (self.wants_per_weight().total_cmp(&other.wants_per_weight()))
            .then(self.weight.cmp(&other.weight))
            .then(self.wants.total_cmp(&other.wants))
    }

    pub(super) fn sums(&self) -> Sums {
        Sums {
            wants: self.wants * f64::from(self.count),
            weight: u64::from(self.weight) * u64::from(self.count),
        }
    }
}

// === vectors ===

/// To the last group if that has the same key, and else to one that follows it.
fn add_to_last<K: PartialEq>(groups: &mut Vec<(K, Sums)>, key: K, sums: Sums) {
    match groups.last_mut() {
        Some((last, all)) if *last == key => *all += sums,
        _ => groups.push((key, sums)),
    }
}

/// The upper half, if there are more than `max`.
fn split<T>(items: &mut Vec<T>, max: usize) -> Option<Vec<T>> {
    if items.len() <= max {
        return None;
    }
    let right = items.split_off(items.len() / 2);
    trim(items);
    Some(right)
}

/// Gives memory back once twice the spare places are free.
fn trim<T>(items: &mut Vec<T>) {
    if items.capacity() > items.len() + 2 * SPARE {
        items.shrink_to(items.len() + SPARE);
    }
}
