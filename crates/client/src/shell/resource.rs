//! The handle of an open resource.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lessor_proto::{Amount, ResourceId};
use tokio::sync::{mpsc, watch};

use super::clock;
use super::command::Command;
use super::jobs::JobCell;
use super::lease_state::LeaseState;
use super::metrics::ResourceMetrics;
use crate::decision::Bound;
use crate::denied::Denied;
use crate::domain::{Domains, Query};
use crate::gauge::{Permit, Semaphore};
use crate::holding::Kind;
use crate::limiter::Limiter;
use crate::second_limit::SecondUsage;
use crate::shortness::Shortness;
use crate::waiting::Boot;

/// An open rate: units a second. Opened with [`Client::rate`](super::Client::rate); see [`Resource`].
///
/// ```no_run
/// # async fn work(client: lessor_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let queries = client.rate("db-orders").open()?;
/// queries.acquire(1).await?; // waits in order, five seconds at most
/// if let Err(denied) = queries.try_acquire(10) {
///     println!("{denied}; try again after {:?}", denied.retry_after());
/// }
/// # Ok(())
/// # }
/// ```
pub type Rate = Resource<Limiter>;

/// An open gauge: whole units in use at the same time. Opened with [`Client::gauge`](super::Client::gauge); see [`Resource`].
///
/// ```no_run
/// # async fn work(client: lessor_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let connections = client.gauge("db-connections").open()?;
/// let permit = connections.acquire(1).await?;
/// println!("{} is in use, for {:?} at the least", permit.units(), permit.remaining());
/// drop(permit); // the connection is free again
/// # Ok(())
/// # }
/// ```
pub type Gauge = Resource<Semaphore>;

