//! Waiting for a permit: in order, within bounds, and without trace when the caller loses interest.
//!
//! A `Queue` is a list of places and decides nothing but the order. What is waited for stands behind a `QueueGate`: only the
//! place at its head may be let in. Whoever opens the gate a little (an allowance, a permit that comes back, the place
//! before) wakes the head, and the head asks again itself, on its own task, with the clock of that moment; so an
//! admission is never older than the poll that returns it. Dropping the future leaves the queue and takes nothing.

use std::time::Duration;

#[cfg(feature = "shell")]
pub(crate) use self::boot::Boot;
pub use self::line::Clock;
pub(crate) use self::line::{QueueGate, Step, wait};
pub(crate) use self::queue::{Queue, Ticket};
pub(crate) use self::watchers::Watchers;

#[cfg(feature = "shell")]
mod boot;
#[cfg(test)]
pub(crate) mod fake;
mod line;
mod queue;
mod watchers;

/// The limits on waiting for permits: how long, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The longest wait. A caller that would wait longer is refused: at once where that can be known, else when it
    /// has passed.
    pub max_wait: Duration,
    /// The most waiters. A caller that comes while so many wait is refused at once.
    pub max_waiters: usize,
}

// === impl Waiting ===

impl Waiting {
    /// Five seconds, and 1024 waiters.
    pub const DEFAULT: Waiting = Waiting { max_wait: Duration::from_secs(5), max_waiters: 1024 };
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting::DEFAULT
    }
}
