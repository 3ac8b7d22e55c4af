//! What a holder says to a grantor: reports, and releases.

use std::collections::HashSet;

use smallvec::{SmallVec, smallvec};

use super::refusal::{Limits, Refusal, name_wanted};
use super::{Leader, Order};
use crate::name::{ClientId, ResourceId};
use crate::{Amount, wire};

const WANTED_AMOUNT: &str = "a finite number of at least 0";

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HolderKind {
    /// A client, for itself.
    Client,
    /// The leader of a node, for everything below it.
    Node,
}

/// One request of a holder, for many resources.
#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    /// Whether a client or a node asks.
    pub kind: HolderKind,
    /// Who asks.
    pub holder: ClientId,
    /// Which life of it; absent from Doorman's clients.
    pub incarnation: Option<u64>,
    /// Grows with every request of one incarnation.
    pub report_id: Option<u64>,
    /// The reign it is meant for.
    pub target_epoch: Option<u64>,
    /// One report a resource, each resource at most once.
    pub reports: Vec<Report>,
}

/// What a holder says about one resource.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The resource.
    pub resource: ResourceId,
    /// What is wanted: one band from a client, any number from a node.
    pub bands: Bands,
    /// The lease that the holder has.
    pub has: Option<Has>,
    /// The most it uses from here on under grants up to the one in `has`; absent: the capacity in `has`.
    pub held: Option<Amount>,
}

/// The demands of one report.
pub type Bands = SmallVec<[Band; 1]>;

/// The demand of one priority.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Band {
    /// Greater numbers are served first.
    pub priority: i64,
    /// How many clients it stands for; at least 1.
    pub subclients: u32,
    /// Their wants together, in units a second or units: finite and not negative.
    pub wants: f64,
}

/// The lease that a holder has, as it echoes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Has {
    /// How much.
    pub capacity: Amount,
    /// Which grant it is; absent when a Doorman server granted it or the client forgets unknown fields.
    pub order: Option<Order>,
    /// The token that came with it; empty if none did.
    pub token: Vec<u8>,
}

/// A holder's promise that it uses nothing of these resources any more.
#[derive(Clone, PartialEq, Debug)]
pub struct Release {
    /// Who promises.
    pub holder: ClientId,
    /// Which life of it.
    pub incarnation: Option<u64>,
    /// What it gives back.
    pub resources: Vec<ResourceId>,
}

// === impl Ask ===

impl Ask {
    /// Checks a client's request.
    ///
    /// # Errors
    /// With the first fault found.
    pub fn from_client(request: wire::GetCapacityRequest, limits: &Limits) -> Result<Ask, Refusal> {
        let holder = holder("client_id", request.client_id, limits)?;
        check_count(request.resource.len(), limits)?;
        let mut reports = Vec::with_capacity(request.resource.len());
        for (index, resource) in request.resource.into_iter().enumerate() {
            reports.push(client_report(index, resource, limits)?);
        }
        check_distinct(&reports)?;
        Ok(Ask {
            kind: HolderKind::Client,
            holder,
            incarnation: request.incarnation,
            report_id: request.report_id,
            target_epoch: request.target_epoch,
            reports,
        })
    }

    /// Checks the request of a server below.
    ///
    /// # Errors
    /// With the first fault found.
    pub fn from_node(request: wire::GetServerCapacityRequest, limits: &Limits) -> Result<Ask, Refusal> {
        let holder = holder("server_id", request.server_id, limits)?;
        check_count(request.resource.len(), limits)?;
        let mut reports = Vec::with_capacity(request.resource.len());
        for (index, resource) in request.resource.into_iter().enumerate() {
            reports.push(node_report(index, resource, limits)?);
        }
        check_distinct(&reports)?;
        Ok(Ask {
            kind: HolderKind::Node,
            holder,
            incarnation: request.holder_epoch,
            report_id: request.report_id,
            target_epoch: request.target_epoch,
            reports,
        })
    }

    /// A client's request as it goes on the wire.
    #[must_use]
    pub fn to_wire(&self) -> wire::GetCapacityRequest {
        wire::GetCapacityRequest {
            client_id: Some(self.holder.to_string()),
            resource: self.reports.iter().map(Report::to_wire).collect(),
            incarnation: self.incarnation,
            report_id: self.report_id,
            target_epoch: self.target_epoch,
        }
    }
}

fn client_report(index: usize, resource: wire::ResourceRequest, limits: &Limits) -> Result<Report, Refusal> {
    let id = resource_id(index, resource.resource_id, limits)?;
    let priority = resource.priority.ok_or_else(|| {
        Refusal::missing(path(index, "priority"), "a whole number, greater is served first")
    })?;
    let wants = amount(|| path(index, "wants"), resource.wants)?;
    let has = resource.has.map(|lease| has(index, lease)).transpose()?;
    let held = held(index, resource.held)?;
    Ok(Report { resource: id, bands: smallvec![Band { priority, subclients: 1, wants }], has, held })
}

