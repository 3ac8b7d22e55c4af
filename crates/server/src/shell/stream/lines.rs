//! The lines: all streams of a server, and the look at them once a second.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::Line;
use crate::shell::driver::Driver;

/// The interval at which streams are looked for that are not asked.
pub(super) const ATTENDED: Duration = Duration::from_secs(1);
/// Streams that are looked at before other tasks have the processor.
const SLICE: usize = 256;
/// Messages, or parts of a long one, that are heard at a look of somebody whose connection does not ask.
const HEARD: usize = 512;

/// All streams of a server.
#[derive(Debug, Default)]
pub(in crate::shell) struct Lines(Mutex<Vec<Weak<Line>>>);

// === impl Lines ===

impl Lines {
    pub(super) fn add(&self, line: &Arc<Line>) {
        self.lines().push(Arc::downgrade(line));
    }

    /// Hears those who do not read, and lets those go on who wait for this task to act again, until stopped. Whoever reads nothing
    /// for as long as `patience` is given up.
    pub(in crate::shell) async fn attend(
        self: Arc<Lines>,
        driver: Arc<Driver>,
        patience: Duration,
        mut stopped: watch::Receiver<bool>,
    ) {
        let most = u32::try_from(patience.as_secs() / ATTENDED.as_secs()).unwrap_or(u32::MAX);
        let mut changes = driver.authority_changes();
        let mut timer = tokio::time::interval(ATTENDED);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stopped.wait_for(|&stop| stop).map(drop) => return,
                _ = timer.tick() => self.look(&driver, most).await,
                () = changes.next() => self.rouse().await,
            }
        }
    }

    /// Looks at each once.
    async fn look(&self, driver: &Driver, most: u32) {
        let mut lines = std::mem::take(&mut *self.lines());
        let mut stalled = 0;
        for slice in lines.chunks(SLICE) {
            let mut unasked = Vec::new();
            for line in slice.iter().filter_map(Weak::upgrade) {
                let look = line.look(driver, most);
                stalled += u64::from(look.is_stalled);
                if look.is_time {
                    unasked.push(line);
                }
            }
            tokio::task::yield_now().await;
            hear_in_turn(driver, unasked).await;
        }
        driver.traffic().streams_stalled.store(stalled, Ordering::Relaxed);
        lines.retain(|line| line.strong_count() > 0);
        self.lines().append(&mut lines);
    }

    /// Lets those go on who wait for this task to act again.
    async fn rouse(&self) {
        let mut lines = std::mem::take(&mut *self.lines());
        for slice in lines.chunks(SLICE) {
            slice.iter().filter_map(Weak::upgrade).for_each(|line| line.rouse());
            tokio::task::yield_now().await;
        }
        self.lines().append(&mut lines);
    }

    /// Locks the list, also after a panic: a stream is in it or not.
    fn lines(&self) -> MutexGuard<'_, Vec<Weak<Line>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears what has come of those whose connections do not ask: each once in a round, and other tasks have the processor after each.
/// Whatever is left of what somebody says without a pause is heard at later looks.
async fn hear_in_turn(driver: &Driver, mut unasked: Vec<Arc<Line>>) {
    for _ in 0..HEARD {
        let mut left = Vec::new();
        for line in unasked {
            if line.hear_unasked(driver) {
                left.push(line);
                tokio::task::yield_now().await;
            }
        }
        if left.is_empty() {
            return;
        }
        unasked = left;
    }
}
