//! The way from descriptors to rules: level by level, one entry of a descriptor for each.
//!
//! On a level the very pair of key and value comes first, then patterns of that key in the order of the file, and then the key
//! with any value. A rule counts only where the last entry leads: with fewer or more entries than it has levels there is none.
//! Keys and values are compared as two, and not as one text: `a_b` with `c` is not `a` with `b_c`.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::pattern::Pattern;

/// The rules of a set, by the entries of descriptors.
#[derive(Clone, Default, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
}

/// A rule that was found, and which of the entries it leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The rule, by its place in the set.
    pub rule: usize,
    /// A bit for each entry whose value it leaves open: those make the key.
    pub open: u32,
}

/// A level: what there may be behind an entry, or at the beginning.
#[derive(Clone, Default, Debug)]
struct Node {
    found: Option<Found>,
    /// Which of the entries that lead here have open values.
    open: u32,
    depth: u32,
    /// By key, in order: mostly there are one or two.
    keys: Vec<(Box<str>, KeyEntries)>,
}

/// The entries of a key on a level.
#[derive(Clone, Default, Debug)]
struct KeyEntries {
    exact: HashMap<Box<str>, usize, FixedState>,
    patterns: Vec<(Pattern, usize)>,
    bare: Option<usize>,
}

/// The values that an entry of a rule is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValueMatch {
    /// This value.
    Exact(Box<str>),
    /// Any that it means. With `is_shared` they have one limit together, else each has its own.
    Pattern {
        /// The pattern.
        pattern: Pattern,
        /// Whether all values that it means are one.
        is_shared: bool,
    },
    /// Any.
    Any,
}

/// A place in a tree, at which a rule can be put or a level be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreePlace(usize);

/// There is such an entry at that place already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken;

/// The most levels: a bit of a mask is for each.
pub const MOST_LEVELS: usize = 16;

// === impl Tree ===

impl Tree {
    /// A tree without rules.
    #[must_use]
    pub fn new() -> Tree {
        Tree { nodes: vec![Node::default()] }
    }

    /// The beginning of all descriptors.
    #[must_use]
    pub fn root(&self) -> TreePlace {
        TreePlace(0)
    }

    /// Adds an entry behind `place`.
    ///
    /// # Errors
    /// When there is one of that key and value.
    pub fn add(&mut self, place: TreePlace, key: &str, value: &ValueMatch) -> Result<TreePlace, Taken> {
        let next = self.nodes.len();
        let node = &mut self.nodes[place.0];
        let depth = node.depth + 1;
        let is_open = match value {
            ValueMatch::Exact(_) | ValueMatch::Pattern { is_shared: true, .. } => false,
            ValueMatch::Pattern { is_shared: false, .. } | ValueMatch::Any => true,
        };
        let open = node.open | u32::from(is_open) << node.depth;
        let entries = node.entries(key);
        match value {
            ValueMatch::Exact(value) => {
                entries.exact.try_insert(value.clone(), next).map_err(|_| Taken)?;
            }
            ValueMatch::Pattern { pattern, .. } => {
                if entries.patterns.iter().any(|(known, _)| known == pattern) {
                    return Err(Taken);
                }
                entries.patterns.push((pattern.clone(), next));
            }
            ValueMatch::Any => {
                if entries.bare.is_some() {
                    return Err(Taken);
                }
                entries.bare = Some(next);
            }
        }
        self.nodes.push(Node { open, depth, ..Node::default() });
        Ok(TreePlace(next))
    }

    /// Puts a rule at `place`.
    pub fn put(&mut self, place: TreePlace, rule: usize) {
        let node = &mut self.nodes[place.0];
        node.found = Some(Found { rule, open: node.open });
    }

    /// The rule for a descriptor of these entries.
    pub fn find<'a>(&self, entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Found> {
        let mut node = self.nodes.first()?;
        for (key, value) in entries {
            node = self.nodes.get(node.next(key, value)?)?;
        }
        node.found
    }
}

// === impl Node ===

impl Node {
    fn place_of(&self, key: &str) -> Result<usize, usize> {
        self.keys.binary_search_by(|(known, _)| (**known).cmp(key))
    }

