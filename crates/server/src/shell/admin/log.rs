//! The filter of the log, changed for a time: it goes back by itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Time;
use tokio::task::JoinHandle;
use tracing::{error, info};

use super::Levers;

/// The filter of the log, and what it goes back to.
pub(super) struct LogOverride {
    levers: Arc<dyn Levers>,
    changed: Arc<Mutex<Option<ChangedFilter>>>,
}

/// A filter that is in force for a time.
struct ChangedFilter {
    /// The filter of before, which comes back.
    former: String,
    until: Time,
    /// The wait for that.
    wait: JoinHandle<()>,
}

/// The filter as it is.
pub(super) struct LogStatus {
    pub(super) filter: String,
    /// The filter that comes back, and in how long.
    pub(super) former: Option<(String, Duration)>,
}

// === impl LogOverride ===

impl LogOverride {
    pub(super) fn new(levers: Arc<dyn Levers>) -> LogOverride {
        LogOverride { levers, changed: Arc::default() }
    }

    /// The filter as it is.
    pub(super) fn status(&self) -> LogStatus {
        let changed = lock(&self.changed);
        let now = clock::now();
        let former = changed.as_ref().map(|changed| (changed.former.clone(), changed.until.since(now)));
        LogStatus { filter: self.levers.log_filter(), former }
    }

    /// Puts a filter in force for `time`, in the place of one that is for a time as well.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn change(&self, filter: &str, time: Duration) -> Result<(), String> {
        let mut changed = lock(&self.changed);
        let before = self.levers.log_filter();
        self.levers.set_log_filter(filter)?;
        let earlier = changed.take();
        let former = match earlier {
            Some(earlier) => {
                earlier.wait.abort();
                earlier.former
            }
            None => before,
        };
        let until = clock::now() + time;
        info!(filter, ?time, former, "another log filter, as an operator wants it");
        let (levers, mine) = (Arc::clone(&self.levers), Arc::clone(&self.changed));
        let wait = tokio::spawn(async move {
            clock::sleep_until(until).await;
            let mut changed = lock(&mine);
            // Another may have come in the place of this one meanwhile.
            if let Some(over) = changed.take_if(|changed| changed.until == until) {
                go_back(&*levers, &over.former);
            }
        });
        *changed = Some(ChangedFilter { former, until, wait });
        Ok(())
    }

    /// Goes back to the filter of before. Returns whether there was another.
    pub(super) fn reset(&self) -> bool {
        let Some(changed) = lock(&self.changed).take() else { return false };
        changed.wait.abort();
        go_back(&*self.levers, &changed.former);
        true
    }
}

fn go_back(levers: &dyn Levers, former: &str) {
    match levers.set_log_filter(former) {
        Ok(()) => info!(filter = former, "the log filter of before is back"),
        Err(fault) => error!(filter = former, fault, "the log filter of before cannot be put in force"),
    }
}

/// Locks the state, also after a panic: every change of it is one step.
fn lock(changed: &Mutex<Option<ChangedFilter>>) -> MutexGuard<'_, Option<ChangedFilter>> {
    changed.lock().unwrap_or_else(PoisonError::into_inner)
}
