//! The choice of the resources that are shown where there are more: those that matter most, a slice at a time.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use lessor_proto::ResourceId;

use crate::node::{Node, StatusQuery};
use crate::resource::Prominence;

/// The resources up to a name, of which the first are known.
#[derive(Default, Debug)]
pub(super) struct Choice {
    after: Option<ResourceId>,
    first: BTreeSet<(Reverse<Prominence>, ResourceId)>,
}

// === impl Choice ===

impl Choice {
    /// Looks at a slice of them. Returns the names of those that come first, no more than that asks for, when all were looked at.
    pub(super) fn step(
        &mut self,
        node: &Node,
        query: &StatusQuery,
        work: &mut usize,
    ) -> Option<BTreeSet<ResourceId>> {
        let most = query.resources;
        for (id, resource) in node.resources.after(self.after.clone().as_ref()) {
            if *work == 0 {
                return None;
            }
            *work -= 1;
            self.after = Some(id.clone());
            if !query.takes(id) {
                continue;
            }
            let prominence = Reverse(resource.prominence());
            // Of equals the first by name are shown, and those come first.
            let is_shown =
                self.first.len() < most || self.first.last().is_some_and(|(last, _)| prominence < *last);
            if is_shown {
                self.first.insert((prominence, id.clone()));
            }
            if self.first.len() > most {
                self.first.pop_last();
            }
        }
        Some(std::mem::take(&mut self.first).into_iter().map(|(_, id)| id).collect())
    }
}
