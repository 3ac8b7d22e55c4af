//! The limit of a resource: how much of it may be in use, also of what there was before.

use std::time::Duration;

use lessor_proto::Time;

/// The amount of a resource that may be in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Limit {
    /// The amount at the beginning.
    pub(super) first: u64,
    pub(super) now: u64,
    /// The amounts that there were before, each with the time until which it may still be in use.
    pub(super) past: Vec<(u64, Time)>,
}

/// No simulation is without an event for so long.
pub(super) const LINGERS: Duration = Duration::from_secs(5);

// === impl Limit ===

impl Limit {
    /// Notes that the amounts from before a cut are still in use.
    pub(super) fn linger(&mut self, now: Time) {
        let later = now + LINGERS;
        self.past.iter_mut().for_each(|(_, until)| *until = later.max(*until));
    }

    /// The most that may be in use at `now`.
    pub(super) fn at(&mut self, now: Time) -> u64 {
        self.past.retain(|(_, until)| *until > now);
        self.past.iter().map(|(capacity, _)| *capacity).max().unwrap_or(0).max(self.now)
    }

    /// There is so much from here on. What was there before may be in use until `patience`; after a succession, what was
    /// still being taken back may be until then as well.
    pub(super) fn set(&mut self, capacity: u64, patience: Time, succession: bool) {
        if succession {
            self.past.iter_mut().for_each(|(_, until)| *until = patience);
        }
        if capacity != self.now {
            self.past.push((self.now, patience));
            self.now = capacity;
        }
    }
}
