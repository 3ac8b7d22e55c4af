//! The report of one resource, to and from the wire.

use std::time::Duration;

use smallvec::smallvec;

use super::{Band, Has, Lasts, Report, bands};
use crate::message::field::{self, Place};
use crate::message::{Limits, Order, Refusal, RefusedReport, Unenforced};
use crate::{Amount, Epoch, ResourceId, wire};

/// Checks what a client says of the resources in the field `list`.
pub(crate) fn from_client(
    list: &str,
    resources: Vec<wire::ResourceRequest>,
    limits: &Limits,
) -> Result<Vec<Report>, Refusal> {
    read_client(list, resources, limits)?.whole()
}

/// Checks what a node says of the resources in the field `list`.
pub(crate) fn from_node(
    list: &str,
    resources: Vec<wire::ServerCapacityResourceRequest>,
    limits: &Limits,
) -> Result<Vec<Report>, Refusal> {
    read_node(list, resources, limits)?.whole()
}

/// The reports of a request that are good, and those that are not.
#[derive(Debug, Default)]
pub(super) struct CheckedReports {
    pub(super) reports: Vec<Report>,
    pub(super) refused: Vec<RefusedReport>,
    /// The fault of the first of those.
    pub(super) first: Option<Refusal>,
}

/// Takes what is good of what a client says of the resources in the field `list`.
pub(super) fn read_client(
    list: &str,
    resources: Vec<wire::ResourceRequest>,
    limits: &Limits,
) -> Result<CheckedReports, Refusal> {
    read(list, resources, limits, client_report)
}

/// Takes what is good of what a node says of the resources in the field `list`.
pub(super) fn read_node(
    list: &str,
    resources: Vec<wire::ServerCapacityResourceRequest>,
    limits: &Limits,
) -> Result<CheckedReports, Refusal> {
    read(list, resources, limits, node_report)
}

