//! The repositories that were put in force, and those that could not be.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use tokio::sync::watch;
use tracing::info;

use super::hold_kind::HoldKind;
use super::{Driver, Unanswered};
use crate::overrides::Overrides;
use crate::repository::Repository;
use crate::shell::etcd::TemplateStatus;

/// The outcomes of reloads, and the place from which they come.
#[derive(Debug)]
pub(super) struct Reloads {
    failed: AtomicU64,
    /// Whether the last one has put something in force.
    has_succeeded: AtomicBool,
    /// When something was put in force last, in milliseconds since 1970.
    succeeded_at: AtomicU64,
    /// The state of the templates at etcd, if they are followed there.
    templates: OnceLock<watch::Receiver<TemplateStatus>>,
}

// === impl Reloads ===

impl Default for Reloads {
    /// With the repository of the start.
    fn default() -> Reloads {
        Reloads {
            failed: AtomicU64::new(0),
            has_succeeded: AtomicBool::new(true),
            succeeded_at: AtomicU64::new(date()),
            templates: OnceLock::new(),
        }
    }
}

/// The date, in milliseconds since 1970.
fn date() -> u64 {
    u64::try_from(clock::wall().since_epoch.as_millis()).unwrap_or(u64::MAX)
}

// === impl Driver ===

impl Driver {
    /// Puts another repository in force: now, and when this task is elected.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn reload(&self, repository: Repository) -> Result<(), Unanswered> {
        info!(templates = repository.templates().len(), "repository in force");
        self.with_state(HoldKind::Reload, |leader_state, now| {
            leader_state.begins_with.repository = repository.clone();
            if let Some(node) = &mut leader_state.node {
                node.reload(now, repository);
            }
            leader_state.warn_of_config();
        })?;
        self.reloads.has_succeeded.store(true, Ordering::Relaxed);
        self.reloads.succeeded_at.store(date(), Ordering::Relaxed);
        Ok(())
    }

    /// Puts these overrides in force, and no others: now, and when this task is elected.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn set_overrides(&self, overrides: Overrides) -> Result<(), Unanswered> {
        self.with_state(HoldKind::Override, |leader_state, now| {
            if let Some(node) = &mut leader_state.node {
                node.set_overrides(now, &overrides);
            }
            leader_state.begins_with.overrides = overrides;
        })
    }

    /// Counts a repository that could not be put in force; the old one stays.
    pub fn reload_failed(&self) {
        self.reloads.failed.fetch_add(1, Ordering::Relaxed);
        self.reloads.has_succeeded.store(false, Ordering::Relaxed);
    }

    /// The number of repositories that could not be put in force.
    #[must_use]
    pub fn failed_reloads(&self) -> u64 {
        self.reloads.failed.load(Ordering::Relaxed)
    }

    /// The templates are followed at etcd, and this says how that goes.
    pub(in crate::shell) fn follow_templates(&self, status: watch::Receiver<TemplateStatus>) {
        // They are followed once.
        let _ = self.reloads.templates.set(status);
    }

    /// The state of the templates at etcd; absent: they are not followed there.
    #[must_use]
    pub fn template_status(&self) -> Option<TemplateStatus> {
        self.reloads.templates.get().map(|status| status.borrow().clone())
    }

    /// Whether the last repository that was to be put in force is, and the date since 1970 of the last that was.
    #[must_use]
    pub fn last_reload(&self) -> (bool, Duration) {
        let at = Duration::from_millis(self.reloads.succeeded_at.load(Ordering::Relaxed));
        (self.reloads.has_succeeded.load(Ordering::Relaxed), at)
    }
}
