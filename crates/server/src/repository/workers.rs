//! Pools: gauges whose names say how many workers there are, as [`ResourceId::workers`] reads it, under a template that says
//! how many there may be at the most.

use std::sync::Arc;

use lessor_proto::{Amount, ResourceId};

use super::{Repository, Template};

// === impl Template ===

impl Template {
    /// The template that a resource of this name follows: this one, or where names say how much there is, the one derived from
    /// it, and nothing of a name that says nothing or more than may be.
    pub(super) fn of_name(template: &Arc<Template>, resource: &ResourceId) -> Option<Arc<Template>> {
        if !template.workers_in_name {
            return Some(Arc::clone(template));
        }
        let capacity = Amount::from_units(resource.workers()?.into());
        let derived = || Arc::new(Template { capacity, ..Template::clone(template) });
        (capacity <= template.capacity).then(derived)
    }
}

// === impl Repository ===

impl Repository {
    /// The reason why a name whose template wants a number of workers in it has none.
    pub(super) fn why_no_workers(&self, resource: &ResourceId) -> Option<String> {
        let template = self.own(resource).filter(|template| template.workers_in_name)?;
        let most = template.capacity;
        match resource.workers() {
            None => Some(format!(
                "the name says no number of workers; wanted POOL|w:N|KEY with N from 1 to {most}"
            )),
            Some(workers) if Amount::from_units(workers.into()) > most => {
                Some(format!("the name says {workers} workers; wanted at most {most}"))
            }
            Some(_) => None,
        }
    }
}
