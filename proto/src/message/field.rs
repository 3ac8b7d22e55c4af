//! Fields of requests, checked one by one and named by their paths: `resource[2].wants[0].num_clients`.

use std::collections::HashSet;

use super::Report;
use super::refusal::{Limits, Refusal, name_wanted};
use crate::Amount;
use crate::name::{ClientId, ResourceId};

const WANTED_AMOUNT: &str = "a finite number of at least 0";

/// One resource of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The field that lists the resources: `resource`.
    pub(super) list: &'a str,
    pub(super) index: usize,
}

// === impl Place ===

impl Place<'_> {
    /// The path of a field of the resource.
    pub(super) fn path(self, field: &str) -> String {
        format!("{}[{}].{field}", self.list, self.index)
    }
}

/// The name of a holder.
pub(super) fn holder(field: &str, id: Option<String>, limits: &Limits) -> Result<ClientId, Refusal> {
    let id = id.ok_or_else(|| Refusal::missing(field, name_wanted(limits)))?;
    ClientId::new(id.as_str(), limits.name_bytes).map_err(|fault| Refusal::name(field, &id, fault, limits))
}

/// The name of a resource.
pub(super) fn resource(
    path: impl Fn() -> String,
    id: Option<String>,
    limits: &Limits,
) -> Result<ResourceId, Refusal> {
    let id = id.ok_or_else(|| Refusal::missing(path(), name_wanted(limits)))?;
    ResourceId::new(id.as_str(), limits.name_bytes).map_err(|fault| Refusal::name(path(), &id, fault, limits))
}

/// A number of units (a second).
pub(super) fn amount(path: impl Fn() -> String, value: Option<f64>) -> Result<f64, Refusal> {
    let value = value.ok_or_else(|| Refusal::missing(path(), WANTED_AMOUNT))?;
    if !value.is_finite() || value < 0.0 {
        return Err(Refusal::invalid(path(), format!("is {value}"), WANTED_AMOUNT));
    }
    // Makes 0 of -0.
    Ok(value + 0.0)
}

/// The most that a report promises to use.
pub(super) fn held(place: Place<'_>, held: Option<f64>) -> Result<Option<Amount>, Refusal> {
    held.map(|held| amount(|| place.path("held"), Some(held)).map(Amount::from_f64)).transpose()
}

/// The least lease that would have let the last attempts through.
pub(super) fn peak(place: Place<'_>, peak: Option<f64>) -> Result<Option<f64>, Refusal> {
    peak.map(|peak| amount(|| place.path("peak"), Some(peak))).transpose()
}

/// A number of clients, at least 1.
pub(super) fn subclients(path: impl Fn() -> String, count: Option<i64>) -> Result<u32, Refusal> {
    let wanted = || format!("a whole number from 1 to {}", u32::MAX);
    let count = count.ok_or_else(|| Refusal::missing(path(), wanted()))?;
    let subclients = u32::try_from(count).ok().filter(|&n| n > 0);
    subclients.ok_or_else(|| Refusal::invalid(path(), format!("is {count}"), wanted()))
}

/// That a request does not speak of too many resources.
pub(super) fn check_count(count: usize, limits: &Limits) -> Result<(), Refusal> {
    if count > limits.resources_per_request {
        return Err(Refusal::Exhausted {
            what: "resources in one request".to_owned(),
            count,
            limit: limits.resources_per_request,
        });
    }
    Ok(())
}

/// That a request speaks of each resource once.
pub(super) fn check_distinct(list: &str, reports: &[Report]) -> Result<(), Refusal> {
    if reports.len() < 2 {
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(reports.len());
    match reports.iter().enumerate().find(|(_, report)| !seen.insert(&report.resource)) {
        None => Ok(()),
        Some((index, report)) => Err(Refusal::invalid(
            Place { list, index }.path("resource_id"),
            format!("is {:?} for the second time", report.resource),
            "each resource once",
        )),
    }
}
