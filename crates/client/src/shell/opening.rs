//! Opening a resource.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::name::BadName;
use lessor_proto::{Amount, ResourceId};
use tokio::sync::{mpsc, watch};

use super::clock;
use super::command::{Command, OpenResource};
use super::enforce::Enforce;
use super::lease_state::LeaseState;
use super::notifier::Notifier;
use super::registry::{Registered, Registry};
use super::resource::{Closed, Core, Gauge, Rate, Resource, Tally};
use crate::demand::{self, Estimator};
use crate::domain::{DomainOptions, Domains, Lender};
use crate::gauge::Semaphore;
use crate::holding::{Fallback, HoldingConfig, Kind};
use crate::limiter::Limiter;
use crate::waiting::Waiting;

/// The settings with which a resource is to be opened. They end with `open`.
#[derive(Clone, Debug)]
#[must_use = "nothing is opened without `open`"]
pub struct Opening<'a, E> {
    registry: &'a Registry,
    commands: &'a mpsc::UnboundedSender<Command>,
    name: String,
    wants: Option<f64>,
    max_wants: Option<f64>,
    priority: i64,
    fallback: Fallback,
    waiting: Waiting,
    /// Of a rate.
    burst: Option<Duration>,
    /// Of a rate.
    domains: DomainOptions,
    enforcer: std::marker::PhantomData<E>,
}

/// Why a resource was not opened.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The name cannot be one.
    #[error(
        "the name {name:?} {fault}; wanted 1 to {} bytes of text without control characters",
        ResourceId::USUAL_BYTES
    )]
    Name {
        /// The name that was given.
        name: String,
        /// The fault in it.
        fault: BadName,
    },
    /// The wants cannot be wanted.
    #[error("wants of {0}; wanted a finite number of at least 0")]
    Wants(f64),
    /// The name is open as the other kind.
    #[error("{resource:?} is open as a {open}, and cannot be a {wanted} too")]
    OtherKind {
        /// The name.
        resource: ResourceId,
        /// As what it is open.
        open: Kind,
        /// As what it was to be opened.
        wanted: Kind,
    },
    /// The client was closed.
    #[error(transparent)]
    Closed(#[from] Closed),
}

// === impl Opening ===

impl<'a, E> Opening<'a, E> {
    pub(super) fn new(
        registry: &'a Registry,
        commands: &'a mpsc::UnboundedSender<Command>,
        name: String,
    ) -> Opening<'a, E> {
        Opening {
            registry,
            commands,
            name,
            wants: None,
            max_wants: None,
            priority: 0,
            fallback: Fallback::default(),
            waiting: Waiting::DEFAULT,
            burst: None,
            domains: DomainOptions::default(),
            enforcer: std::marker::PhantomData,
        }
    }

    /// Asks for so many units (a second), whatever is used. Without it, for what is used and a little more.
    pub fn wants(self, wants: f64) -> Opening<'a, E> {
        Opening { wants: Some(wants), ..self }
    }

    /// Asks for at most so many units (a second), whatever is used.
    pub fn max_wants(self, most: f64) -> Opening<'a, E> {
        Opening { max_wants: Some(most), ..self }
    }

    /// Is served before all with a lower number; 0 without it.
    pub fn priority(self, priority: i64) -> Opening<'a, E> {
        Opening { priority, ..self }
    }

    /// The behaviour when the lease has ended and no server answers.
    pub fn fallback(self, fallback: Fallback) -> Opening<'a, E> {
        Opening { fallback, ..self }
    }

    /// The longest that `acquire` waits; five seconds without it, and with `None` as long as it takes.
    pub fn max_wait(self, max_wait: impl Into<Option<Duration>>) -> Opening<'a, E> {
        let max_wait = max_wait.into().unwrap_or(Duration::MAX);
        Opening { waiting: Waiting { max_wait, ..self.waiting }, ..self }
    }

    /// The most callers that may wait in `acquire` at a time; 1024 without it.
    pub fn max_waiters(self, max_waiters: usize) -> Opening<'a, E> {
        Opening { waiting: Waiting { max_waiters, ..self.waiting }, ..self }
    }

    fn resource(&self) -> Result<ResourceId, OpenError> {
        for wants in [self.wants, self.max_wants].into_iter().flatten() {
            if !wants.is_finite() || wants < 0.0 {
                return Err(OpenError::Wants(wants));
            }
        }
        ResourceId::new(self.name.as_str(), ResourceId::USUAL_BYTES)
            .map_err(|fault| OpenError::Name { name: self.name.clone(), fault })
    }

    /// Hands a fresh opening to the driver.
    fn start(self, kind: Kind, resource: ResourceId, enforcer: Arc<E>) -> Result<Arc<Core<E>>, Closed>
    where
        E: Enforce + 'static,
    {
        let most = self.max_wants.map_or(Amount::MAX, Amount::from_f64);
        let mut demand = Estimator::new(demand::DemandOptions { most, ..demand::DemandOptions::default() });
        if kind == Kind::Rate {
            demand = demand.with_claims(self.burst);
        }
        demand.set(self.wants.map(Amount::from_f64));
        let wants = demand.wants().as_f64();
        let (publish, view) = watch::channel(LeaseState::waiting(wants));
        let options = DomainOptions { max_wait: self.waiting.max_wait, ..self.domains };
        let generation = self.registry.next_generation();
        let notifier = |command| Notifier::waker(self.commands, &resource, generation, command);
        enforcer.call(notifier(|resource, generation| Command::Units { resource, generation }));
        enforcer
            .listen(clock::now(), notifier(|resource, generation| Command::Knock { resource, generation }));
        let notifier = notifier(|resource, generation| Command::Subleases { resource, generation });
        let lender = Lender { resource: resource.clone(), notifier };
        let domains = Arc::new(Domains::new(options).with_lender(lender));
        let config =
            HoldingConfig { fallback: self.fallback, ..HoldingConfig::new(kind, wants, self.priority) };
        let shortness = Arc::default();
        let jobs = (kind == Kind::Gauge).then(Arc::default);
        let open = OpenResource {
            resource: resource.clone(),
            generation,
            config,
            enforcer: enforcer.clone(),
            demand,
            domains: Arc::clone(&domains),
            view: publish,
            shortness: Arc::clone(&shortness),
            jobs: jobs.clone(),
        };
        self.commands.send(Command::Open(Box::new(open))).map_err(|_| Closed)?;
        let (commands, tally) = (self.commands.clone(), Tally::default());
        let core = Core { resource, generation, enforcer, view, commands, tally, domains, shortness, jobs };
        Ok(Arc::new(core))
    }
}

