//! A resource of a simulation as it is configured at the moment, and the templates that say so.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::Fallback;
use lessor_client::internals::domain::Policies;
use lessor_proto::{Amount, ResourceId};
use lessor_server::repository::{
    BadTemplates, Domains, Field, Fraction, Glob, Kind, Legacy, Repository, Rotate, SafeCapacity,
    SharePolicy, SmallLeases, Template,
};

use crate::plan::{DomainPlan, ResourcePlan, Terms, policies};
use crate::site::FLOOR_LEASES;

/// Something that is shared.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    pub(crate) kind: Kind,
    pub(crate) policy: SharePolicy,
    /// The amount that there is, as configured.
    pub(crate) capacity: Amount,
    /// Whether a template covers it.
    pub(crate) covered: bool,
    pub(crate) rotate: Option<Rotate>,
    pub(crate) quantum: Option<Duration>,
    /// The window in which each unit is a use, if it is a limit on windows.
    pub(crate) window: Option<Duration>,
    pub(crate) burst: Option<Duration>,
    pub(crate) small_leases: SmallLeases,
    pub(crate) legacy: Legacy,
    /// Whose domain it is the lease of, if it is that of a domain.
    pub(crate) domain: Option<DomainPlan>,
    /// The index of the resource that it is tried beside, if it is the companion of one.
    pub(crate) companion_of: Option<u16>,
    /// The policies of its domains, as long as it is a rate.
    pub(crate) domains: Option<Arc<Policies>>,
    /// The greatest priority that counts.
    pub(crate) most_priority: Option<i64>,
    /// The most clients that one holder counts for.
    pub(crate) most_clients: Option<u32>,
}

// === impl Resource ===

impl Resource {
    pub(crate) fn new(plan: &ResourcePlan) -> Resource {
        Resource {
            id: ResourceId::new(plan.name.as_str(), 256).expect("the name of a resource"),
            kind: plan.kind,
            policy: plan.policy,
            capacity: plan.capacity,
            covered: true,
            rotate: plan.rotate,
            quantum: plan.quantum,
            window: plan.window,
            burst: plan.burst,
            small_leases: plan.small_leases,
            legacy: plan.legacy,
            domain: plan.domain,
            companion_of: plan.companion_of,
            domains: None,
            most_priority: plan.most_priority,
            most_clients: plan.most_clients,
        }
    }
}

// === templates ===

/// The repository of a site that leases on these terms. What there is of a floor is reserved of its resource.
///
/// # Errors
/// When the templates do not hold together.
pub(crate) fn repository(
    resources: &[Resource],
    terms: Terms,
    learning: Duration,
    fallback: Fallback,
) -> Result<Repository, BadTemplates> {
    let is_own = |resource: &Resource| {
        !resource.id.is_floor() && resource.domain.is_none() && resource.companion_of.is_none()
    };
    let beside = |of: usize| {
        let is_it =
            |found: &&Resource| found.covered && found.companion_of.is_some_and(|it| usize::from(it) == of);
        resources.iter().find(is_it).map(|companion| companion.capacity)
    };
    let covered = resources.iter().enumerate().filter(|(_, resource)| resource.covered && is_own(resource));
    let shared = |resource: &Resource| {
        resource.domains.clone().filter(|_| resource.kind == Kind::Rate).map(as_configured)
    };
    let domains = |lender: usize| {
        let of = |found: &'_ Resource| found.domain.filter(|domain| usize::from(domain.of) == lender);
        let named = resources.iter().filter_map(|found| Some((found.id.as_str(), of(found)?)));
        policies(named.filter_map(|(id, domain)| Some((id.rsplit_once("|d:")?.1, domain))))
    };
    let floor = |resource: &Resource| {
        let floor = resources.iter().find(|other| other.id == resource.id.floor());
        floor.map_or(Amount::ZERO, |floor| floor.capacity)
    };
    let reserved = |resource: &Resource| {
        let whole = resource.capacity.saturating_add(floor(resource)).as_f64().max(1e-6);
        Fraction::check(Field::SafeFraction, floor(resource).as_f64() / whole).expect("a part of the whole")
    };
    let template = |(index, resource): (usize, &Resource)| Template {
        safe_fraction: reserved(resource),
        safe_lease: Some(terms.lease_length * FLOOR_LEASES),
        safe_capacity: match fallback {
            Fallback::Safe => SafeCapacity::Dynamic,
            Fallback::Pessimistic | Fallback::Optimistic => SafeCapacity::Fixed(Amount::ZERO),
        },
        // A leader whose record says nothing learns, and of windows it must be said for how long.
        learning: resource.window.map_or(learning, |_| learning.max(terms.lease_length)),
        rotate: resource.rotate.filter(|_| resource.kind == Kind::Gauge && resource.window.is_none()),
        window: resource.window,
        quantum: resource.quantum.filter(|_| resource.kind == Kind::Gauge),
        burst: resource.burst.filter(|_| resource.kind == Kind::Rate),
        small_leases: (resource.kind == Kind::Rate).then_some(resource.small_leases),
        legacy: resource.legacy,
        domains: shared(resource).or_else(|| domains(index)),
        beside: beside(index),
        kind: resource.kind,
        policy: resource.policy,
        most_priority: resource.most_priority,
        most_clients: resource.most_clients,
        lease_length: terms.lease_length,
        refresh_interval: terms.refresh_interval,
        ..Template::new(
            Glob::new(resource.id.as_str()).expect("a name without signs"),
            resource.capacity.saturating_add(floor(resource)),
        )
    };
    Repository::new(covered.map(template).collect())
}

fn as_configured(policies: Arc<Policies>) -> Domains {
    Domains { policies, changes: Vec::new() }
}
