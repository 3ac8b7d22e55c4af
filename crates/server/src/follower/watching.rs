//! The watch of a follower, and when the head is read again in any case.

use std::time::Duration;

use lessor_proto::Time;

use crate::election::pace::Pace;

/// The watch.
#[derive(Clone, Debug)]
pub(super) struct Watching {
    pub(super) watch: Option<u64>,
    /// When the head is to be read.
    pub(super) read_at: Time,
    /// Whether something was seen since the head was asked for.
    pub(super) has_news: bool,
    pace: Pace,
}

/// A watch may die without a word: the head is read so often in any case.
const AGAIN: Duration = Duration::from_secs(60);
/// The longest wait after a watch that has ended.
const LONGEST: Duration = Duration::from_secs(10);

// === impl Watching ===

impl Watching {
    pub(super) fn new(now: Time) -> Watching {
        Watching { watch: None, read_at: now, has_news: false, pace: Pace::default() }
    }

    /// The head has been read, and is watched from there.
    pub(super) fn was_read(&mut self, now: Time, is_read_again: bool) {
        if self.watch.is_some() {
            self.pace.succeeded();
        }
        self.read_at = if is_read_again { now + AGAIN } else { Time::MAX };
    }

    /// The watch has ended: the head is read soon, and never watched from before that, as it may have been moved meanwhile.
    pub(super) fn ended(&mut self, now: Time, nonce: u64) {
        self.watch = None;
        self.read_at = self.read_at.min(now + self.pace.failed(nonce, LONGEST));
    }
}
