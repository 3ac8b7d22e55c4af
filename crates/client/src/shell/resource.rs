//! The handle of an open resource.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lessor_proto::{Amount, ResourceId};
use tokio::sync::{mpsc, watch};

use super::clock;
use super::command::Command;
use super::lease_view::LeaseView;
use super::metrics::ResourceMetrics;
use crate::domain::{Domains, Query};
use crate::gauge::{self, Gauge, Permit};
use crate::holding::Kind;
use crate::limiter::{self, Limiter};
use crate::waiting::Refused;

/// An open resource: a rate is a `Resource<Limiter>`, a gauge a `Resource<Gauge>`.
///
/// Clones, and resources opened under the same name, share one lease, which is released when the last of them is dropped.
/// Permits of a gauge may outlive it: the release then waits for them.
#[derive(Debug)]
pub struct Resource<E> {
    core: Arc<Core<E>>,
    seen: watch::Receiver<LeaseView>,
}

/// The client was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the client is closed")]
pub struct Closed;

/// The state that all handles of one opening share. It is dropped with the last of them.
#[derive(Debug)]
pub(super) struct Core<E> {
    pub(super) resource: ResourceId,
    /// Which opening of the name it is.
    pub(super) generation: u64,
    pub(super) enforcer: Arc<E>,
    pub(super) view: watch::Receiver<LeaseView>,
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) tally: Tally,
    /// Of a rate; those of a gauge are never asked for.
    pub(super) domains: Arc<Domains>,
}

/// Permits of a gauge, counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    granted: AtomicU64,
    denied: AtomicU64,
}

// === impl Resource ===

impl<E> Resource<E> {
    pub(super) fn new(core: Arc<Core<E>>) -> Resource<E> {
        // The core's own receiver never looks, so this one has seen nothing since the opening: an answer that was quicker
        // than the handle is not missed.
        let seen = core.view.clone();
        Resource { core, seen }
    }

    pub(super) fn core(&self) -> &Core<E> {
        &self.core
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &ResourceId {
        &self.core.resource
    }

    /// The lease at this moment.
    #[must_use]
    pub fn lease(&self) -> LeaseView {
        self.seen.borrow().clone()
    }

    /// Waits until the capacity, the rung or the last error differs from when this handle last waited, or else from the
    /// opening, and returns the lease. Renewals alone go unnoticed.
    ///
    /// # Errors
    /// When the client has been closed.
    pub async fn changed(&mut self) -> Result<LeaseView, Closed> {
        self.seen.changed().await.map_err(|_| Closed)?;
        Ok(self.seen.borrow_and_update().clone())
    }

    /// Asks for `wants` units (a second) from here on, whatever is used. NaN and negative numbers are taken for 0.
    pub fn set_wants(&self, wants: f64) {
        self.want(Some(wants));
    }

    /// Asks for what is used, and a little more, from here on.
    pub fn measure_wants(&self) {
        self.want(None);
    }

    fn want(&self, wants: Option<f64>) {
        let wants = wants.map(Amount::from_f64);
        let (resource, generation) = (self.core.resource.clone(), self.core.generation);
        // A closed client wants nothing.
        let _ = self.core.commands.send(Command::Want { resource, generation, wants });
    }
}

impl Resource<Limiter> {
    /// Takes `n` units if they are there.
    ///
    /// # Errors
    /// See [`limiter::Denied`].
    #[inline]
    pub fn try_acquire(&self, n: u32) -> Result<(), limiter::Denied> {
        self.core.enforcer.try_acquire(n, clock::now)
    }

    /// Waits for `n` units, in order.
    ///
    /// # Errors
    /// When the wait would be too long, or too many wait.
    pub async fn acquire(&self, n: u32) -> Result<(), Refused> {
        self.core.enforcer.acquire(n).await
    }
}

impl Resource<Gauge> {
    /// Takes `n` units, if they are there, until the permit is dropped.
    ///
    /// # Errors
    /// See [`gauge::GaugeDenied`].
    pub fn try_acquire(&self, n: u32) -> Result<Permit, gauge::GaugeDenied> {
        self.core.tally.count(self.core.enforcer.try_acquire(n, clock::now))
    }

    /// Waits for `n` units, in order; they are held until the permit is dropped.
    ///
    /// # Errors
    /// When the wait would be too long, or too many wait.
    pub async fn acquire(&self, n: u32) -> Result<Permit, Refused> {
        self.core.tally.count(self.core.enforcer.acquire(n).await)
    }
}

impl<E> Clone for Resource<E> {
    fn clone(&self) -> Resource<E> {
        Resource { core: self.core.clone(), seen: self.seen.clone() }
    }
}

// === impl Core ===

impl Core<Limiter> {
    /// With so many of the busiest domains by name, if that is asked for.
    pub(super) fn metrics(&self, named: Option<usize>) -> ResourceMetrics {
        let used = self.enforcer.usage();
        let denied = used.attempted.saturating_sub(used.granted + used.waiting);
        let metrics = self.metrics_with(Kind::Rate, used.granted, denied, 0);
        let busiest = named.map(|most| self.domains.snapshot(&Query::busiest(most), clock::now()));
        // One count, so that the rows and all others add up to it.
        let domains = busiest.as_ref().map_or(metrics.domains, |snapshot| snapshot.counts);
        ResourceMetrics { domains, busiest, ..metrics }
    }
}

impl Core<Gauge> {
    pub(super) fn metrics(&self) -> ResourceMetrics {
        let Tally { granted, denied } = &self.tally;
        let (granted, denied) = (granted.load(Ordering::Relaxed), denied.load(Ordering::Relaxed));
        self.metrics_with(Kind::Gauge, granted, denied, self.enforcer.in_use())
    }
}

impl<E> Core<E> {
    /// Has the driver look whether something of its domains is to be told.
    pub(super) fn call(&self) {
        // Nobody listens after the client was closed, and nobody is to be told anything.
        let _ = self.commands.send(Command::Tell);
    }

    fn metrics_with(&self, kind: Kind, granted: u64, denied: u64, in_use: u32) -> ResourceMetrics {
        let view = self.view.borrow().clone();
        ResourceMetrics {
            resource: self.resource.clone(),
            kind,
            rung: view.rung,
            capacity: view.capacity,
            wants: view.wants,
            granted,
            denied,
            in_use,
            domains: self.domains.counts(),
            busiest: None,
        }
    }
}

impl<E> Drop for Core<E> {
    fn drop(&mut self) {
        let (resource, generation) = (self.resource.clone(), self.generation);
        // Nobody listens after the client was closed, and nothing is left to do.
        let _ = self.commands.send(Command::Close { resource, generation });
    }
}

// === impl Tally ===

impl Tally {
    fn count<E>(&self, permit: Result<Permit, E>) -> Result<Permit, E> {
        match permit {
            Ok(_) => self.granted(),
            Err(_) => self.denied(),
        }
        permit
    }

    pub(super) fn granted(&self) {
        self.granted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn denied(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }
}
