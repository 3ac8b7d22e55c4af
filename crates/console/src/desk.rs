//! The desk at which requests are answered: what the server has, and what the console keeps beside it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use lessor_client::internals::clock;
use lessor_proto::{ResourceId, Time};
use lessor_server::access::Role;
use lessor_server::node::{RowOrder, StatusQuery};
use lessor_server::shell::PageParts;
use lessor_server::shell::driver::Summary;
use tokio::sync::Semaphore;

use crate::problem::ApiProblem;
use crate::route::Console;
use crate::series::SeriesRoom;
use crate::shelf::Shelf;
use crate::tempo::Tempo;

/// The desk. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) parts: PageParts,
    pub(crate) series: Arc<SeriesRoom>,
    pub(crate) shelf: Option<Arc<Shelf>>,
    pub(crate) tempo: Arc<Tempo>,
    /// Places of those who listen to events.
    pub(crate) listeners: Arc<Semaphore>,
    /// Places of computations.
    pub(crate) computations: Arc<Semaphore>,
    /// Whether it is at the port of operators.
    pub(crate) is_of_operators: bool,
    close_looks: Arc<Mutex<BTreeMap<String, Arc<Summary>>>>,
}

/// The age up to which a summary is shown once more.
const FRESH: Duration = Duration::from_millis(1_200);
/// The same of the holders of one resource.
const FRESH_HOLDERS: Duration = Duration::from_millis(900);
/// Those who listen to events, at a time.
const LISTENERS: usize = 64;
/// Computations at a time.
const COMPUTATIONS: usize = 2;
/// Holders of one resource that are looked at.
pub(crate) const MOST_HOLDERS: usize = 10_000;
/// Resources of which the holders are kept for a moment.
const CLOSE_LOOKS: usize = 16;

// === impl Desk ===

impl Desk {
    pub(crate) fn new(parts: PageParts, console: &Console) -> Desk {
        let shelf = parts.store.clone();
        let shelf = shelf.and_then(|store| Shelf::open(store, parts.stopped.clone())).map(Arc::new);
        Desk {
            parts,
            series: Arc::new(SeriesRoom::new(console.history)),
            shelf,
            tempo: Arc::default(),
            listeners: Arc::new(Semaphore::new(LISTENERS)),
            computations: Arc::new(Semaphore::new(COMPUTATIONS)),
            is_of_operators: false,
            close_looks: Arc::default(),
        }
    }

    /// The same at the port of operators.
    pub(crate) fn of_operators(&self) -> Desk {
        Desk { is_of_operators: true, ..self.clone() }
    }

    /// Whether whoever sends the request may act as `role` on a resource, or on all of them.
    pub(crate) fn may(
        &self,
        request: &Request,
        role: Role,
        resource: Option<&str>,
    ) -> Result<(), ApiProblem> {
        let resource = resource.map(|name| resource_id("resource", name)).transpose()?;
        let caller = (request.headers(), request.extensions());
        Ok(self.parts.gate.admit_operator(caller, role, resource.as_ref())?)
    }

    /// The figures of the node, not older than a second or so.
    pub(crate) async fn summary(&self) -> Result<Arc<Summary>, ApiProblem> {
        let is_fresh = |summary: &Arc<Summary>| clock::now().since(summary.at) < FRESH;
        match self.parts.driver.summary().filter(is_fresh) {
            Some(summary) => Ok(summary),
            None => Ok(self.parts.driver.look(&StatusQuery::FIGURES).await?),
        }
    }

    /// One resource with its holders.
    pub(crate) async fn close_look(&self, resource: &str) -> Result<Arc<Summary>, ApiProblem> {
        let now = clock::now();
        let known = self.looks().get(resource).cloned();
        if let Some(summary) = known.filter(|summary| now.since(summary.at) < FRESH_HOLDERS) {
            return Ok(summary);
        }
        let query = StatusQuery {
            resource: Some(resource.to_owned()),
            matching: None,
            resources: 1,
            order: RowOrder::ByName,
            holders: MOST_HOLDERS,
            domains: 0,
        };
        let summary = self.parts.driver.look(&query).await?;
        if summary.status.resources.is_empty() {
            self.redirect()?;
            return Err(ApiProblem::missing(format!("nobody holds or wants {resource:?}")));
        }
        let mut looks = self.looks();
        looks.retain(|_, kept| now.since(kept.at) < FRESH_HOLDERS);
        if looks.len() < CLOSE_LOOKS {
            looks.insert(resource.to_owned(), Arc::clone(&summary));
        }
        Ok(summary)
    }

    /// Fails where another task leads, of which then more is known than here.
    pub(crate) fn redirect(&self) -> Result<(), ApiProblem> {
        let whereabouts = self.parts.driver.whereabouts();
        match whereabouts.is_leader || whereabouts.leader.address.is_none() {
            true => Ok(()),
            false => {
                let fault = lessor_server::shell::driver::Unanswered::NotLeading(whereabouts.leader);
                Err(fault.into())
            }
        }
    }

    fn looks(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Summary>>> {
        self.close_looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a resource in a field.
pub(crate) fn resource_id(field: &str, name: &str) -> Result<ResourceId, ApiProblem> {
    const LONGEST: usize = 4_096;
    let wanted = "1 to 4096 bytes of text without control characters";
    ResourceId::new(name, LONGEST).map_err(|_| ApiProblem::invalid(field, name, wanted))
}

/// Seconds from one time to a later one.
pub(crate) fn seconds(from: Time, until: Time) -> f64 {
    until.since(from).as_secs_f64()
}

/// An amount to the millionth, as the books count: short when it is written.
pub(crate) fn amount(units: f64) -> f64 {
    (units * 1e6).round() / 1e6
}

/// A time in seconds to the millisecond.
pub(crate) fn brief(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
