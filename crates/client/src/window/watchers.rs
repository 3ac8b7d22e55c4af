//! Watchers of a window: those who wait for a larger lease of it, or for units that come back, and have no place in its queue, as they
//! wait for other things too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The watchers of one window.
#[derive(Debug, Default)]
pub(super) struct WindowWatchers(Mutex<Vec<Arc<Watcher>>>);

#[derive(Debug)]
struct Watcher {
    is_called: AtomicBool,
    waker: Mutex<Waker>,
}

/// The place of a watcher, until this is dropped or the watcher is called.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    of: &'a WindowWatchers,
    watcher: Arc<Watcher>,
}

// === impl WindowWatchers ===

impl WindowWatchers {
    pub(super) fn watch(&self) -> Watch<'_> {
        let waker = Mutex::new(Waker::noop().clone());
        let watcher = Arc::new(Watcher { is_called: AtomicBool::new(false), waker });
        self.lock().push(Arc::clone(&watcher));
        Watch { of: self, watcher }
    }

    /// Calls the first of them, `most` at the most: there is something for so many. Nobody is woken under the lock.
    pub(super) fn call(&self, most: u32) {
        if most == 0 {
            return;
        }
        let mut all = self.lock();
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(all.len());
        let called: Vec<_> = all.drain(..most).collect();
        drop(all);
        for watcher in called {
            watcher.is_called.store(true, Ordering::Release);
            watcher.waker().wake_by_ref();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Watcher>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Watcher ===

impl Watcher {
    fn waker(&self) -> MutexGuard<'_, Waker> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Watch ===

impl Watch<'_> {
    /// Ends once the watcher was called.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Whoever calls it meanwhile finds the waker, or is seen here.
        self.watcher.waker().clone_from(cx.waker());
        if self.watcher.is_called.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.watcher.is_called.load(Ordering::Acquire) {
            self.of.lock().retain(|other| !Arc::ptr_eq(other, &self.watcher));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_watch_are_called_once_and_who_does_not_any_more_is_forgotten() {
        let watchers = WindowWatchers::default();
        let mut cx = Context::from_waker(Waker::noop());
        let (one, gone, other) = (watchers.watch(), watchers.watch(), watchers.watch());
        drop(gone);
        assert_eq!(watchers.lock().len(), 2);
        watchers.call(0);
        assert!(one.poll(&mut cx).is_pending());
        watchers.call(1);
        let late = watchers.watch();
        assert!(one.poll(&mut cx).is_ready() && other.poll(&mut cx).is_pending());
        drop(one);
        watchers.call(u32::MAX);
        assert!(other.poll(&mut cx).is_ready() && late.poll(&mut cx).is_ready());
        assert!(watchers.lock().is_empty());
    }
}
