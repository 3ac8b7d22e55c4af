//! The filter of the log, changed for a time: it goes back by itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Time;
use tokio::task::JoinHandle;
use tracing::{error, info};

use super::audit::safe;
use super::levers::Levers;

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
        info!(
            filter = safe(filter),
            ?time,
            former = safe(&former),
            "another log filter, as an operator wants it"
        );
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
        // It is kept until the filter is back: another change in between would take this one for the filter of before.
        let mut changed = lock(&self.changed);
        let Some(over) = changed.take() else { return false };
        over.wait.abort();
        go_back(&*self.levers, &over.former);
        true
    }
}

fn go_back(levers: &dyn Levers, former: &str) {
    let set = levers.set_log_filter(former);
    let filter = safe(former);
    match set {
        Ok(()) => info!(filter, "the log filter of before is back"),
        Err(fault) => {
            error!(filter, fault = safe(&fault), "the log filter of before cannot be put in force");
        }
    }
}

/// Locks the state, also after a panic: every change of it is one step.
fn lock(changed: &Mutex<Option<ChangedFilter>>) -> MutexGuard<'_, Option<ChangedFilter>> {
    changed.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::OnceLock;

    use super::*;
    use crate::shell::admin::ReadFile;

    /// Levers that note whether a filter is set while nobody else may change it.
    #[derive(Debug, Default)]
    struct Watched {
        filter: Mutex<String>,
        state: OnceLock<std::sync::Weak<Mutex<Option<ChangedFilter>>>>,
        are_alone: Mutex<Vec<bool>>,
    }

    impl Levers for Watched {
        fn reload(&self) -> Pin<Box<dyn Future<Output = Vec<ReadFile>> + Send + '_>> {
            Box::pin(std::future::ready(Vec::new()))
        }

        fn log_filter(&self) -> String {
            self.filter.lock().expect("nobody panics").clone()
        }

        fn set_log_filter(&self, filter: &str) -> Result<(), String> {
            let state = self.state.get().and_then(std::sync::Weak::upgrade).expect("it is known");
            self.are_alone.lock().expect("nobody panics").push(state.try_lock().is_err());
            filter.clone_into(&mut self.filter.lock().expect("nobody panics"));
            Ok(())
        }
    }

    #[tokio::test]
    async fn nobody_changes_the_filter_while_it_goes_back() {
        let levers = Arc::new(Watched::default());
        let log = LogOverride::new(Arc::clone(&levers) as Arc<dyn Levers>);
        levers.state.set(Arc::downgrade(&log.changed)).expect("it is set once");
        log.change("off", Duration::from_secs(60)).expect("it is taken");
        assert!(log.reset() && !log.reset());
        assert_eq!(*levers.are_alone.lock().expect("nobody panics"), [true, true]);
    }
}
