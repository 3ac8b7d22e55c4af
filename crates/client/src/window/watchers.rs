//! Watchers of a window: those who wait for other leases of it, or for units that come back, and have no place in its queue, as they
//! wait for other things too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The watchers of one window.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<Vec<Arc<Watcher>>>);

#[derive(Debug)]
struct Watcher {
    is_called: AtomicBool,
    waker: Mutex<Waker>,
}

/// The place of a watcher, until this is dropped or the watcher is called.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    of: &'a Watchers,
    watcher: Arc<Watcher>,
}

// === impl Watchers ===

impl Watchers {
    pub(super) fn watch(&self) -> Watch<'_> {
        let waker = Mutex::new(Waker::noop().clone());
        let watcher = Arc::new(Watcher { is_called: AtomicBool::new(false), waker });
        self.lock().push(Arc::clone(&watcher));
        Watch { of: self, watcher }
    }

    /// Calls all of them: something has changed. Nobody is woken under the lock.
    pub(super) fn call(&self) {
        let all = std::mem::take(&mut *self.lock());
        for watcher in all {
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
    fn who_watches_is_called_once_and_who_does_not_any_more_is_forgotten() {
        let watchers = Watchers::default();
        let mut cx = Context::from_waker(Waker::noop());
        let (one, gone, other) = (watchers.watch(), watchers.watch(), watchers.watch());
        drop(gone);
        assert_eq!(watchers.lock().len(), 2);
        assert!(one.poll(&mut cx).is_pending());
        watchers.call();
        assert!(watchers.lock().is_empty());
        let late = watchers.watch();
        assert!(one.poll(&mut cx).is_ready() && other.poll(&mut cx).is_ready());
        assert!(late.poll(&mut cx).is_pending(), "it came after that");
        drop((one, other));
        assert_eq!(watchers.lock().len(), 1);
    }
}
