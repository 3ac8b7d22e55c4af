//! A lease of Doorman's: so much, until then, and when to ask again.

/// The lease that a holder was given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct DoormanLease {
    /// In units of capacity.
    pub(super) capacity: f64,
    /// The second from which on it is worth nothing.
    pub(super) expires_seconds: u64,
    /// After how many seconds to ask again; nothing if there is no time left to.
    pub(super) interval_seconds: Option<u64>,
}

/// The length of a root's lease, fresh and undisturbed, in seconds.
pub(super) const LENGTH_SECONDS: u64 = 60;
/// Until a holder that was given no interval, or found nobody to ask, tries again, in seconds.
pub(super) const RETRY_SECONDS: u64 = 5;
/// The interval that a root tells those that it grants to, in seconds. Every level below tells half of what the
/// one above it does.
const INTERVAL_SECONDS: u64 = 8;
/// After how many seconds a root renews the lease that it gives itself.
const ROOT_INTERVAL_SECONDS: u64 = 2 * INTERVAL_SECONDS;

// === impl DoormanLease ===

impl DoormanLease {
    /// A lease granted at `now` by a server of this level, whose own lease ends at `own_end` if it has one.
    pub(super) fn grant(now: u64, capacity: f64, level: usize, own_end: Option<u64>) -> DoormanLease {
        let expires_seconds = (now + LENGTH_SECONDS).min(own_end.unwrap_or(u64::MAX));
        let interval = INTERVAL_SECONDS >> level;
        let left = expires_seconds.saturating_sub(now);
        // Somebody who asked only when the lease has ended would be without one for a while.
        let interval = if interval >= left { left.saturating_sub(1) } else { interval };
        DoormanLease { capacity, expires_seconds, interval_seconds: (interval > 0).then_some(interval) }
    }

    /// The lease that a root gives itself at `now`.
    pub(super) fn of_root(now: u64, capacity: f64) -> DoormanLease {
        let interval_seconds = Some(ROOT_INTERVAL_SECONDS);
        DoormanLease { capacity, expires_seconds: now + LENGTH_SECONDS, interval_seconds }
    }

    /// The capacity that it gives at `now`.
    pub(super) fn worth(&self, now: u64) -> f64 {
        if now < self.expires_seconds { self.capacity } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_halve_with_every_level() {
        for (level, interval) in [(0, 8), (1, 4), (2, 2)] {
            let lease = DoormanLease::grant(100, 5.0, level, Some(159));
            assert_eq!((lease.expires_seconds, lease.interval_seconds), (159, Some(interval)));
        }
        assert_eq!(DoormanLease::grant(100, 5.0, 0, None).expires_seconds, 160);
    }

    #[test]
    fn an_interval_that_would_miss_the_end_is_cut() {
        assert_eq!(DoormanLease::grant(100, 5.0, 0, Some(109)).interval_seconds, Some(8));
        assert_eq!(DoormanLease::grant(100, 5.0, 0, Some(108)).interval_seconds, Some(7));
        assert_eq!(DoormanLease::grant(100, 5.0, 0, Some(102)).interval_seconds, Some(1));
        assert_eq!(DoormanLease::grant(100, 5.0, 0, Some(101)).interval_seconds, None);
        assert_eq!(DoormanLease::grant(100, 5.0, 0, Some(90)).interval_seconds, None);
    }
}
