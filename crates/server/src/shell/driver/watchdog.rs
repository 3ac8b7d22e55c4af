//! The watchdog of the lock: a hold that others had to wait for too long is said, with what it was for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_proto::Time;
use tracing::warn;

use super::hold_kind::HoldKind;
use crate::shell::measure::Label;

/// The longest hold of the lock of which nothing is said.
const LONGEST_HOLD: Duration = Duration::from_millis(50);
/// The least time between two lines.
const PAUSE: Duration = Duration::from_secs(1);

/// The watchdog.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// From when on it may say something again, in nanoseconds.
    quiet_until: AtomicU64,
    /// Holds of which nothing was said for that.
    left_out: AtomicU64,
}

// === impl Watchdog ===

impl Watchdog {
    /// The lock was held until `now` for `took`. It is not held any more.
    pub(super) fn look(&self, now: Time, kind: HoldKind, took: Duration) {
        if took > LONGEST_HOLD
            && let Some(left_out) = self.bark(now)
        {
            let kind = HoldKind::VALUES[kind.place()];
            warn!(kind, held_ms = took.as_millis(), left_out, "the lock of the node was held for too long");
        }
    }

    /// Whether to say something at `now`: then the number of times that nothing was said since it last was.
    fn bark(&self, now: Time) -> Option<u64> {
        let (at, until) = (now.as_nanos(), self.quiet_until.load(Ordering::Relaxed));
        let next = (now + PAUSE).as_nanos();
        // Of several at once one speaks.
        let may = at >= until
            && self.quiet_until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !may {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use lessor_client::internals::clock;
    use lessor_proto::Epoch;

    use super::super::Driver;
    use super::*;
    use crate::node::NodeConfig;
    use crate::repository::Repository;

    /// The log, kept in memory.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The lines that are logged while `act` runs.
    fn logged(act: impl FnOnce()) -> Vec<String> {
        let page = Page::default();
        let writer = page.clone();
        let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, act);
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_long_hold_of_the_lock_is_logged_with_its_kind() {
        let config = NodeConfig::new("root", Epoch(1));
        let driver = Driver::new(config, Repository::default(), "here:1".to_owned(), 1);
        let lines = logged(|| {
            let held = driver.hold(HoldKind::Reload, |_, now| {
                while clock::now() <= now + LONGEST_HOLD {
                    std::hint::spin_loop();
                }
            });
            held.unwrap();
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.contains("\"kind\":\"reload\"") && line.contains("held for too long"), "{line}");
    }

    /// Looks at times of its own: how long a thread really has the lock is up to the machine.
    #[test]
    fn a_short_hold_is_not_logged_and_of_long_ones_one_a_second() {
        let (watchdog, begin) = (Watchdog::default(), Time::ZERO + PAUSE);
        let look =
            |now, kind, took| logged(|| watchdog.look(now, kind, took)).pop().unwrap_or_else(String::new);
        let long = LONGEST_HOLD + Duration::from_millis(1);
        assert_eq!(look(begin, HoldKind::Turn, LONGEST_HOLD), "");
        let line = look(begin, HoldKind::Turn, long);
        let wanted = "\"kind\":\"turn\",\"held_ms\":\"51\",\"left_out\":0";
        assert!(line.contains(wanted), "{line}");
        assert_eq!(look(begin + PAUSE / 2, HoldKind::Report, long), "", "one a second");
        assert_eq!(look(begin + PAUSE, HoldKind::Turn, LONGEST_HOLD), "");
        let line = look(begin + PAUSE, HoldKind::Report, long);
        assert!(line.contains("\"kind\":\"report\"") && line.contains("\"left_out\":1"), "{line}");
    }

    #[test]
    fn those_of_which_nothing_was_said_are_counted() {
        let (watchdog, begin) = (Watchdog::default(), Time::ZERO + PAUSE);
        assert_eq!(watchdog.bark(begin), Some(0));
        for later in [1, 500, 999] {
            assert_eq!(watchdog.bark(begin + Duration::from_millis(later)), None);
        }
        assert_eq!(watchdog.bark(begin + PAUSE), Some(3));
        assert_eq!(watchdog.bark(begin + PAUSE * 3), Some(0));
    }
}
