//! The plan of a whole tree, put together of what its nodes say.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::domains::DomainsForecast;
use super::forecast::{NodeForecast, PlanNote, RefusedHolders, ResourceForecast, WatchedClients};
use crate::revision::{Digest, RevisionDocument};

/// The plan of a tree.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The edition of this form.
    pub schema: u32,
    /// The number of the revision in force at the node that was asked; 0 if nobody counts them.
    pub base: u64,
    /// The digest of what is planned.
    pub digest: String,
    /// When it was made, by the clock of the server.
    pub at: String,
    /// The time that it took, in seconds.
    pub took_seconds: f64,
    /// The nodes.
    pub nodes: PlannedNodes,
    /// The resources that change.
    pub resources: Vec<ResourceForecast>,
    /// Resources that change as well and were not looked at, as they are too many.
    pub unplanned: usize,
    /// Holders that would be refused.
    pub refused: Vec<RefusedHolders>,
    /// Things that somebody should see to.
    pub notes: Vec<PlanNote>,
    /// The clients that were asked about.
    pub watched: Vec<WatchedClients>,
    /// The sum of what is lost, and of all shares that change hands or stay, in units of whatever is counted.
    pub moved: [f64; 2],
}

/// The nodes of a plan.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct PlannedNodes {
    /// Those that have said what they would do.
    pub asked: BTreeSet<String>,
    /// The ways to those that have not, and why.
    pub silent: Vec<String>,
}

/// The time that a change takes from a node to those below it and back, beside what each needs, in seconds.
const LEVEL_SECONDS: f64 = 4.0;

// === impl Plan ===

impl Plan {
    /// The digest of documents, by which a plan is known to be of them.
    #[must_use]
    pub fn digest_of<'a>(documents: impl IntoIterator<Item = &'a RevisionDocument>) -> Digest {
        let line = |document: &RevisionDocument| format!("{} {}\n", document.nodes, document.blob);
        Digest::of(&documents.into_iter().map(line).collect::<String>())
    }

    /// The plan of what nodes say, the one that was asked first, in as many levels.
    #[must_use]
    pub fn of(forecasts: Vec<NodeForecast>, levels: usize) -> Plan {
        let mut plan = Plan { schema: 1, ..Plan::default() };
        let mut resources: BTreeMap<String, ResourceForecast> = BTreeMap::new();
        for forecast in forecasts {
            plan.nodes.asked.insert(forecast.node);
            plan.unplanned += forecast.unplanned;
            plan.nodes.silent.extend(forecast.silent);
            plan.refused.extend(forecast.refused);
            plan.notes.extend(forecast.notes);
            for (place, watched) in forecast.watched.into_iter().enumerate() {
                match plan.watched.get_mut(place) {
                    Some(known) => known.join(&watched),
                    None => plan.watched.push(watched),
                }
            }
            for resource in forecast.resources {
                match resources.get_mut(&resource.resource) {
                    Some(known) => known.join(resource),
                    None => _ = resources.insert(resource.resource.clone(), resource),
                }
            }
        }
        let way = LEVEL_SECONDS * levels as f64;
        plan.resources = resources.into_values().collect();
        plan.note_domains();
        for resource in plan.resources.iter_mut().filter(|resource| resource.until.latest_s > 0.0) {
            resource.until.latest_s += way;
        }
        plan.moved = [0, 1].map(|place| {
            let sum = |resource: &ResourceForecast| [resource.losers.sum, resource.shares[0]][place];
            plan.resources.iter().map(sum).sum()
        });
        plan
    }

    fn note_domains(&mut self) {
        let note = |of: &ResourceForecast| {
            let domains = of.domains.as_ref()?;
            let (resource, node) = (of.resource.clone(), domains.node.clone());
            Some(PlanNote { resource, node, note: domains.note()? })
        };
        self.notes.extend(self.resources.iter().filter_map(note));
    }

    /// The time until all of it is in force, in seconds.
    #[must_use]
    pub fn latest_s(&self) -> f64 {
        self.resources.iter().map(|resource| resource.until.latest_s).fold(0.0, f64::max)
    }

    /// The number of clients that lose some of something.
    #[must_use]
    pub fn losers(&self) -> usize {
        self.resources.iter().map(|resource| resource.losers.count).sum()
    }

    /// The number of hot domains that would be refused, and are not.
    #[must_use]
    pub fn refused_domains(&self) -> usize {
        let domains = self.resources.iter().filter_map(|resource| resource.domains.as_ref());
        domains.map(|domains| domains.refused).sum()
    }

    /// The number of holders that would be refused.
    #[must_use]
    pub fn refusals(&self) -> usize {
        self.refused.iter().map(|refused| refused.count).sum()
    }
}

// === impl ResourceForecast ===

impl ResourceForecast {
    /// The forecast of a node below for the same resource comes to it.
    fn join(&mut self, below: ResourceForecast) {
        self.losers.join(below.losers);
        self.gainers.join(below.gainers);
        self.keep += below.keep;
        self.not_named += below.not_named;
        for place in [0, 1] {
            self.shares[place] += below.shares[place];
        }
        self.until.join(below.until);
        // Domains below are told of above as well.
        let counts = |of: &Option<DomainsForecast>| of.as_ref().map(|domains| (domains.refused, domains.hot));
        if counts(&below.domains) > counts(&self.domains) {
            self.domains = below.domains;
        }
    }
}

// === impl WatchedClients ===

impl WatchedClients {
    fn join(&mut self, other: &WatchedClients) {
        self.count += other.count;
        self.loss += other.loss;
        for place in [0, 1] {
            self.shares[place] += other.shares[place];
        }
    }
}