/// An open resource: a [`Rate`] or a [`Gauge`].
///
/// Clones, and resources opened under the same name, share one lease, which is released when the last of them is dropped.
/// Permits of a gauge may outlive it: the release then waits for them.
#[derive(Debug)]
pub struct Resource<E> {
    core: Arc<Core<E>>,
    seen: watch::Receiver<LeaseState>,
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
    pub(super) view: watch::Receiver<LeaseState>,
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) tally: Tally,
    /// Of a rate; those of a gauge are never asked for.
    pub(super) domains: Arc<Domains>,
    pub(super) shortness: Arc<Mutex<Shortness>>,
    /// Of a gauge.
    pub(super) jobs: Option<Arc<JobCell>>,
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

    /// The state that this handle shares with all others of the opening, which lasts as long as any of them.
    pub(super) fn shared(&self) -> Arc<Core<E>> {
        Arc::clone(&self.core)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &ResourceId {
        &self.core.resource
    }

    /// The lease at this moment.
    #[must_use]
    pub fn lease(&self) -> LeaseState {
        self.seen.borrow().clone()
    }

    /// Waits until the capacity, the rung or the last error differs from when this handle last waited, or else from the
    /// opening, and returns the lease. Renewals alone go unnoticed.
    ///
    /// # Errors
    /// When the client has been closed.
    pub async fn changed(&mut self) -> Result<LeaseState, Closed> {
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

impl Rate {
    /// Takes `n` units if they are there.
    ///
    /// # Errors
    /// When they are not, or nothing is leased. Nothing is taken then.
    #[inline]
    pub fn try_acquire(&self, n: u32) -> Result<(), Denied> {
        self.core.enforcer.try_acquire(n, clock::now).map_err(|denied| self.core.explain(denied))
    }

    /// Waits for `n` units, in order.
    ///
    /// # Errors
    /// When the wait would be longer than [`Opening::max_wait`](super::Opening::max_wait), or too many wait; and at once when
    /// the client is closed, or the server refuses the resource. Nothing is taken then.
    pub async fn acquire(&self, n: u32) -> Result<(), Denied> {
        self.core.wait_for(self.core.enforcer.acquire(n)).await
    }

    /// The same with another longest wait than that of the opening: [`Duration::MAX`] for as long as it takes.
    ///
    /// # Errors
    /// As [`Rate::acquire`].
    pub async fn acquire_within(&self, n: u32, max_wait: Duration) -> Result<(), Denied> {
        self.core.wait_for(self.core.enforcer.acquire_within(&Boot, n, max_wait)).await
    }

    /// The longest that [`Rate::acquire`] waits, as it was [opened](super::Opening::max_wait).
    #[must_use]
    pub fn max_wait(&self) -> Duration {
        self.core.domains.options().max_wait
    }

    /// Settles units that were granted and turned out to cost `actual` instead of `granted`. What was too little is taken
    /// late: nobody is granted anything until as much has come in, a minute at the most. What was too much does not come back.
    pub fn settle(&self, granted: u32, actual: u32) {
        if let Some(missing @ 1..) = actual.checked_sub(granted) {
            self.core.enforcer.charge(missing, clock::now());
        }
    }
}

impl Gauge {
    /// Takes `n` units, if they are there, until the permit is dropped.
    ///
    /// # Errors
    /// When they are not, or nothing is leased. Nothing is taken then.
    pub fn try_acquire(&self, n: u32) -> Result<Permit, Denied> {
        let permit = self.core.enforcer.try_acquire(n, clock::now);
        self.core.tally.count(permit).map_err(|denied| self.core.explain(denied))
    }

    /// Waits for `n` units, in order; they are held until the permit is dropped.
    ///
    /// # Errors
    /// When the wait would be longer than [`Opening::max_wait`](super::Opening::max_wait), or too many wait; and at once when
    /// the client is closed, or the server refuses the resource. Nothing is taken then.
    pub async fn acquire(&self, n: u32) -> Result<Permit, Denied> {
        self.core.tally.count(self.core.wait_for(self.core.enforcer.acquire(n)).await)
    }

    /// The same with another longest wait than that of the opening: [`Duration::MAX`] for as long as it takes.
    ///
    /// # Errors
    /// As [`Gauge::acquire`].
    pub async fn acquire_within(&self, n: u32, max_wait: Duration) -> Result<Permit, Denied> {
        let permit = self.core.enforcer.acquire_within(&Boot, n, max_wait);
        self.core.tally.count(self.core.wait_for(permit).await)
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
        let (used, unenforced) = (self.enforcer.usage(), self.enforcer.unenforced());
        let denied = used.attempted.saturating_sub(used.granted + used.waiting + unenforced);
        let beside = self.enforcer.usage_beside();
        let metrics =
            ResourceMetrics { unenforced, beside, ..self.metrics_with(Kind::Rate, used.granted, denied, 0) };
        let busiest = named.map(|most| self.domains.snapshot(&Query::busiest(most), clock::now()));
        // One count, so that the rows and all others add up to it.
        let domains = busiest.as_ref().map_or(metrics.domains, |snapshot| snapshot.counts);
        ResourceMetrics { domains, busiest, ..metrics }
    }
}

impl Core<Semaphore> {
    pub(super) fn metrics(&self) -> ResourceMetrics {
        let Tally { granted, denied } = &self.tally;
        let (granted, denied) = (granted.load(Ordering::Relaxed), denied.load(Ordering::Relaxed));
        let unenforced = self.enforcer.unenforced();
        ResourceMetrics {
            unenforced,
            beside: self.enforcer.usage_beside(),
            ..self.metrics_with(Kind::Gauge, granted, denied, self.enforcer.in_use())
        }
    }
}

impl<E> Core<E> {
    /// Has the driver look whether something of its domains is to be told.
    pub(super) fn call(&self) {
        // Nobody listens after the client was closed, and nobody is to be told anything.
        let _ = self.commands.send(Command::Tell);
    }

    /// Waits for a permit, but not once the client is closed or the server refuses the resource.
    pub(super) async fn wait_for<T>(
        &self,
        permit: impl Future<Output = Result<T, Denied>>,
    ) -> Result<T, Denied> {
        tokio::select! {
            biased;
            permit = permit => permit.map_err(|denied| self.explain(denied)),
            denied = self.hopeless() => Err(denied),
        }
    }

    /// Waits until there is nothing to wait for.
    pub(super) async fn hopeless(&self) -> Denied {
        let mut view = self.view.clone();
        match view.wait_for(|lease| lease.hopeless().is_some()).await {
            Ok(lease) => lease.hopeless().unwrap_or(Denied::NothingLeased),
            Err(_) => Denied::Closed,
        }
    }

    /// The denial, with the reason why nothing is leased where it comes from that.
    #[cold]
    pub(super) fn explain(&self, denied: Denied) -> Denied {
        let denied = match denied {
            // A lease that is used up says for how long.
            Denied::Domain(denial)
                if denial.decision.bound == Some(Bound::Lease) && denial.retry_after.is_none() =>
            {
                Denied::NothingLeased
            }
            Denied::NothingLeased | Denied::TimedOut { .. } => denied,
            denied => return denied,
        };
        if self.view.has_changed().is_err() {
            return Denied::Closed;
        }
        self.view.borrow().unserved().unwrap_or(denied)
    }

    /// Whether the client was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.view.has_changed().is_err() || matches!(self.view.borrow().hopeless(), Some(Denied::Closed))
    }

    fn metrics_with(&self, kind: Kind, granted: u64, denied: u64, in_use: u32) -> ResourceMetrics {
        let view = self.view.borrow().clone();
        ResourceMetrics {
            resource: self.resource.clone(),
            kind,
            rung: view.rung,
            capacity: view.capacity,
            until: view.until,
            is_learning: view.is_learning,
            wants: view.wants,
            short: self.shortness.lock().unwrap_or_else(PoisonError::into_inner).until(clock::now()),
            granted,
            denied,
            unenforced: 0,
            lets_pass: view.unenforced,
            beside: SecondUsage::default(),
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
