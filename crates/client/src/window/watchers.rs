//! Watchers of a window: those who wait for a larger lease of it, or for units that come back, and have no place in its queue, as they
//! wait for other things too.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::waiting::Watchers;

/// The watchers of one window.
#[derive(Debug, Default)]
pub(super) struct WindowWatchers(Mutex<Watchers>);

/// A place among them, until this is dropped or the watcher is called. Whoever is called and does not hear it leaves that to the next.
#[derive(Debug)]
pub(crate) struct WindowWatch<'a> {
    of: &'a WindowWatchers,
    watcher: u64,
    has_heard: bool,
}

// === impl WindowWatchers ===

impl WindowWatchers {
    pub(super) fn watch(&self) -> WindowWatch<'_> {
        WindowWatch { of: self, watcher: self.lock().join(), has_heard: false }
    }

    /// Calls the first of them, `most` at the most: there is something for so many.
    pub(super) fn call(&self, most: u32) {
        let called = self.lock().call(usize::try_from(most).unwrap_or(usize::MAX));
        called.into_values().for_each(Waker::wake);
    }

    /// No code of others runs under this lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, Watchers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl WindowWatch ===

impl WindowWatch<'_> {
    /// Ends once the watcher was called.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut watchers = self.of.lock();
        if watchers.has(self.watcher) {
            watchers.park(self.watcher, cx.waker());
            return Poll::Pending;
        }
        self.has_heard = true;
        Poll::Ready(())
    }
}

impl Drop for WindowWatch<'_> {
    fn drop(&mut self) {
        let was_called = !self.of.lock().leave(self.watcher);
        if was_called && !self.has_heard {
            self.of.call(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_called(watch: &mut WindowWatch<'_>) -> bool {
        watch.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_first_who_watch_are_called_and_who_does_not_any_more_is_forgotten() {
        let watchers = WindowWatchers::default();
        let (mut one, gone, mut other) = (watchers.watch(), watchers.watch(), watchers.watch());
        drop(gone);
        watchers.call(0);
        assert!(!is_called(&mut one));
        watchers.call(1);
        let mut late = watchers.watch();
        assert!(is_called(&mut one) && !is_called(&mut other));
        drop(one);
        assert!(!is_called(&mut other), "the first has heard it");
        watchers.call(u32::MAX);
        assert!(is_called(&mut other) && is_called(&mut late));
        watchers.call(1);
        assert!(!is_called(&mut watchers.watch()), "it came after that");
    }

    #[test]
    fn who_is_called_and_gives_up_leaves_it_to_the_next() {
        let watchers = WindowWatchers::default();
        let (gone, mut next, mut last) = (watchers.watch(), watchers.watch(), watchers.watch());
        watchers.call(1);
        drop(gone);
        assert!(is_called(&mut next) && !is_called(&mut last));
    }
}