impl Opening<'_, Limiter> {
    /// The most that may be saved up, as the time in which the rate brings it: less than the operator's `burst`,
    /// which comes with the lease, and never more.
    pub fn burst(self, burst: Duration) -> Self {
        Opening { burst: Some(burst), ..self }
    }

    /// The options for its domains; the time that they wait at most is that of the opening.
    pub fn domains(self, domains: DomainOptions) -> Self {
        Opening { domains, ..self }
    }

    /// Opens the rate. If it is open already, returns another handle of the same lease, and the settings of the first
    /// opening stay.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(self) -> Result<Rate, OpenError> {
        let resource = self.resource()?;
        let registry = self.registry;
        let mut open = registry.lock();
        match open.get(&resource) {
            Some(Registered::Rate(core)) => {
                if let Some(core) = core.upgrade() {
                    return Ok(Resource::new(core));
                }
            }
            Some(Registered::Gauge(core, gauge)) if core.strong_count() > 0 || gauge.in_use() > 0 => {
                return Err(OpenError::OtherKind { resource, open: Kind::Gauge, wanted: Kind::Rate });
            }
            Some(Registered::Gauge(..)) | None => {}
        }
        let limiter =
            Arc::new(self.burst.map_or_else(Limiter::default, Limiter::new).with_waiting(self.waiting));
        let core = self.start(Kind::Rate, resource.clone(), limiter)?;
        open.insert(resource, Registered::Rate(Arc::downgrade(&core)));
        Ok(Resource::new(core))
    }
}

impl Opening<'_, Semaphore> {
    /// Opens the gauge. If it is open already, returns another handle of the same lease, and the settings of the first
    /// opening stay.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(self) -> Result<Gauge, OpenError> {
        let resource = self.resource()?;
        let registry = self.registry;
        let mut open = registry.lock();
        let mut left = None;
        match open.get(&resource) {
            Some(Registered::Gauge(core, gauge)) => match core.upgrade() {
                Some(core) => return Ok(Resource::new(core)),
                None => left = (gauge.in_use() > 0).then(|| gauge.clone()),
            },
            Some(Registered::Rate(core)) if core.strong_count() > 0 => {
                return Err(OpenError::OtherKind { resource, open: Kind::Rate, wanted: Kind::Gauge });
            }
            Some(Registered::Rate(_)) | None => {}
        }
        let gauge = left.unwrap_or_else(|| Arc::new(Semaphore::new(self.waiting)));
        let core = self.start(Kind::Gauge, resource.clone(), gauge.clone())?;
        open.insert(resource, Registered::Gauge(Arc::downgrade(&core), gauge));
        Ok(Resource::new(core))
    }
}
