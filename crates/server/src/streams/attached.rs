//! The resources of one stream, in the order of their names.

use std::collections::BTreeSet;
use std::ops::Bound;

use lessor_proto::ResourceId;
use smallvec::SmallVec;

/// The most resources that lie in one piece, so that one more moves no more than that.
const FEW: usize = 64;

/// Resources in the order of their names: mostly a few.
#[derive(Clone, Debug)]
pub(crate) enum Attached {
    Few(SmallVec<[ResourceId; 1]>),
    Many(BTreeSet<ResourceId>),
}

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
                if let Err(place) = few.binary_search(id) {
                    few.insert(place, id.clone());
                }
                if few.len() > FEW {
                    *self = Attached::Many(few.drain(..).collect());
                }
            }
            Attached::Many(many) => _ = many.insert(id.clone()),
        }
    }

    pub(crate) fn remove(&mut self, id: &ResourceId) {
        match self {
            Attached::Few(few) => {
                if let Ok(place) = few.binary_search(id) {
                    few.remove(place);
                }
            }
            Attached::Many(many) => _ = many.remove(id),
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
    pub(crate) fn after<'a>(
        &'a self,
        last: Option<&ResourceId>,
    ) -> impl Iterator<Item = &'a ResourceId> + use<'a> {
        let (few, many) = match self {
            Attached::Few(few) => {
                let from = last.map_or(0, |last| few.partition_point(|id| id <= last));
                (&few[from..], None)
            }
            Attached::Many(many) => {
                let from = last.map_or(Bound::Unbounded, Bound::Excluded);
                (&[][..], Some(many.range::<ResourceId, _>((from, Bound::Unbounded))))
            }
        };
        few.iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> ResourceId {
        ResourceId::new(format!("key-{:05}", number * 7_919 % 10_007), 256).unwrap()
    }

    #[test]
    fn few_and_many_are_in_order_and_found() {
        for count in [0, 1, FEW, FEW + 1, 1_000] {
            let (mut attached, mut names) = (Attached::default(), Vec::new());
            for number in 0..count {
                attached.insert(&name(number));
                attached.insert(&name(number));
                names.push(name(number));
            }
            names.sort();
            assert!(attached.iter().eq(&names), "{count}");
            assert_eq!((attached.len(), attached.is_empty()), (count, count == 0));
            for (place, last) in names.iter().enumerate().step_by(37) {
                assert!(attached.contains(last));
                assert!(attached.after(Some(last)).eq(&names[place + 1..]), "{count} after {last}");
            }
            names.iter().step_by(2).for_each(|gone| attached.remove(gone));
            assert!(attached.iter().eq(names.iter().skip(1).step_by(2)), "{count}");
        }
    }
}
