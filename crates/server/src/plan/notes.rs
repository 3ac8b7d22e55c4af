//! Notes on a change: what is allowed, and is perhaps not meant.

use crate::config::NodeConfig;
use crate::repository::{Repository, SafeCapacity, SharePolicy, Template};

use super::PlannedResource;
use super::forecast::PlanNote;
use super::node::SupplyForecast;

/// The notes on a resource at a node, under a node above that would grant `supply`.
pub(super) fn of_resource(
    config: &NodeConfig,
    planned: &PlannedResource,
    supply: Option<&SupplyForecast>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let (before, Some(after)) = (planned.before.as_deref(), planned.after.as_deref()) else { return notes };
    if planned.is_frozen {
        notes
            .push("it is frozen: nobody gets more of it, whatever its share, before that is over".to_owned());
    }
    if let Some(supply) = supply {
        if let Some(above) = supply.lease_length.filter(|above| after.lease_length > *above / 2) {
            notes.push(format!(
                "leases of {} s are more than half of those of {} s of the node above: they are cut short",
                after.lease_length.as_secs(),
                above.as_secs()
            ));
        }
        if supply.lease_length.is_some() && supply.kind != after.kind {
            notes.push("the node above counts it as another kind: nothing is granted".to_owned());
        }
        let is_as_before = before.is_some_and(is_told_from_template);
        if is_told_from_template(after) && !is_as_before {
            notes.push(
                "safe_capacity is left out, and is told to clients from the capacity of the template, not from the lease"
                    .to_owned(),
            );
        }
    }
    let is_limited = |template: &Template| template.policy != SharePolicy::None;
    if before.is_some_and(is_limited) && !is_limited(after) {
        notes.push("nobody would be limited any more".to_owned());
    }
    if config.parent.is_none() && before.is_some_and(|before| before.lease_length > after.lease_length) {
        notes.push(format!("leases become shorter: {} s", after.lease_length.as_secs()));
    }
    notes
}

/// Whether clients are told a safe capacity that no lease backs.
fn is_told_from_template(template: &Template) -> bool {
    template.safe_capacity == SafeCapacity::Dynamic && !template.reserves()
}

/// The notes on templates that would be in force at a node.
pub(super) fn of_templates(config: &NodeConfig, templates: &Repository) -> Vec<PlanNote> {
    let note = |template: &std::sync::Arc<Template>| PlanNote {
        resource: template.glob.to_string(),
        node: config.name.clone(),
        note: "\"*\" stands before it: nothing follows it".to_owned(),
    };
    templates.shadowed().map(note).collect()
}
