//! The status of a node, for operators.

use lessor_proto::message::Unenforced;
use lessor_proto::{Amount, Epoch, ResourceId, Time};

use super::{NamesStatus, Node, StatusScan};
use crate::overrides::OverrideStatus;
use crate::repository::Glob;
use crate::resource::{ClaimTally, Pressure, Resource, ResourceStatus};

/// The choice of what to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusQuery {
    /// One resource only.
    pub resource: Option<String>,
    /// Those only whose names match this.
    pub matching: Option<Glob>,
    /// The number of resources to show, in the order of their names.
    pub resources: usize,
    /// The ones that are shown where there are more.
    pub order: RowOrder,
    /// The number of holders to show of each; not more than ten thousand in all.
    pub holders: usize,
    /// The number of hot domains to show of each.
    pub domains: usize,
}

/// The order in which resources are chosen where not all are shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RowOrder {
    /// The first by name, and then leases of domains.
    #[default]
    ByName,
    /// Those of which more is out than may be, and then those with the most holders; leases of domains last.
    Busiest,
}

/// A node as it stands.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct NodeStatus {
    /// Its name.
    pub node: String,
    /// The number of its epoch.
    #[cfg_attr(feature = "shell", serde(serialize_with = "epoch_as_number"))]
    pub epoch: Epoch,
    /// The time for which it has led, in seconds.
    pub leading_seconds: f64,
    /// Which edition of the configuration is in force, or would be if this task led; 0 if nobody counts them.
    pub config_version: u64,
    /// The later one that was in force before, if there is such a one: then nothing is granted.
    pub later_config: Option<u64>,
    /// Where it stands in the tree, and what is wrong with names.
    pub names: NamesStatus,
    /// The number of resources that it keeps.
    pub resources_in_all: usize,
    /// The tally of what has gone through its doors.
    pub tally: Tally,
    /// The overrides that are in force.
    pub overrides: Vec<OverrideStatus>,
    /// Those that were asked for.
    pub resources: Vec<ResourceRow>,
    /// All that matched and are not among them, where the busiest were chosen.
    pub others: Option<OtherResources>,
}

/// Resources that are not shown one by one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct OtherResources {
    /// The number of them.
    pub resources: usize,
    /// Holders, counted once for each that they hold or want.
    pub holders: usize,
    /// The number of those of which more is out than a lowered capacity allows.
    pub in_debt: usize,
}

/// A resource as it stands at this node: what binds the node itself beside what its holders see.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct ResourceRow {
    /// The resource, and who has what of it. The capacity is what this node may hand out: of one below another,
    /// what its own lease allows.
    #[cfg_attr(feature = "shell", serde(flatten))]
    pub resource: ResourceStatus,
    /// The time for which the lease from the node above lasts if nothing more is heard of it, in seconds. Absent
    /// where the capacity is configured.
    pub lease_ends_in_seconds: Option<f64>,
    /// All that may be out, in units a second or units: what holders are charged for, and the ghost.
    pub outstanding: f64,
    /// The part of it that may be out under earlier leaders to holders that are not known.
    pub ghost: f64,
    /// For how much longer that counts, in seconds.
    pub ghost_ends_in_seconds: f64,
    /// The mark that is written down for successors: no more is out. Absent where nothing is written.
    pub mark: Option<f64>,
    /// The number of grants that asked for something back.
    pub recalls: u64,
    /// Whether nobody gets more of it, by an override.
    pub frozen: bool,
    /// The ids of the overrides that are about it, or drain holders of it.
    pub overrides: Vec<String>,
    /// The amount that was seized and may be used twice, as the lives that had it have not certainly stopped.
    pub at_risk: f64,
    /// The pressure on it: how far what there is of it suffices.
    #[cfg_attr(feature = "shell", serde(flatten))]
    pub pressure: Pressure,
}

/// The tally of what has gone through the doors since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct Tally {
    /// Requests for capacity.
    pub asks: u64,
    /// Grants in the answers to them.
    pub granted: u64,
    /// Those refused.
    pub refused: u64,
    /// Those meant for another epoch.
    pub misdirected: u64,
    /// Releases.
    pub releases: u64,
    /// Streams opened.
    pub streams: u64,
    /// Messages that came up streams.
    pub received: u64,
    /// Messages sent down streams.
    pub sent: u64,
    /// Repositories put in force since the start.
    pub reloads: u64,
    /// Changes of the record that were asked for.
    pub mark_writes: u64,
    /// Records that were not believed: written at another etcd, or shown by holders not to be the last.
    pub records_distrusted: u64,
    /// The outcomes of claims.
    pub claims: ClaimTally,
}