fn read<R>(
    list: &str,
    mut resources: Vec<R>,
    limits: &Limits,
    report: fn(Place<'_>, &mut R, &Limits) -> Result<Report, Refusal>,
) -> Result<CheckedReports, Refusal> {
    field::check_count(resources.len(), limits)?;
    let mut checked =
        CheckedReports { reports: Vec::with_capacity(resources.len()), ..CheckedReports::default() };
    for (index, resource) in resources.iter_mut().enumerate() {
        match report(Place { list, index }, resource, limits) {
            Ok(report) => checked.reports.push(report),
            Err(why) => {
                // Its name has been taken out of it.
                checked.refused.push(RefusedReport::new(index, "", &why));
                checked.first.get_or_insert(why);
            }
        }
    }
    field::check_distinct(list, &checked.reports)?;
    Ok(checked)
}

// === impl CheckedReports ===

impl CheckedReports {
    fn whole(self) -> Result<Vec<Report>, Refusal> {
        self.first.map_or(Ok(self.reports), Err)
    }
}

/// Takes what it keeps out of `resource`, which is too large to be handed on by value.
fn client_report(
    place: Place<'_>,
    resource: &mut wire::ResourceRequest,
    limits: &Limits,
) -> Result<Report, Refusal> {
    let id = field::resource(|| place.path("resource_id"), resource.resource_id.take(), limits)?;
    let priority = bands::priority(|| place.path("priority"), resource.priority)?;
    let wants = field::amount(|| place.path("wants"), resource.wants)?;
    let has = resource.has.as_mut().map(|lease| has(place, lease)).transpose()?;
    let held = field::held(place, resource.held)?;
    let mut bands = smallvec![Band { priority, subclients: 1, wants }];
    if let Some(reserve) = resource.reserve {
        let wants = field::amount(|| place.path("reserve"), Some(reserve))?;
        bands.push(Band { priority: Band::RESERVE, subclients: 1, wants });
    }
    let peak = field::peak(place, resource.peak)?;
    Ok(Report {
        resource: id,
        bands,
        has,
        held,
        domains: resource.domains_version,
        integer: resource.integer,
        peak,
        unenforced: resource.unenforced.map(Unenforced::from_wire),
    })
}

fn node_report(
    place: Place<'_>,
    resource: &mut wire::ServerCapacityResourceRequest,
    limits: &Limits,
) -> Result<Report, Refusal> {
    let id = field::resource(|| place.path("resource_id"), resource.resource_id.take(), limits)?;
    let bands = bands::from_wire(place, &resource.wants, limits)?;
    let has = resource.has.as_mut().map(|lease| has(place, lease)).transpose()?;
    let held = field::held(place, resource.held)?;
    let peak = field::peak(place, resource.peak)?;
    Ok(Report {
        resource: id,
        bands,
        has,
        held,
        domains: None,
        integer: resource.integer,
        peak,
        unenforced: resource.unenforced.map(Unenforced::from_wire),
    })
}

fn has(place: Place<'_>, lease: &mut wire::Lease) -> Result<Has, Refusal> {
    let capacity = field::amount(|| place.path("has.capacity"), lease.capacity)?;
    let Some(expiry) = lease.expiry_time else {
        return Err(Refusal::missing(place.path("has.expiry_time"), "the expiry_time of the lease"));
    };
    if lease.refresh_interval.is_none() {
        return Err(Refusal::missing(
            place.path("has.refresh_interval"),
            "the refresh_interval of the lease",
        ));
    }
    let order = lease.epoch.zip(lease.seq).map(|(epoch, seq)| Order { epoch: Epoch(epoch), seq });
    let lasts = lease.duration_ms.map(Duration::from_millis).map(|length| Lasts {
        length,
        remaining: lease.remaining_ms.map_or(length, Duration::from_millis),
        counts: lease.counts_ms.map_or(Duration::ZERO, Duration::from_millis),
    });
    Ok(Has {
        capacity: Amount::from_f64(capacity),
        order,
        token: lease.token.take().unwrap_or_default(),
        lasts,
        expiry: u64::try_from(expiry).unwrap_or(0),
    })
}

// === impl Report ===

impl Report {
    /// One that says what is wanted of a resource and nothing else, as that of a holder that has just begun.
    pub fn new(resource: ResourceId, bands: impl IntoIterator<Item = Band>) -> Report {
        let bands = bands.into_iter().collect();
        Report {
            resource,
            bands,
            has: None,
            held: None,
            domains: None,
            integer: None,
            peak: None,
            unenforced: None,
        }
    }

    /// As a client says it.
    pub(crate) fn to_client_wire(&self) -> wire::ResourceRequest {
        let band = self.bands.first().copied().unwrap_or(Band::NOTHING);
        wire::ResourceRequest {
            resource_id: Some(self.resource.to_string()),
            priority: Some(band.priority),
            has: self.has.as_ref().map(Has::to_wire),
            wants: Some(band.wants),
            held: self.held.map(Amount::as_f64),
            integer: self.integer,
            domains_version: self.domains,
            peak: self.peak,
            reserve: self.reserve(),
            unenforced: self.unenforced.map(Unenforced::to_wire),
        }
    }

    /// The amount that its holder would keep at hand, if it is a client that keeps each unit for the window of its use.
    #[must_use]
    pub fn reserve(&self) -> Option<f64> {
        self.bands.get(1).filter(|band| band.priority == Band::RESERVE).map(|band| band.wants)
    }

    /// As a node says it.
    pub(crate) fn to_node_wire(&self) -> wire::ServerCapacityResourceRequest {
        wire::ServerCapacityResourceRequest {
            resource_id: Some(self.resource.to_string()),
            has: self.has.as_ref().map(Has::to_wire),
            wants: bands::to_wire(&self.bands),
            held: self.held.map(Amount::as_f64),
            integer: self.integer,
            peak: self.peak,
            unenforced: self.unenforced.map(Unenforced::to_wire),
        }
    }
}

// === impl Has ===

impl Has {
    fn to_wire(&self) -> wire::Lease {
        wire::Lease {
            // Doorman's server reads neither of the first two.
            expiry_time: Some(i64::try_from(self.expiry).unwrap_or(i64::MAX)),
            refresh_interval: Some(1),
            capacity: Some(self.capacity.as_f64()),
            epoch: self.order.map(|order| order.epoch.0),
            seq: self.order.map(|order| order.seq),
            token: (!self.token.is_empty()).then(|| self.token.clone()),
            duration_ms: self.lasts.map(|lasts| millis(lasts.length)),
            remaining_ms: self.lasts.map(|lasts| millis(lasts.remaining)),
            counts_ms: self.lasts.map(|lasts| millis(lasts.counts)),
            ..wire::Lease::default()
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
