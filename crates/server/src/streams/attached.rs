//! The resources of a stream: hardly ever more than a few, and of a door perhaps a hundred thousand.

use std::collections::BTreeSet;
use std::ops::Bound;

use lessor_proto::ResourceId;
use smallvec::SmallVec;

/// Resources in the order of their names: mostly a few.
#[derive(Clone, Debug)]
pub(crate) enum Attached {
    /// Up to [`FEW`], which moves those that come after the one that is added or removed.
    Few(SmallVec<[ResourceId; 1]>),
    Many(BTreeSet<ResourceId>),
}

/// The most resources of a stream that are moved for one of them.
const FEW: usize = 64;

// === impl Attached ===

impl Default for Attached {
    fn default() -> Attached {
        Attached::Few(SmallVec::new())
    }
}

impl Attached {
    pub(crate) fn insert(&mut self, id: &ResourceId) {
        match self {
            Attached::Few(few) => {
                let Err(place) = few.binary_search(id) else { return };
                few.insert(place, id.clone());
                if few.len() > FEW {
                    *self = Attached::Many(std::mem::take(few).into_iter().collect());
                }
            }
            Attached::Many(many) => {
                if !many.contains(id) {
                    many.insert(id.clone());
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, id: &ResourceId) {
        match self {
            Attached::Few(few) => {
                if let Ok(place) = few.binary_search(id) {
                    few.remove(place);
                }
            }
            Attached::Many(many) => {
                many.remove(id);
                if many.is_empty() {
                    *self = Attached::default();
                }
            }
        }
    }

    /// Takes the first `most` of them out.
    pub(crate) fn take_first(&mut self, most: usize) -> Vec<ResourceId> {
        match self {
            Attached::Few(few) => few.drain(..most.min(few.len())).collect(),
            Attached::Many(many) => (0..most).map_while(|_| many.pop_first()).collect(),
        }
    }

    pub(crate) fn contains(&self, id: &ResourceId) -> bool {
        match self {
            Attached::Few(few) => few.binary_search(id).is_ok(),
            Attached::Many(many) => many.contains(id),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Attached::Few(few) => few.len(),
            Attached::Many(many) => many.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ResourceId> {
        self.after(None)
    }

    /// Those that come after `last`; absent: all.
    pub(crate) fn after(&self, last: Option<&ResourceId>) -> impl Iterator<Item = &ResourceId> {
        let (few, many) = match self {
            Attached::Few(few) => {
                let from = last.map_or(0, |last| few.partition_point(|id| id <= last));
                (Some(&few[from..]), None)
            }
            Attached::Many(many) => {
                let from = last.map_or(Bound::Unbounded, Bound::Excluded);
                (None, Some(many.range::<ResourceId, _>((from, Bound::Unbounded))))
            }
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> ResourceId {
        ResourceId::new(format!("r{number:04}"), 16).unwrap()
    }

    fn names(attached: &Attached) -> Vec<ResourceId> {
        attached.iter().cloned().collect()
    }

    #[test]
    fn few_and_many_are_in_the_order_of_their_names() {
        let (mut attached, mut expected) = (Attached::default(), BTreeSet::new());
        for step in 0..4 * FEW {
            // All numbers below 1,009 in an order of no meaning, and each third is taken out again.
            let added = name(step * 601 % 1_009);
            attached.insert(&added);
            attached.insert(&added);
            expected.insert(added.clone());
            if step % 3 == 0 {
                attached.remove(&added);
                expected.remove(&added);
            }
            let all: Vec<ResourceId> = expected.iter().cloned().collect();
            assert_eq!((attached.len(), attached.contains(&added)), (all.len(), step % 3 != 0));
            assert_eq!(names(&attached), all);
            let middle = name(500);
            let after: Vec<ResourceId> = attached.after(Some(&middle)).cloned().collect();
            assert_eq!(after, expected.iter().filter(|id| **id > middle).cloned().collect::<Vec<_>>());
        }
        let first: Vec<ResourceId> = expected.iter().take(10).cloned().collect();
        assert_eq!(attached.take_first(10), first);
        assert_eq!(attached.len(), expected.len() - 10);
        attached.take_first(usize::MAX);
        assert!(attached.is_empty());
    }

    #[test]
    fn a_few_are_taken_in_parts_as_many_are() {
        let mut attached = Attached::default();
        (0..5).for_each(|number| attached.insert(&name(number)));
        assert_eq!(attached.take_first(2), [name(0), name(1)]);
        assert_eq!(attached.take_first(9), [name(2), name(3), name(4)]);
        assert!(attached.is_empty());
    }
}
