//! The health of a task, for monitors and for those who send it requests: told without the lock of the node.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::liveness::Pulse;
use super::readiness::Reach;

/// The health of a task.
pub(super) struct Health {
    is_etcd_healthy: AtomicBool,
    /// The fault of the state directory, if it has one; absent: there is no directory.
    state: Mutex<Option<Option<String>>>,
    draining: AtomicBool,
    pub(super) reach: Reach,
    pub(super) pulse: Pulse,
    broken: watch::Sender<bool>,
}

/// The notice that the node is broken, when it is dropped in a panic.
pub(super) struct BrokenNotice<'a>(&'a watch::Sender<bool>);

// === impl BrokenNotice ===

impl Drop for BrokenNotice<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send_replace(true);
        }
    }
}

// === impl Health ===

impl Health {
    /// Of a task whose node has a parent, or has none.
    pub(super) fn new(has_parent: bool) -> Health {
        Health {
            is_etcd_healthy: AtomicBool::new(true),
            state: Mutex::new(None),
            draining: AtomicBool::new(false),
            reach: Reach::new(has_parent),
            pulse: Pulse::default(),
            broken: watch::Sender::new(false),
        }
    }

    /// It takes no more requests from here on.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Whether etcd does what is asked of it.
    pub(super) fn note_etcd(&self, is_healthy: bool) {
        self.is_etcd_healthy.store(is_healthy, Ordering::Relaxed);
    }

    pub(super) fn is_etcd_healthy(&self) -> bool {
        self.is_etcd_healthy.load(Ordering::Relaxed)
    }

    /// Notes the fault of the state directory, if it has one. Returns whether that is news.
    pub(super) fn note_state(&self, fault: Option<&str>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.replace(fault.map(str::to_owned)).flatten();
        before.is_some() != fault.is_some()
    }

    /// The fault of the state directory, if it has one; absent: there is no directory.
    pub(super) fn state_fault(&self) -> Option<Option<String>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The notice for one call, which says that the node is broken if the call panics.
    pub(super) fn broken_notice(&self) -> BrokenNotice<'_> {
        BrokenNotice(&self.broken)
    }

    /// Waits until the node has failed one of its own checks.
    pub(super) async fn until_broken(&self) {
        // It never errs: the sender is ours.
        let _ = self.broken.subscribe().wait_for(|&is_broken| is_broken).await;
    }
}
