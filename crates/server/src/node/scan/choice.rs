//! The choice of the resources that are shown where there are more: those that matter most, a slice at a time.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use lessor_proto::ResourceId;

use crate::node::{Node, OtherResources, StatusQuery};
use crate::resource::{Prominence, Resource};

/// The resources up to a name, of which the first are known.
#[derive(Default, Debug)]
pub(super) struct Choice {
    after: Option<ResourceId>,
    first: BTreeSet<ShownResource>,
    others: OtherResources,
}

/// A resource that is shown as long as there are not enough that come before it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ShownResource {
    prominence: Reverse<Prominence>,
    name: ResourceId,
    figures: OtherResources,
}

// === impl Choice ===

impl Choice {
    /// Looks at a slice of them. Returns the names of those that come first, no more than that asks for, when all were looked at,
    /// and the others as one.
    pub(super) fn step(
        &mut self,
        node: &Node,
        query: &StatusQuery,
        work: &mut usize,
    ) -> Option<(BTreeSet<ResourceId>, OtherResources)> {
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
            let (prominence, figures) = (Reverse(resource.prominence()), figures(resource));
            // Of equals the first by name are shown, and those come first.
            let is_shown =
                self.first.len() < most || self.first.last().is_some_and(|last| prominence < last.prominence);
            match is_shown {
                true => _ = self.first.insert(ShownResource { prominence, name: id.clone(), figures }),
                false => self.others.add(figures),
            }
            if self.first.len() > most
                && let Some(last) = self.first.pop_last()
            {
                self.others.add(last.figures);
            }
        }
        let shown = std::mem::take(&mut self.first).into_iter().map(|candidate| candidate.name).collect();
        Some((shown, self.others))
    }
}

fn figures(resource: &Resource) -> OtherResources {
    let holders = resource.holders_in_all();
    OtherResources { resources: 1, holders, in_debt: usize::from(resource.ledger().in_debt()) }
}
