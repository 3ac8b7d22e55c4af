//! The list of what is open.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lessor_proto::ResourceId;

use super::metrics::{LastFault, Metrics, ResourceMetrics};
use super::resource::Core;
use crate::gauge::Semaphore;
use crate::limiter::Limiter;
use crate::session::{SessionCounts, Transport};
use crate::window::WindowKeys;

/// The open resources, and the counts of the driver; shared by a client and its driver.
#[derive(Debug, Default)]
pub(super) struct Registry {
    open: Mutex<BTreeMap<ResourceId, Registered>>,
    /// The limits on windows that were opened, by prefix. They are kept as long as the client lives: what was used in them counts.
    windows: Mutex<BTreeMap<String, Arc<WindowKeys>>>,
    counts: Mutex<(SessionCounts, Transport)>,
    last_fault: Mutex<Option<LastFault>>,
    generations: AtomicU64,
}

/// A resource that was opened.
#[derive(Debug)]
pub(super) enum Registered {
    Rate(Weak<Core<Limiter>>),
    /// The gauge outlives its handles while permits are out, and serves those who open the name again.
    Gauge(Weak<Core<Semaphore>>, Arc<Semaphore>),
}

/// Something that is open.
enum OpenCore {
    Rate(Arc<Core<Limiter>>),
    Gauge(Arc<Core<Semaphore>>),
}

// === impl Registry ===

impl Registry {
    /// The name is closed for good, unless it was opened again.
    pub(super) fn forget(&self, resource: &ResourceId) {
        let mut open = self.lock();
        if open.get(resource).is_some_and(|registered| !registered.is_open()) {
            open.remove(resource);
        }
    }

    pub(super) fn count(&self, counts: SessionCounts, transport: Transport) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = (counts, transport);
    }

    /// A resource was not renewed.
    pub(super) fn note_fault(&self, fault: LastFault) {
        *self.last_fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    fn last_fault(&self) -> Option<LastFault> {
        self.last_fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn counts(&self) -> (SessionCounts, Transport) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metrics of the session and of the open resources, with `named` domains of each rate by name if that is asked for.
    pub(super) fn metrics(&self, named: Option<usize>) -> Metrics {
        let (counts, transport) = self.counts();
        // Nobody who opens something waits for a look at all domains.
        let held: Vec<OpenCore> = self.lock().values().filter_map(Registered::held).collect();
        let resources = held.iter().map(|held| held.metrics(named)).collect();
        Metrics { counts, transport, last_fault: self.last_fault(), resources }
    }

    /// A number that no opening had before.
    pub(super) fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn windows(&self) -> MutexGuard<'_, BTreeMap<String, Arc<WindowKeys>>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<ResourceId, Registered>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Registered ===

impl Registered {
    fn is_open(&self) -> bool {
        match self {
            Registered::Rate(core) => core.strong_count() > 0,
            Registered::Gauge(core, _) => core.strong_count() > 0,
        }
    }

    fn held(&self) -> Option<OpenCore> {
        match self {
            Registered::Rate(core) => core.upgrade().map(OpenCore::Rate),
            Registered::Gauge(core, _) => core.upgrade().map(OpenCore::Gauge),
        }
    }
}

// === impl OpenCore ===

impl OpenCore {
    fn metrics(&self, named: Option<usize>) -> ResourceMetrics {
        match self {
            OpenCore::Rate(core) => core.metrics(named),
            OpenCore::Gauge(core) => core.metrics(),
        }
    }
}
