//! Whether requests make sense here, for those who send them only where they do.
//!
//! A node that has never met the one above it has nothing to grant, and that is most often an address given wrongly: it is
//! not ready. One that has met it is, whatever becomes of the node above: its clients live on the lease that it has, and
//! would find no more elsewhere.

use std::sync::{Mutex, PoisonError};

use super::Driver;

/// The reason why a server is not ready.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotReady {
    /// It takes no more requests.
    #[error("the server is ending")]
    Ending,
    /// The books cannot be trusted any more.
    #[error("the node has failed one of its own checks and answers nothing until it is started again")]
    Broken,
    /// The node stands above itself, and is served as without a parent.
    #[error("{0}")]
    Loop(String),
    /// No templates have been read yet.
    #[error("no templates have been read from etcd yet")]
    NoTemplates,
    /// No server of the node above has answered since the start; what came of each.
    #[error("no server of the node above has answered yet: {0}")]
    Unreached(String),
}

impl NotReady {
    /// One word for it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            NotReady::Ending => "ending",
            NotReady::Broken => "broken",
            NotReady::Loop(_) => "loop",
            NotReady::NoTemplates => "no-templates",
            NotReady::Unreached(_) => "unreached",
        }
    }

    /// Whether it stays so until the process ends.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, NotReady::Ending | NotReady::Broken)
    }
}

/// The outcome of asking the servers of the node above.
#[derive(Debug)]
pub(super) struct Reach(Mutex<Option<String>>);

// === impl Reach ===

impl Reach {
    /// Of a node that has a parent, or has none.
    pub(super) fn new(has_parent: bool) -> Reach {
        Reach(Mutex::new(has_parent.then(|| "none has been asked".to_owned())))
    }

    fn set(&self, fault: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    fn fault(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

// === impl Driver ===

impl Driver {
    /// Whether requests make sense here. The lock of the node is not taken.
    ///
    /// # Errors
    /// With the reason, where they do not.
    pub fn readiness(&self) -> Result<(), NotReady> {
        if self.health.is_draining() {
            return Err(NotReady::Ending);
        }
        if self.leader_state.is_poisoned() {
            return Err(NotReady::Broken);
        }
        if let Some(why) = &self.known.load().name_loop {
            return Err(NotReady::Loop(why.clone()));
        }
        if self.template_status().is_some_and(|status| status.in_force == 0) {
            return Err(NotReady::NoTemplates);
        }
        self.health.reach.fault().map_or(Ok(()), |faults| Err(NotReady::Unreached(faults)))
    }

    /// Whether a server of the node above has answered since the start; absent: there is none.
    #[must_use]
    pub fn has_reached_parent(&self) -> Option<bool> {
        self.identity.config.parent.as_ref().map(|_| self.health.reach.fault().is_none())
    }

    /// A server of the node above has answered.
    pub(in crate::shell) fn reach_parent(&self) {
        self.health.reach.set(None);
    }

    /// No server of the node above has answered; what came of each.
    pub(in crate::shell) fn miss_parent(&self, faults: String) {
        self.health.reach.set(Some(faults));
    }
}
