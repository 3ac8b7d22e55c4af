//! Clock and lock around the node: each call reads the clock once, takes the lock once, and calls the mind once.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lessor_client::shell::clock;
use lessor_proto::message::{Answer, Ask, Leader, Limits, Refusal, Release, Whereabouts};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::node::{Node, NodeConfig, NodeStatus, StatusQuery};
use crate::repository::Repository;

/// A node with a clock.
pub struct Driver {
    node: Mutex<Node>,
    /// What never changes is kept outside the lock.
    limits: Limits,
    whereabouts: Whereabouts,
    draining: AtomicBool,
    failed_reloads: AtomicU64,
}

/// Why a request was not answered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unanswered {
    /// The request is at fault.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An earlier request broke something that must hold, and the books cannot be trusted any more.
    #[error("the node has failed one of its own checks and answers nothing until it is started again")]
    Broken,
}

/// How often memory is given back. What has ended stops counting when it is asked for, whether or not this has run.
const CLEAN_UP: Duration = Duration::from_secs(1);

// === impl Driver ===

impl Driver {
    /// Starts the reign of a node that tells clients it is at `advertise`.
    #[must_use]
    pub fn new(config: NodeConfig, repository: Repository, advertise: String) -> Driver {
        let whereabouts = Whereabouts {
            leader: Leader::at(advertise),
            is_leader: true,
            epoch: Some(config.epoch),
            node: Some(config.name.clone()),
        };
        let limits = config.message.clone();
        Driver {
            node: Mutex::new(Node::new(clock::now(), config, repository)),
            limits,
            whereabouts,
            draining: AtomicBool::new(false),
            failed_reloads: AtomicU64::new(0),
        }
    }

    /// How much one request may hold.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Who leads.
    #[must_use]
    pub fn whereabouts(&self) -> &Whereabouts {
        &self.whereabouts
    }

    /// Takes the reports of one holder and answers them.
    ///
    /// # Errors
    /// When the request is refused, or the node is broken.
    pub fn ask(&self, ask: &Ask) -> Result<Answer, Unanswered> {
        let answer = self.node()?.ask(clock::now(), ask);
        match &answer {
            Ok(answer) => debug!(holder = %ask.holder, grants = answer.grants.len(), "answered"),
            Err(refusal) => debug!(holder = %ask.holder, %refusal, "refused"),
        }
        Ok(answer?)
    }

    /// Frees what a holder gives back.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn release(&self, release: &Release) -> Result<(), Unanswered> {
        debug!(holder = %release.holder, resources = release.resources.len(), "released");
        self.node()?.release(clock::now(), release);
        Ok(())
    }

    /// Puts another repository in force.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn reload(&self, repository: Repository) -> Result<(), Unanswered> {
        info!(templates = repository.templates().len(), "repository in force");
        self.node()?.reload(clock::now(), repository);
        Ok(())
    }

    /// Counts a repository that could not be put in force; the old one stays.
    pub fn reload_failed(&self) {
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// How many repositories could not be put in force.
    #[must_use]
    pub fn failed_reloads(&self) -> u64 {
        self.failed_reloads.load(Ordering::Relaxed)
    }

    /// Who has what.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn status(&self, query: &StatusQuery) -> Result<NodeStatus, Unanswered> {
        Ok(self.node()?.status(clock::now(), query))
    }

    /// Whether it takes requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::Relaxed) && !self.node.is_poisoned()
    }

    /// From here on it is not ready, though it answers what still comes.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Gives back the memory of what has ended, once a second until stopped.
    pub(crate) async fn clean_up(self: Arc<Driver>, mut stopped: watch::Receiver<bool>) {
        let mut timer = tokio::time::interval(CLEAN_UP);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return,
                _ = timer.tick() => {}
            }
            let Ok(mut node) = self.node() else {
                warn!("clean-up ends: the node is broken");
                return;
            };
            node.advance(clock::now());
        }
    }

    fn node(&self) -> Result<MutexGuard<'_, Node>, Unanswered> {
        self.node.lock().map_err(|_| Unanswered::Broken)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("whereabouts", &self.whereabouts).finish_non_exhaustive()
    }
}