fn node_report(
    index: usize,
    resource: wire::ServerCapacityResourceRequest,
    limits: &Limits,
) -> Result<Report, Refusal> {
    let id = resource_id(index, resource.resource_id, limits)?;
    if resource.wants.is_empty() {
        return Err(Refusal::missing(path(index, "wants"), "at least one priority band"));
    }
    if resource.wants.len() > limits.bands_per_resource {
        return Err(Refusal::Exhausted {
            what: path(index, "wants"),
            count: resource.wants.len(),
            limit: limits.bands_per_resource,
        });
    }
    let mut bands = Bands::with_capacity(resource.wants.len());
    for (number, aggregate) in resource.wants.into_iter().enumerate() {
        let band = band(|field| path(index, &format!("wants[{number}].{field}")), &aggregate)?;
        if bands.iter().any(|seen| seen.priority == band.priority) {
            return Err(Refusal::invalid(
                path(index, &format!("wants[{number}].priority")),
                format!("is {} for the second time", band.priority),
                "each priority once",
            ));
        }
        bands.push(band);
    }
    let has = resource.has.map(|lease| has(index, lease)).transpose()?;
    let held = held(index, resource.held)?;
    Ok(Report { resource: id, bands, has, held })
}

fn band(path: impl Fn(&str) -> String, aggregate: &wire::PriorityBandAggregate) -> Result<Band, Refusal> {
    let priority = aggregate
        .priority
        .ok_or_else(|| Refusal::missing(path("priority"), "a whole number, greater is served first"))?;
    let wanted = || format!("a whole number from 1 to {}", u32::MAX);
    let count = aggregate.num_clients.ok_or_else(|| Refusal::missing(path("num_clients"), wanted()))?;
    let subclients = u32::try_from(count).ok().filter(|&n| n > 0);
    let subclients =
        subclients.ok_or_else(|| Refusal::invalid(path("num_clients"), format!("is {count}"), wanted()))?;
    let wants = amount(|| path("wants"), aggregate.wants)?;
    Ok(Band { priority, subclients, wants })
}

fn holder(field: &str, id: Option<String>, limits: &Limits) -> Result<ClientId, Refusal> {
    let id = id.ok_or_else(|| Refusal::missing(field, name_wanted(limits)))?;
    ClientId::new(id.as_str(), limits.name_bytes).map_err(|fault| Refusal::name(field, &id, fault, limits))
}

fn resource_id(index: usize, id: Option<String>, limits: &Limits) -> Result<ResourceId, Refusal> {
    let id = id.ok_or_else(|| Refusal::missing(path(index, "resource_id"), name_wanted(limits)))?;
    ResourceId::new(id.as_str(), limits.name_bytes)
        .map_err(|fault| Refusal::name(path(index, "resource_id"), &id, fault, limits))
}

fn amount(path: impl Fn() -> String, value: Option<f64>) -> Result<f64, Refusal> {
    let value = value.ok_or_else(|| Refusal::missing(path(), WANTED_AMOUNT))?;
    if !value.is_finite() || value < 0.0 {
        return Err(Refusal::invalid(path(), format!("is {value}"), WANTED_AMOUNT));
    }
    // Makes 0 of -0.
    Ok(value + 0.0)
}

fn held(index: usize, held: Option<f64>) -> Result<Option<Amount>, Refusal> {
    held.map(|held| amount(|| path(index, "held"), Some(held)).map(Amount::from_f64)).transpose()
}

fn has(index: usize, lease: wire::Lease) -> Result<Has, Refusal> {
    let capacity = amount(|| path(index, "has.capacity"), lease.capacity)?;
    if lease.expiry_time.is_none() {
        return Err(Refusal::missing(path(index, "has.expiry_time"), "the expiry_time of the lease"));
    }
    if lease.refresh_interval.is_none() {
        return Err(Refusal::missing(
            path(index, "has.refresh_interval"),
            "the refresh_interval of the lease",
        ));
    }
    let order = lease.epoch.zip(lease.seq).map(|(epoch, seq)| Order { epoch, seq });
    Ok(Has { capacity: Amount::from_f64(capacity), order, token: lease.token.unwrap_or_default() })
}

fn path(index: usize, field: &str) -> String {
    format!("resource[{index}].{field}")
}

fn check_count(count: usize, limits: &Limits) -> Result<(), Refusal> {
    if count > limits.resources_per_request {
        return Err(Refusal::Exhausted {
            what: "resources in one request".to_owned(),
            count,
            limit: limits.resources_per_request,
        });
    }
    Ok(())
}

