//! The commands of handles to the driver.

use std::sync::{Arc, Mutex};

use lessor_proto::{Amount, ResourceId, Time};
use tokio::sync::{oneshot, watch};

use super::enforce::Enforce;
use super::jobs::JobCell;
use super::lease_state::LeaseState;
use crate::allowance::Allowance;
use crate::demand::Estimator;
use crate::domain::{Domains, Policies};
use crate::holding::HoldingConfig;
use crate::shortness::Shortness;
use crate::window::WindowKeys;

/// A command from a handle to the driver.
#[derive(Debug)]
pub(super) enum Command {
    Open(Box<OpenResource>),
    /// The last handle of an opening is gone.
    Close {
        resource: ResourceId,
        generation: u64,
    },
    /// There is something to tell of domains.
    Tell,
    /// A limiter has units to ask for.
    Units {
        resource: ResourceId,
        generation: u64,
    },
    /// This amount is wanted from here on; without a number, what is used.
    Want {
        resource: ResourceId,
        generation: u64,
        wants: Option<Amount>,
    },
    /// Something was refused, or soon will be.
    Knock {
        resource: ResourceId,
        generation: u64,
    },
    /// A job was done, of which the grantor wants to hear.
    JobDone {
        resource: ResourceId,
        generation: u64,
    },
    /// Somebody has waited since then for a job that is done elsewhere.
    AwaitJob {
        resource: ResourceId,
        generation: u64,
        since: Time,
    },
    /// Domains are to have leases, or are not to have them any more.
    Subleases {
        resource: ResourceId,
        generation: u64,
    },
    /// Keys of windows are leased as they are asked for.
    OpenWindows(Arc<WindowKeys>),
    /// Keys should be looked at.
    Windows,
    Shutdown {
        done: oneshot::Sender<()>,
    },
}

/// One opening of a resource.
pub(super) struct OpenResource {
    pub(super) resource: ResourceId,
    pub(super) generation: u64,
    pub(super) config: HoldingConfig,
    pub(super) enforcer: Arc<dyn Enforce>,
    pub(super) demand: Estimator,
    pub(super) domains: Arc<Domains>,
    pub(super) view: watch::Sender<LeaseState>,
    pub(super) shortness: Arc<Mutex<Shortness>>,
    /// Of a gauge.
    pub(super) jobs: Option<Arc<JobCell>>,
}

// === impl OpenResource ===

impl OpenResource {
    /// The allowance that counts from here on. There is none before it is known what each domain may have of it.
    pub(super) fn allow(&self, now: Time, policies: Option<Arc<Policies>>, allowance: Allowance) {
        self.domains.follow(policies);
        self.domains.set_unenforced(allowance.unenforced);
        self.enforcer.allow(now, allowance);
    }
}

impl std::fmt::Debug for OpenResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open")
            .field("resource", &self.resource)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
