//! Figures of a door for PoolCounter, as its `STATS` say them.

use std::fmt::Write as _;
use std::time::Duration;

/// The counts and times since the start.
#[derive(Clone, Default, Debug)]
pub struct PoolCounts {
    /// The time that locks were held.
    pub processing: Duration,
    /// The time for which those who were told `DONE` would have held a lock.
    pub gained: Duration,
    /// The waits that ended in a lock, for oneself or for anybody.
    pub waiting: Duration,
    /// Those of callers who waited for themselves.
    pub waiting_for_me: Duration,
    /// Those of callers who waited for anybody.
    pub waiting_for_anyone: Duration,
    /// The waits that ended in `DONE`.
    pub waiting_for_good: Duration,
    /// The waits that ended in `TIMEOUT`.
    pub wasted: Duration,
    /// The locks that were given.
    pub acquired: u64,
    /// The releases.
    pub releases: u64,
    /// The keys for which somebody works or waits.
    pub keys: u64,
    /// The locks that are held.
    pub working: u64,
    /// The callers who wait.
    pub waiters: u64,
    /// The answers that could not be sent.
    pub failed_sends: u64,
    /// The requests that found a full queue.
    pub full_queues: u64,
    /// The requests of connections with as many locks as they may have.
    pub lock_mismatch: u64,
    /// The requests of callers who waited already.
    pub lock_while_waiting: u64,
    /// The releases of nothing.
    pub release_mismatch: u64,
    /// The locks that are over.
    pub processed: u64,
    /// The locks that were given although nothing was leased.
    pub opened: u64,
    /// The waits that ended in `DONE` as a job was done at another door.
    pub done_elsewhere: u64,
}

// === impl PoolCounts ===

impl PoolCounts {
    /// The text for figures of that name, at that time since the start; nothing if there is no such figure.
    pub(super) fn text(&self, name: &[u8], up: Duration) -> Option<String> {
        if name.eq_ignore_ascii_case(b"FULL") {
            return Some(self.full(up));
        }
        if name.eq_ignore_ascii_case(b"UPTIME") {
            return Some(uptime(up));
        }
        let (name, count) =
            self.named().into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))?;
        Some(format!("{name}: {count}\n"))
    }

    fn full(&self, up: Duration) -> String {
        let average = self.processing.as_secs_f64() / self.processed.max(1) as f64;
        let times = [
            ("total processing time", self.processing),
            ("average processing time", Duration::from_secs_f64(average)),
            ("gained time", self.gained),
            ("waiting time", self.waiting),
            ("waiting time for me", self.waiting_for_me),
            ("waiting time for anyone", self.waiting_for_anyone),
            ("waiting time for good", self.waiting_for_good),
            ("wasted timeout time", self.wasted),
        ];
        let mut text = uptime(up);
        // Writing to a string does not fail.
        for (name, time) in times {
            let _ = writeln!(text, "{name}: {}", in_units(time));
        }
        for (name, count) in self.named() {
            let _ = writeln!(text, "{name}: {count}");
        }
        text.push('\n');
        text
    }

    fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("total_acquired", self.acquired),
            ("total_releases", self.releases),
            ("hashtable_entries", self.keys),
            ("processing_workers", self.working),
            ("waiting_workers", self.waiters),
            // A connection that fails before it has a place here is the kernel's.
            ("connect_errors", 0),
            ("failed_sends", self.failed_sends),
            ("full_queues", self.full_queues),
            ("lock_mismatch", self.lock_mismatch),
            ("lock_while_waiting", self.lock_while_waiting),
            ("release_mismatch", self.release_mismatch),
            ("processed_count", self.processed),
        ]
    }
}

fn uptime(up: Duration) -> String {
    let seconds = up.as_secs();
    let [days, hours, minutes] = [seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60];
    format!("uptime: {days} days, {hours}h {minutes}m {}s\n", seconds % 60)
}

/// A time with only those units that it reaches.
fn in_units(time: Duration) -> String {
    let whole = time.as_secs();
    let mut text = String::new();
    // Writing to a string does not fail.
    if whole >= 86_400 {
        let _ = write!(text, "{} days ", whole / 86_400);
    }
    if whole >= 3_600 {
        let _ = write!(text, "{}h ", whole / 3_600 % 24);
    }
    if whole >= 60 {
        let _ = write!(text, "{}m ", whole / 60 % 60);
    }
    let _ = write!(text, "{}.{:06}s", whole % 60, time.subsec_micros());
    text
}