#[cfg(feature = "shell")]
pub(super) fn epoch_as_number<S: serde::Serializer>(epoch: &Epoch, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(epoch.0)
}

// === impl OtherResources ===

impl OtherResources {
    /// Counts these as well.
    pub(super) fn add(&mut self, more: OtherResources) {
        self.resources += more.resources;
        self.holders += more.holders;
        self.in_debt += more.in_debt;
    }
}

// === impl StatusQuery ===

impl StatusQuery {
    /// Whether a resource of that name may be shown.
    pub(super) fn takes(&self, id: &ResourceId) -> bool {
        self.matching.as_ref().is_none_or(|glob| glob.matches(id.as_str()))
    }

    /// The figures of the node and of its thousand busiest resources, and no holders.
    pub const FIGURES: StatusQuery = StatusQuery {
        resource: None,
        matching: None,
        resources: 1_000,
        order: RowOrder::Busiest,
        holders: 0,
        domains: 0,
    };
}

impl Default for StatusQuery {
    fn default() -> StatusQuery {
        StatusQuery {
            resource: None,
            matching: None,
            resources: 100,
            order: RowOrder::ByName,
            holders: 100,
            domains: 100,
        }
    }
}

// === impl Node ===

impl Node {
    /// The status: who has what.
    #[must_use]
    pub fn status(&self, now: Time, query: &StatusQuery) -> NodeStatus {
        let mut scan = StatusScan::new(query.clone());
        let mut status = loop {
            if let Some(status) = scan.step(now, self) {
                break status;
            }
        };
        self.sharing.describe(now, &mut status, query.domains);
        status
    }

    /// The units of a resource that were asked for while everything was let pass, as all below have said them.
    #[must_use]
    pub fn unenforced(&self, id: &ResourceId) -> Unenforced {
        self.resources.get(id).map(Resource::unenforced).unwrap_or_default()
    }

    /// The status without any resource.
    pub(super) fn figures(&self, now: Time) -> NodeStatus {
        NodeStatus {
            node: self.config.name.clone(),
            epoch: self.config.epoch,
            leading_seconds: now.since(self.tenure.since()).as_secs_f64(),
            config_version: self.repository.version(),
            later_config: self.later_config(),
            names: self.names.status(),
            resources_in_all: self.resources.len(),
            tally: self.counters.tally,
            overrides: self.orders.overrides.status(now),
            resources: Vec::new(),
            others: None,
        }
    }

    /// The loop that keeps this node from the one above, if it stands above itself.
    #[must_use]
    pub fn name_loop(&self) -> Option<&str> {
        self.names.name_loop()
    }

    /// A resource as it stands, with none of its holders.
    pub(super) fn row(&self, now: Time, resource: &Resource) -> ResourceRow {
        let ledger = resource.ledger();
        let leased = self.parent_session().filter(|_| resource.is_leased());
        ResourceRow {
            lease_ends_in_seconds: leased
                .map(|session| session.allowance(now, resource.id()).until.since(now).as_secs_f64()),
            outstanding: units(ledger.total()),
            ghost: ledger.ghost().as_f64(),
            ghost_ends_in_seconds: match ledger.ghost() {
                Amount::ZERO => 0.0,
                _ => ledger.ghost_end().since(now).as_secs_f64(),
            },
            mark: ledger.ceiling().map(|ceiling| ceiling.total.as_f64()),
            recalls: ledger.recalls(),
            frozen: self.orders.overrides.freezes(resource.id()),
            overrides: self.orders.overrides.ids_about(resource.id()),
            at_risk: self.orders.seizures.at_risk(now, resource.id()).as_f64(),
            pressure: resource.pressure(),
            resource: resource.status(now),
        }
    }
}

fn units(micros: u128) -> f64 {
    micros as f64 / Amount::MICROS_PER_UNIT as f64
}

// === impl NodeStatus ===

impl NodeStatus {
    /// The status as it is known to a task of a node that does not lead it, and would with the configuration of that version.
    #[must_use]
    pub fn of_nobody(node: &str, epoch: Epoch, config_version: u64) -> NodeStatus {
        NodeStatus {
            node: node.to_owned(),
            epoch,
            leading_seconds: 0.0,
            config_version,
            later_config: None,
            names: NamesStatus { path: vec![node.to_owned()], ..NamesStatus::default() },
            resources_in_all: 0,
            tally: Tally::default(),
            overrides: Vec::new(),
            resources: Vec::new(),
            others: None,
        }
    }
}
