//! Whether the process can do its work, for those who start it again where it cannot.
//!
//! A task of the runtime leaves a mark once a second, after it has had the lock of the node. Where that grows old, nothing is
//! served, whoever is to blame: so it has to be told by a thread that does not wait for the runtime.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Time;

use super::Driver;

/// The reason why a process is to be started again.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAlive {
    /// The books cannot be trusted any more.
    #[error("the node has failed one of its own checks and answers nothing until it is started again")]
    Broken,
    /// Nothing is done any more.
    #[error("the runtime has not turned for {} s", .0.as_secs())]
    Stalled(Duration),
}

/// The marks that the runtime leaves.
#[derive(Debug)]
pub(super) struct Pulse {
    /// When it left the last one, in nanoseconds.
    at: AtomicU64,
    /// The age of the last mark at which nothing is taken to be done any more.
    longest: Duration,
}

/// The longest pause of the runtime that is no stall.
pub(in crate::shell) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

// === impl NotAlive ===

impl NotAlive {
    /// One word for it.
    pub(in crate::shell) fn reason(&self) -> &'static str {
        match self {
            NotAlive::Broken => "broken",
            NotAlive::Stalled(_) => "stalled",
        }
    }
}

// === impl Pulse ===

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse { at: AtomicU64::new(clock::now().as_nanos()), longest: LONGEST_PAUSE }
    }
}

impl Pulse {
    pub(super) fn beat(&self) {
        self.at.store(clock::now().as_nanos(), Ordering::Relaxed);
    }

    fn age(&self, now: Time) -> Duration {
        now.since(Time::from_nanos(self.at.load(Ordering::Relaxed)))
    }
}

// === impl Driver ===

impl Driver {
    /// Whether the process can do its work. Neither the lock of the node nor the runtime is waited for.
    ///
    /// # Errors
    /// With the reason why it has to be started again.
    pub fn liveness(&self) -> Result<(), NotAlive> {
        if self.is_broken() {
            return Err(NotAlive::Broken);
        }
        let age = self.pulse_age();
        // Nobody leaves marks in a drain, which ends by itself.
        match age > self.health.pulse.longest && !self.health.is_draining() {
            true => Err(NotAlive::Stalled(age)),
            false => Ok(()),
        }
    }

    /// The time since the runtime last did something.
    pub(in crate::shell) fn pulse_age(&self) -> Duration {
        self.health.pulse.age(clock::now())
    }

    /// Takes the runtime to be stalled after so long a pause.
    pub(in crate::shell) fn set_longest_pause(&mut self, longest: Duration) {
        self.health.pulse.longest = longest;
    }
}
