//! The scan of a node for a plan: which resources a change is about, and what their holders want, a slice at a time.

use std::sync::Arc;

use lessor_proto::{Epoch, ResourceId, Time};

use super::{Node, covering};
use crate::plan::{NodePlan, PlanChange, PlannedFigures, PlannedResource, RestDemands};
use crate::repository::{Repository, Template};
use crate::resource::{Resource, Slot};

/// A plan of a node of which a part is scanned.
#[derive(Debug)]
pub struct PlanScan {
    change: PlanChange,
    /// The epoch of the node that was looked at.
    epoch: Epoch,
    /// The last resource that was looked at.
    after: Option<ResourceId>,
    /// The slot from which on the holders of the last planned one are to be looked at.
    from: Option<Slot>,
    planned: Vec<PlannedResource>,
    /// The number of holders that may still be looked at one by one.
    room: usize,
    /// Resources that the change is about and that are not planned, as they are too many.
    unplanned: usize,
}

/// Resources that are planned.
const MOST_PLANNED: usize = 1_000;
/// Holders of each that are looked at one by one; those after them are taken together by what they want.
const MOST_HOLDERS: usize = 10_000;
/// Holders of all resources together that are looked at one by one: a plan takes some tens of megabytes at the most.
const MOST_IN_ALL: usize = 100_000;
/// The work of one slice, where one is that of looking at a resource.
const SLICE: usize = 512;
/// The work of looking at a holder.
const HOLDER: usize = 2;

// === impl PlanScan ===

impl PlanScan {
    /// A scan for this change, of which nothing is done yet.
    #[must_use]
    pub fn new(change: PlanChange) -> PlanScan {
        PlanScan {
            change,
            epoch: Epoch::default(),
            after: None,
            from: None,
            planned: Vec::new(),
            room: MOST_IN_ALL,
            unplanned: 0,
        }
    }

    /// Scans a slice of `node` at `now`, from the beginning if that is the node of another epoch. Returns the plan when all is
    /// scanned.
    pub fn step(&mut self, now: Time, node: &Node) -> Option<NodePlan> {
        if self.epoch != node.epoch() {
            *self = PlanScan { epoch: node.epoch(), ..PlanScan::new(self.change.clone()) };
        }
        if !self.scan(now, node) {
            return None;
        }
        let planned = std::mem::take(&mut self.planned);
        let templates = self.change.repository.clone();
        let mut plan = NodePlan::new(now, node.config(), templates, planned, self.unplanned);
        node.rehearse_domains(now, &mut plan);
        Some(plan.at_version(node.repository().version()))
    }

    /// Scans a slice. Returns whether that was the last.
    fn scan(&mut self, now: Time, node: &Node) -> bool {
        let mut work = SLICE;
        while work > 0 {
            if self.from.is_some() {
                self.scan_holders(node, &mut work);
            } else if !self.next_resource(now, node, &mut work) {
                return true;
            }
        }
        false
    }

    /// Goes on to the next resource that the change is about. Returns whether there is one, or work to go on with.
    fn next_resource(&mut self, now: Time, node: &Node, work: &mut usize) -> bool {
        for (id, resource) in node.resources.after(self.after.clone().as_ref()) {
            if *work == 0 {
                return true;
            }
            *work -= 1;
            self.after = Some(id.clone());
            let after = match &self.change.repository {
                Some(repository) => covering(repository, &node.orders.overrides, &node.config, id),
                None => resource.template().map(Arc::clone),
            };
            // Nobody loses or gains by what is only tried.
            let is_tried = |repository: &Repository| repository.is_companion(id);
            if is_tried(&node.repository) || self.change.repository.as_ref().is_some_and(is_tried) {
                continue;
            }
            if !self.change.is_about(id, resource.template(), after.as_ref()) {
                continue;
            }
            if self.planned.len() >= MOST_PLANNED {
                self.unplanned += 1;
                continue;
            }
            self.planned.push(plan_of(now, node, id, resource, after));
            self.from = Some(0);
            return true;
        }
        false
    }

    fn scan_holders(&mut self, node: &Node, work: &mut usize) {
        let (Some(from), Some(planned)) = (self.from.take(), self.planned.last_mut()) else { return };
        let Some(resource) = node.resources.get(&planned.id) else { return };
        for (slot, holder) in resource.rehearsed_from(from) {
            if *work == 0 {
                self.from = Some(slot);
                return;
            }
            *work = work.saturating_sub(HOLDER);
            if planned.holders.len() < MOST_HOLDERS && self.room > 0 {
                self.room -= 1;
                planned.holders.push(holder);
            } else {
                planned.rest.add(&holder);
            }
        }
    }
}

fn plan_of(
    now: Time,
    node: &Node,
    id: &ResourceId,
    resource: &Resource,
    after: Option<Arc<Template>>,
) -> PlannedResource {
    let row = node.row(now, resource);
    let companion = id.companion(usize::MAX).and_then(|companion| node.resources.get(&companion));
    PlannedResource {
        id: id.clone(),
        before: resource.template().map(Arc::clone),
        after,
        holders: Vec::new(),
        rest: RestDemands::default(),
        figures: PlannedFigures {
            capacity: row.resource.capacity,
            out: row.outstanding,
            wants: row.resource.wants,
            ghost_ends: (row.ghost > 0.0).then_some(row.ghost_ends_in_seconds),
            unenforced: resource.unenforced(),
            beside: companion.map(Resource::unenforced).unwrap_or_default(),
        },
        levels: resource.levels(),
        step: resource.level_step(),
        is_frozen: resource.is_frozen(),
        domains: None,
        rehearsal: None,
    }
}

#[cfg(test)]
mod tests;