    /// The entries of a key, which are there from here on.
    fn entries(&mut self, key: &str) -> &mut KeyEntries {
        let place = self.place_of(key).unwrap_or_else(|place| {
            self.keys.insert(place, (key.into(), KeyEntries::default()));
            place
        });
        &mut self.keys[place].1
    }

    fn next(&self, key: &str, value: &str) -> Option<usize> {
        let (_, entries) = &self.keys[self.place_of(key).ok()?];
        if let Some(&next) = entries.exact.get(value) {
            return Some(next);
        }
        let pattern = entries.patterns.iter().find(|(pattern, _)| pattern.matches(value));
        pattern.map(|&(_, next)| next).or(entries.bare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: &str) -> ValueMatch {
        ValueMatch::Exact(value.into())
    }

    fn pattern(text: &str, is_shared: bool) -> ValueMatch {
        ValueMatch::Pattern { pattern: Pattern::new(text), is_shared }
    }

    fn tree(rules: &[(&[(&str, ValueMatch)], usize)]) -> Tree {
        let mut tree = Tree::new();
        let mut places: Vec<(Vec<(&str, ValueMatch)>, TreePlace)> = vec![(Vec::new(), tree.root())];
        for (path, rule) in rules {
            for length in 1..=path.len() {
                if places.iter().all(|(known, _)| known != &path[..length]) {
                    let before = places.iter().find(|(known, _)| known == &path[..length - 1]).unwrap().1;
                    let (key, value) = &path[length - 1];
                    let place = tree.add(before, key, value).unwrap();
                    places.push((path[..length].to_vec(), place));
                }
            }
            let place = places.iter().find(|(known, _)| known == path).unwrap().1;
            tree.put(place, *rule);
        }
        tree
    }

    #[test]
    fn the_pair_comes_before_patterns_and_those_before_the_key() {
        let tree = tree(&[
            (&[("path", ValueMatch::Any)], 0),
            (&[("path", pattern("/a*", false))], 1),
            (&[("path", pattern("/ab*", true))], 2),
            (&[("path", exact("/abc"))], 3),
        ]);
        let find = |value| tree.find([("path", value)]);
        assert_eq!(find("/abc"), Some(Found { rule: 3, open: 0 }));
        assert_eq!(find("/abd"), Some(Found { rule: 1, open: 1 }), "the first of the file");
        assert_eq!(find("/x"), Some(Found { rule: 0, open: 1 }));
        assert_eq!(tree.find([("host", "/abc")]), None);
    }

    #[test]
    fn a_rule_counts_only_where_the_last_entry_leads() {
        let tree = tree(&[
            (&[("a", exact("1")), ("b", ValueMatch::Any)], 0),
            (&[("a", ValueMatch::Any), ("b", exact("2")), ("c", pattern("*x", true))], 1),
        ]);
        assert_eq!(tree.find([("a", "1")]), None);
        assert_eq!(tree.find([("a", "1"), ("b", "7")]), Some(Found { rule: 0, open: 0b10 }));
        assert_eq!(tree.find([("a", "1"), ("b", "2"), ("c", "x")]), None, "the pair leads elsewhere");
        assert_eq!(tree.find([("a", "3"), ("b", "2"), ("c", "yx")]), Some(Found { rule: 1, open: 0b1 }));
        assert_eq!(tree.find([]), None);
    }

    #[test]
    fn keys_and_values_are_two() {
        let tree = tree(&[(&[("a_b", exact("c"))], 0)]);
        assert_eq!(tree.find([("a", "b_c")]), None);
        assert!(tree.find([("a_b", "c")]).is_some());
    }

    #[test]
    fn an_entry_stands_once_at_a_place() {
        let mut tree = Tree::new();
        for value in [exact("1"), pattern("1*", true), ValueMatch::Any] {
            assert!(tree.add(tree.root(), "a", &value).is_ok());
            assert_eq!(tree.add(tree.root(), "a", &value), Err(Taken));
        }
        assert_eq!(tree.add(tree.root(), "a", &pattern("1*", false)), Err(Taken));
    }
}