fn check_distinct(reports: &[Report]) -> Result<(), Refusal> {
    if reports.len() < 2 {
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(reports.len());
    match reports.iter().enumerate().find(|(_, report)| !seen.insert(&report.resource)) {
        None => Ok(()),
        Some((index, report)) => Err(Refusal::invalid(
            path(index, "resource_id"),
            format!("is {:?} for the second time", report.resource),
            "each resource once",
        )),
    }
}

// === impl Report ===

impl Report {
    fn to_wire(&self) -> wire::ResourceRequest {
        let band = self.bands.first().copied().unwrap_or(Band { priority: 0, subclients: 1, wants: 0.0 });
        wire::ResourceRequest {
            resource_id: Some(self.resource.to_string()),
            priority: Some(band.priority),
            has: self.has.as_ref().map(Has::to_wire),
            wants: Some(band.wants),
            held: self.held.map(Amount::as_f64),
            integer: None,
            in_use: None,
        }
    }
}

// === impl Has ===

impl Has {
    fn to_wire(&self) -> wire::Lease {
        wire::Lease {
            // Doorman's server reads neither of the first two.
            expiry_time: Some(0),
            refresh_interval: Some(1),
            capacity: Some(self.capacity.as_f64()),
            epoch: self.order.map(|order| order.epoch),
            seq: self.order.map(|order| order.seq),
            token: (!self.token.is_empty()).then(|| self.token.clone()),
            ..wire::Lease::default()
        }
    }
}

// === impl Release ===

impl Release {
    /// Checks a release. Empty resource ids are passed over: Doorman's `Close()` sends them.
    ///
    /// # Errors
    /// With the first fault found.
    pub fn from_wire(request: wire::ReleaseCapacityRequest, limits: &Limits) -> Result<Release, Refusal> {
        let holder = holder("client_id", request.client_id, limits)?;
        check_count(request.resource_id.len(), limits)?;
        let mut resources = Vec::with_capacity(request.resource_id.len());
        for (index, id) in request.resource_id.into_iter().enumerate().filter(|(_, id)| !id.is_empty()) {
            let id = ResourceId::new(id.as_str(), limits.name_bytes)
                .map_err(|fault| Refusal::name(format!("resource_id[{index}]"), &id, fault, limits))?;
            resources.push(id);
        }
        Ok(Release { holder, incarnation: request.incarnation, resources })
    }

    /// A release as it goes on the wire.
    #[must_use]
    pub fn to_wire(&self) -> wire::ReleaseCapacityRequest {
        wire::ReleaseCapacityRequest {
            client_id: Some(self.holder.to_string()),
            resource_id: self.resources.iter().map(ToString::to_string).collect(),
            incarnation: self.incarnation,
        }
    }

    /// The answer to a release: nothing, or where to send it instead.
    #[must_use]
    pub fn answer(redirect: Option<&Leader>) -> wire::ReleaseCapacityResponse {
        wire::ReleaseCapacityResponse { mastership: redirect.map(Leader::to_wire) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> wire::ResourceRequest {
        wire::ResourceRequest {
            resource_id: Some("db".into()),
            priority: Some(0),
            wants: Some(1.0),
            ..wire::ResourceRequest::default()
        }
    }

    fn lease(capacity: f64) -> wire::Lease {
        wire::Lease {
            expiry_time: Some(1),
            refresh_interval: Some(1),
            capacity: Some(capacity),
            ..wire::Lease::default()
        }
    }

    #[track_caller]
    fn check_client(resources: Vec<wire::ResourceRequest>, wanted: &str) {
        let request = wire::GetCapacityRequest {
            client_id: Some("c".into()),
            resource: resources,
            ..wire::GetCapacityRequest::default()
        };
        let limits = Limits { name_bytes: 8, resources_per_request: 3, bands_per_resource: 2 };
        let said = match Ask::from_client(request, &limits) {
            Ok(_) => "accepted".to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(said, wanted);
    }

    #[test]
    fn faults_name_the_field_what_it_holds_and_what_was_wanted() {
        check_client(vec![request()], "accepted");
        check_client(vec![wire::ResourceRequest { wants: Some(1e300), ..request() }], "accepted");
        for (wants, found) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (-1.0, "-1")] {
            let wanted = format!("resource[0].wants: is {found}; wanted a finite number of at least 0");
            check_client(vec![wire::ResourceRequest { wants: Some(wants), ..request() }], &wanted);
        }
        check_client(
            vec![wire::ResourceRequest { wants: None, ..request() }],
            "resource[0].wants: is missing; wanted a finite number of at least 0",
        );
        check_client(
            vec![wire::ResourceRequest { priority: None, ..request() }],
            "resource[0].priority: is missing; wanted a whole number, greater is served first",
        );
        check_client(
            vec![wire::ResourceRequest { has: Some(lease(-3.0)), ..request() }],
            "resource[0].has.capacity: is -3; wanted a finite number of at least 0",
        );
        check_client(
            vec![wire::ResourceRequest {
                has: Some(wire::Lease { expiry_time: None, ..lease(1.0) }),
                ..request()
            }],
            "resource[0].has.expiry_time: is missing; wanted the expiry_time of the lease",
        );
        check_client(
            vec![wire::ResourceRequest { held: Some(f64::NAN), ..request() }],
            "resource[0].held: is NaN; wanted a finite number of at least 0",
        );
        check_client(
            vec![wire::ResourceRequest { resource_id: Some(String::new()), ..request() }],
            "resource[0].resource_id: is empty; wanted 1 to 8 bytes of text without control characters",
        );
        check_client(
            vec![wire::ResourceRequest { resource_id: Some("a\u{7}".into()), ..request() }],
            "resource[0].resource_id: \"a\\u{7}\" contains the control character '\\u{7}'; \
             wanted 1 to 8 bytes of text without control characters",
        );
        check_client(
            vec![wire::ResourceRequest { resource_id: Some("x".repeat(90)), ..request() }],
            &format!(
                "resource[0].resource_id: \"{}\"… is 90 bytes long; wanted 1 to 8 bytes of text without control characters",
                "x".repeat(40)
            ),
        );
        check_client(
            vec![request(), request()],
            "resource[1].resource_id: is \"db\" for the second time; wanted each resource once",
        );
        check_client(vec![request(); 4], "resources in one request: 4 is over the limit of 3");
    }

    #[track_caller]
    fn check_node(bands: &[(Option<i64>, Option<i64>, Option<f64>)], wanted: &str) {
        let wants = bands.iter().map(|&(priority, num_clients, wants)| wire::PriorityBandAggregate {
            priority,
            num_clients,
            wants,
            bucket: Vec::new(),
        });
        let request = wire::GetServerCapacityRequest {
            server_id: Some("leaf".into()),
            resource: vec![wire::ServerCapacityResourceRequest {
                resource_id: Some("db".into()),
                wants: wants.collect(),
                ..wire::ServerCapacityResourceRequest::default()
            }],
            ..wire::GetServerCapacityRequest::default()
        };
        let said = match Ask::from_node(request, &Limits { bands_per_resource: 2, ..Limits::default() }) {
            Ok(_) => "accepted".to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(said, wanted);
    }

    #[test]
    fn servers_must_stand_for_somebody() {
        check_node(&[(Some(0), Some(10), Some(1000.0)), (Some(1), Some(1), Some(0.0))], "accepted");
        for count in [0, -1, 1 << 40] {
            check_node(
                &[(Some(0), Some(count), Some(1.0))],
                &format!(
                    "resource[0].wants[0].num_clients: is {count}; wanted a whole number from 1 to 4294967295"
                ),
            );
        }
        check_node(
            &[(Some(0), None, Some(1.0))],
            "resource[0].wants[0].num_clients: is missing; wanted a whole number from 1 to 4294967295",
        );
        check_node(
            &[(Some(0), Some(1), Some(1.0)), (Some(0), Some(1), Some(1.0))],
            "resource[0].wants[1].priority: is 0 for the second time; wanted each priority once",
        );
        check_node(&[], "resource[0].wants: is missing; wanted at least one priority band");
        check_node(&[(Some(0), Some(1), Some(1.0)); 3], "resource[0].wants: 3 is over the limit of 2");
    }

    #[test]
    fn release_passes_over_the_empty_ids_of_doormans_close() {
        let request = wire::ReleaseCapacityRequest {
            client_id: Some("c".into()),
            resource_id: vec![String::new(), "db".into(), String::new()],
            incarnation: None,
        };
        let release = Release::from_wire(request, &Limits::default()).unwrap();
        assert_eq!(release.resources, [ResourceId::new("db", 256).unwrap()]);
    }

    #[test]
    fn an_ask_survives_the_wire() {
        let ask = Ask {
            kind: HolderKind::Client,
            holder: ClientId::new("c", 256).unwrap(),
            incarnation: Some(7),
            report_id: Some(3),
            target_epoch: Some(9),
            reports: vec![Report {
                resource: ResourceId::new("db", 256).unwrap(),
                bands: smallvec![Band { priority: 2, subclients: 1, wants: 0.5 }],
                has: Some(Has {
                    capacity: Amount::from_units(4),
                    order: Some(Order { epoch: 9, seq: 2 }),
                    token: vec![1, 2],
                }),
                held: Some(Amount::from_units(3)),
            }],
        };
        assert_eq!(Ask::from_client(ask.to_wire(), &Limits::default()), Ok(ask));
    }
}
