//! Watchers: those who wait for a change and hold no place in a queue, in the order in which they came.

use std::collections::BTreeMap;
use std::task::Waker;

/// The watchers of one thing. Whoever is called is none any more, until it parks again.
#[derive(Default, Debug)]
pub(crate) struct Watchers {
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

// === impl Watchers ===

impl Watchers {
    /// The number of a watcher from here on, of which it is not known yet whom to wake.
    pub(crate) fn join(&mut self) -> u64 {
        self.last += 1;
        self.park(self.last, Waker::noop());
        self.last
    }

    /// Remembers whom to wake for a watcher.
    pub(crate) fn park(&mut self, watcher: u64, waker: &Waker) {
        self.wakers.entry(watcher).or_insert_with(|| waker.clone()).clone_from(waker);
    }

    /// Whether it has not been called.
    pub(crate) fn has(&self, watcher: u64) -> bool {
        self.wakers.contains_key(&watcher)
    }

    /// Forgets a watcher. Returns whether it had not been called.
    pub(crate) fn leave(&mut self, watcher: u64) -> bool {
        self.wakers.remove(&watcher).is_some()
    }

    /// Calls the first of them, `most` at the most. Returns those to be woken, outside of all locks.
    pub(crate) fn call(&mut self, most: usize) -> BTreeMap<u64, Waker> {
        let others = self.wakers.keys().nth(most).copied().map(|first| self.wakers.split_off(&first));
        std::mem::replace(&mut self.wakers, others.unwrap_or_default())
    }
}
