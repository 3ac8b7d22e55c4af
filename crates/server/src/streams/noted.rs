//! Resources that were noted for a stream while it took nothing, in rounds by their names: what is noted of the first ones again and
//! again keeps nobody from the last.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use lessor_proto::ResourceId;

/// The resources to look at when a stream takes something again.
#[derive(Clone, Default, Debug)]
pub(super) struct Noted {
    resources: BTreeSet<ResourceId>,
    /// The last one of this round that was looked at.
    last: Option<ResourceId>,
}

/// Some of them, to be looked at.
#[derive(Default, Debug)]
pub(super) struct NotedSlice {
    pub(super) resources: Vec<ResourceId>,
    /// With them the round is over: all that was noted when it began has been looked at.
    pub(super) ends_round: bool,
}

// === impl Noted ===

impl Noted {
    pub(super) fn insert(&mut self, resource: &ResourceId) {
        self.resources.insert(resource.clone());
    }

    pub(super) fn len(&self) -> usize {
        self.resources.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Takes all of them if they are no more than `most`, and otherwise so many of those that come next in this round.
    pub(super) fn take(&mut self, most: usize) -> NotedSlice {
        let last = self.last.take();
        if self.resources.is_empty() {
            // As of nearly all streams, whenever they have taken something.
            return NotedSlice { resources: Vec::new(), ends_round: true };
        }
        if self.resources.len() <= most {
            let resources = std::mem::take(&mut self.resources).into_iter().collect();
            return NotedSlice { resources, ends_round: true };
        }
        let from = last.map_or(Unbounded, Excluded);
        let resources: Vec<_> = self.resources.extract_if((from, Unbounded), |_| true).take(most).collect();
        let last = resources.last().filter(|&last| self.resources.last().is_some_and(|end| end > last));
        self.last = last.cloned();
        NotedSlice { ends_round: self.last.is_none(), resources }
    }
}
