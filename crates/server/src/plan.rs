//! Plans: what other templates would change, from the demands of one moment, with nothing granted and nothing changed.
//!
//! A plan goes through a tree twice. On the way up each node says what would be wanted of the node above it under the change,
//! as its caps and its templates decide; on the way down each is told what it would be granted, and says what that makes of
//! its holders: who loses, who gains, who is refused, how long it takes and because of what. A node scans itself for that in
//! slices ([`PlanScan`](crate::node::PlanScan)), and then works on copies of the demands, which the functions that decide about
//! real ones divide.
//!
//! A plan is a forecast, not a lock: demand goes on changing, and nothing is kept free for what it says.

mod domains;
mod forecast;
mod node;
mod notes;
mod outcome;
mod planned;
mod view;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lessor_algorithms::curve::CurveBucket;
use lessor_proto::ResourceId;
use lessor_proto::message::{Band, Unenforced};

pub use self::domains::{DomainsForecast, RefusedDomain};
pub use self::forecast::{
    BandChange, Mover, Movers, NodeForecast, PlanNote, RefusedHolders, ResourceForecast, UntilForecast,
    WatchedClients,
};
pub use self::node::{NodePlan, SupplyForecast};
pub use self::whole::{Plan, PlannedNodes};
use crate::repository::{Glob, Repository, Template};
use crate::resource::{BandLevel, Rehearsal, RehearsedHolder};

/// A change of the templates of a node.
#[derive(Clone, Default, Debug)]
pub struct PlanChange {
    /// The templates that would be in force; absent: those that are.
    pub repository: Option<Repository>,
    /// Resources about which it is in any case, as something changes for them above or below.
    pub affected: BTreeSet<ResourceId>,
    /// Those only whose names match this.
    pub matching: Option<Glob>,
}

/// A resource that a change is about, as it is at a node.
#[derive(Clone, Debug)]
pub struct PlannedResource {
    pub(crate) id: ResourceId,
    /// The template that covers it; absent: none does.
    pub(crate) before: Option<Arc<Template>>,
    /// The one that would.
    pub(crate) after: Option<Arc<Template>>,
    pub(crate) holders: Vec<RehearsedHolder>,
    /// Those that are too many to be looked at one by one.
    pub(crate) rest: RestDemands,
    pub(crate) figures: PlannedFigures,
    pub(crate) levels: Vec<BandLevel>,
    /// The step that its level is cut to, where that is done.
    pub(crate) step: f64,
    /// Whether an override lets nobody have more of it.
    pub(crate) is_frozen: bool,
    /// Its hot domains, where their policies would be others and clients share them.
    pub(crate) domains: Option<DomainsForecast>,
    /// The resource as it would be; absent before that is known, and where no template would cover it.
    pub(crate) rehearsal: Option<Rehearsal>,
}

/// The figures of a resource as it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedFigures {
    /// The amount that may be out.
    pub(crate) capacity: f64,
    /// All that may be.
    pub(crate) out: f64,
    pub(crate) wants: f64,
    /// For how much longer something counts that is out to nobody known, in seconds.
    pub(crate) ghost_ends: Option<f64>,
    /// The units that were asked for while everything was let pass.
    pub(crate) unenforced: Unenforced,
    /// Those that a second limit was asked for.
    pub(crate) beside: Unenforced,
}

/// The demands of holders that are not looked at one by one: those of one priority whose wants are alike are one.
#[derive(Clone, Default, Debug)]
pub(crate) struct RestDemands {
    /// The number of holders.
    pub(crate) holders: usize,
    /// The sum of their shares as things stand.
    pub(crate) share: f64,
    pub(crate) buckets: BTreeMap<(i64, Option<i32>), Band>,
}

// === impl PlanChange ===

impl PlanChange {
    /// Whether it is about a resource that follows one template and would follow the other.
    pub(crate) fn is_about(
        &self,
        id: &ResourceId,
        before: Option<&Arc<Template>>,
        after: Option<&Arc<Template>>,
    ) -> bool {
        let is_wanted = self.matching.as_ref().is_none_or(|glob| glob.matches(id.as_str()));
        is_wanted && (before != after || self.affected.contains(id))
    }
}

// === impl RestDemands ===

impl RestDemands {
    /// One more holder.
    pub(crate) fn add(&mut self, holder: &RehearsedHolder) {
        self.holders += 1;
        self.share += holder.share;
        for band in &holder.said {
            let index = CurveBucket::index_of(band.wants, band.subclients.into());
            let alike = self.buckets.entry((band.priority, index)).or_insert(Band {
                priority: band.priority,
                subclients: 0,
                wants: 0.0,
            });
            alike.subclients = alike.subclients.saturating_add(band.subclients);
            alike.wants = (alike.wants + band.wants).min(f64::MAX);
        }
    }
}
