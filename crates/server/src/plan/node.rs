//! The plan at one node: its demand under a change, and then what a supply under the change makes of its holders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::domain::Policies;
use lessor_proto::message::{Band, Bands, HolderKind};
use lessor_proto::{Amount, ResourceId, Time};

use super::PlannedResource;
use super::domains::DomainsForecast;
use super::forecast::{NodeForecast, WatchedClients};
use super::notes;
use super::view::ResourceView;
use crate::config::NodeConfig;
use crate::domain_sync::RehearsedDomain;
use crate::repository::{Glob, Kind, Repository};

/// The plan at one node.
#[derive(Clone, Debug)]
pub struct NodePlan {
    now: Time,
    config: NodeConfig,
    /// The templates that would be in force; absent: those that are.
    templates: Option<Repository>,
    resources: Vec<PlannedResource>,
    unplanned: usize,
    /// Nodes below that do not say what they would want, each with the reason.
    silent: Vec<String>,
    /// Which edition of the configuration is in force.
    version: u64,
}

/// The lease of a resource that a node would have from the one above.
#[derive(Clone, PartialEq, Debug)]
pub struct SupplyForecast {
    /// The resource.
    pub resource: ResourceId,
    /// The amount of it.
    pub granted: Amount,
    /// The length of the leases of the node above; absent where no template would cover it there.
    pub lease_length: Option<Duration>,
    /// The kind that it would have there.
    pub kind: Kind,
}

// === impl NodePlan ===

impl NodePlan {
    /// The plan of a node as it was scanned.
    pub(crate) fn new(
        now: Time,
        config: &NodeConfig,
        templates: Option<Repository>,
        resources: Vec<PlannedResource>,
        unplanned: usize,
    ) -> NodePlan {
        // Of what was out before a rehearsal knows nothing.
        let config = NodeConfig { record: None, marks: false, ..config.clone() };
        NodePlan { now, config, templates, resources, unplanned, silent: Vec::new(), version: 0 }
    }

    /// The same of a node where that edition of the configuration is in force.
    pub(crate) fn at_version(self, version: u64) -> NodePlan {
        NodePlan { version, ..self }
    }

    /// A node below does not say what it would want, for that reason.
    pub fn note_silent(&mut self, node: &str, why: &str) {
        self.silent.push(format!("{node}: {why}"));
    }

    /// The name of the node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.config.name
    }

    /// The resources that are planned.
    #[must_use]
    pub fn resources(&self) -> BTreeSet<ResourceId> {
        self.resources.iter().map(|planned| planned.id.clone()).collect()
    }

    /// The names of nodes below that hold some of what is planned.
    #[must_use]
    pub fn nodes_below(&self) -> BTreeSet<String> {
        let holders = self.resources.iter().flat_map(|planned| &planned.holders);
        holders
            .filter(|holder| holder.kind == HolderKind::Node)
            .map(|holder| holder.name.to_string())
            .collect()
    }

    /// The resources of which the policies of shared domains would be others, and those policies.
    #[must_use]
    pub fn other_policies(&self) -> Vec<(ResourceId, Arc<Policies>)> {
        let changes = self.resources.iter().filter_map(|planned| {
            let [before, after] = [&planned.before, &planned.after]
                .map(|template| template.as_ref().and_then(|template| template.shared_policies()));
            let (before, after) = before.zip(after)?;
            (before.version() != after.version()).then(|| (planned.id.clone(), after))
        });
        changes.collect()
    }

    /// The hot domains of a resource would stand so under the other policies.
    pub fn hear_domains<'a>(
        &mut self,
        resource: &ResourceId,
        domains: impl IntoIterator<Item = &'a RehearsedDomain>,
    ) {
        let node = &self.config.name;
        let Some(planned) = self.resources.iter_mut().find(|planned| planned.id == *resource) else { return };
        let forecast = planned.domains.get_or_insert_with(|| DomainsForecast::at(node));
        domains.into_iter().for_each(|rehearsed| forecast.add(rehearsed));
    }

    /// More resources that are to be planned here, as the change is about them below.
    pub fn join(&mut self, other: NodePlan) {
        self.resources.extend(other.resources);
        self.unplanned += other.unplanned;
    }

    /// A node below would want this of a resource under the change.
    pub fn hear_demand(&mut self, node: &str, resource: &ResourceId, bands: &Bands) {
        let planned = self.resources.iter_mut().find(|planned| planned.id == *resource);
        let holders = planned.into_iter().flat_map(|planned| &mut planned.holders);
        for holder in holders.filter(|holder| holder.kind == HolderKind::Node && holder.name == node) {
            holder.said = bands.clone();
        }
    }

    /// Makes the resources as they would be, when all below have said what they would want.
    pub fn rehearse(&mut self) {
        for planned in &mut self.resources {
            planned.rehearse(self.now, &self.config);
        }
    }

    /// The demands that the node above would be told, of the resources that it leases. To be asked when they have been made.
    #[must_use]
    pub fn demands(&self) -> BTreeMap<ResourceId, Bands> {
        if self.config.parent.is_none() {
            return BTreeMap::new();
        }
        let most = self.config.message.buckets_per_resource;
        let demand = |planned: &PlannedResource| {
            let bands = match &planned.rehearsal {
                Some(rehearsal) if rehearsal.is_leased() => rehearsal.bands(most),
                _ => [Band::NOTHING].into_iter().collect(),
            };
            (planned.id.clone(), bands)
        };
        self.resources.iter().map(demand).collect()
    }

    /// Divides what the node above would grant, and says what that makes of those below: the forecast of this node, and for each
    /// node below what it would be granted. `watched` are patterns of clients that are asked about.
    pub fn divide(
        &mut self,
        supplies: &[SupplyForecast],
        watched: &[Glob],
    ) -> (NodeForecast, BTreeMap<String, Vec<SupplyForecast>>) {
        let watch = |glob: &Glob| WatchedClients { glob: glob.to_string(), ..WatchedClients::default() };
        let mut forecast = NodeForecast {
            node: self.config.name.clone(),
            epoch: self.config.epoch.0,
            config_version: self.version,
            has_change: self.templates.is_some(),
            silent: self.silent.clone(),
            unplanned: self.unplanned,
            watched: watched.iter().map(watch).collect(),
            ..NodeForecast::default()
        };
        let mut passed: BTreeMap<String, Vec<SupplyForecast>> = BTreeMap::new();
        for planned in &mut self.resources {
            let supply = supplies.iter().find(|supply| supply.resource == planned.id);
            planned.supply(supply);
            let view = ResourceView { now: self.now, config: &self.config, planned, watched };
            forecast.resources.push(view.forecast(&mut forecast.watched));
            forecast.refused.extend(view.refused());
            forecast.notes.extend(view.notes(supply));
            for (node, supply) in view.passed() {
                passed.entry(node).or_default().push(supply);
            }
        }
        if let Some(templates) = &self.templates {
            forecast.notes.extend(notes::of_templates(&self.config, templates));
        }
        forecast.notes.sort();
        forecast.notes.dedup();
        (forecast, passed)
    }
}
