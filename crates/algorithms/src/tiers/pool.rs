//! All that is remembered of one domain: for each tier when it was entered and which hits it counts.
//!
//! The hits of a tier are a *queue* of runs, oldest first, a run being hits of the same time. What it costs to look at a
//! domain is to fetch it from memory, so a history lies together, and takes one of three forms: a few facts within the
//! domain itself, some more in one small allocation, or cells without end that point at each other. It takes the next form
//! when it does not fit, and goes back when it is [shrunk](Pool::shrink).
//!
//! None has more than 65,536 cells: where a queue would need more, hits count as made with the newest ones, and are forgotten
//! a little too early.

mod copy;
mod few;
mod many;
mod tags;

use self::few::Few;
use self::many::Many;

/// The time of what never was.
pub(super) const NEVER: u64 = u64::MAX;

/// The number of facts within a domain: a tier that was entered, and a few times at which there were hits.
const WITHIN: usize = 7;
/// And so many are beside it.
const BESIDE: usize = 16;

/// The history that is remembered of one domain.
#[derive(Clone, Debug)]
pub(super) enum Pool {
    Few(Few<WITHIN, 1>),
    More(Box<Few<BESIDE, 2>>),
    Many(Many),
}

/// Where a reader of a queue stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) count: u32,
    /// Where it lies: among the facts, or the cells.
    place: u16,
    /// Those after it: places of facts as bits, or the next cell. 0 if it is the newest.
    later: u16,
}

/// Asks whichever form it has.
macro_rules! ask {
    ($pool:expr, $form:ident => $answer:expr) => {
        match $pool {
            Pool::Few($form) => $answer,
            Pool::More($form) => $answer,
            Pool::Many($form) => $answer,
        }
    };
}

/// Changes it, in a longer form if it does not fit into this one.
macro_rules! change {
    ($pool:expr, $form:ident => $change:expr) => {
        loop {
            let is_done = match $pool {
                Pool::Few($form) => $change.is_ok(),
                Pool::More($form) => $change.is_ok(),
                Pool::Many($form) => {
                    $change;
                    true
                }
            };
            if is_done {
                break;
            }
            $pool.lengthen();
        }
    };
}

// === impl Pool ===

impl Pool {
    /// Nothing is known, and nothing is allocated.
    pub(super) const fn new() -> Pool {
        Pool::Few(Few::new())
    }

    /// Whether nothing is known, not even a time.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Pool::Few(few) if !few.is_open())
    }

    /// Takes up so many queues if there are none. They are empty, and of the time [`NEVER`].
    pub(super) fn open(&mut self, queues: usize) {
        if self.is_empty() {
            *self = Few::open(queues).map_or_else(|_| Pool::Many(Many::with_room(queues, 2)), Pool::Few);
        }
    }

    /// The time of the domain: 0 until it is set.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        ask!(self, form => form.last())
    }

    /// The queues must be open.
    #[inline]
    pub(super) fn set_last(&mut self, at: u64) {
        ask!(self, form => form.set_last(at));
    }

    /// Hits that were made and are in no queue.
    #[inline]
    pub(super) fn debt(&self) -> u32 {
        ask!(self, form => form.debt())
    }

    /// The queues must be open.
    pub(super) fn set_debt(&mut self, hits: u32) {
        change!(self, form => form.set_debt(hits));
    }

    /// The time that the owner of a queue has set.
    #[inline]
    pub(super) fn time(&self, queue: usize) -> u64 {
        ask!(self, form => form.time(queue))
    }

    pub(super) fn set_time(&mut self, queue: usize, at: u64) {
        change!(self, form => form.set_time(queue, at));
    }

    /// The hits of all runs of a queue.
    pub(super) fn total(&self, queue: usize) -> u32 {
        self.hits_from(queue, 0)
    }

    /// The hits of the runs of a queue that are not before `first`.
    #[inline]
    pub(super) fn hits_from(&self, queue: usize, first: u64) -> u32 {
        ask!(self, form => form.hits_from(queue, first))
    }

    #[inline]
    pub(super) fn oldest(&self, queue: usize) -> Option<Run> {
        ask!(self, form => form.oldest(queue))
    }

    #[inline]
    pub(super) fn newest(&self, queue: usize) -> Option<Run> {
        ask!(self, form => form.newest(queue))
    }

    /// The run that comes after `run` in its queue.
    #[inline]
    pub(super) fn after(&self, run: Run) -> Option<Run> {
        ask!(self, form => form.after(run))
    }

    /// The runs of a queue, oldest first.
    pub(super) fn runs(&self, queue: usize) -> impl Iterator<Item = Run> {
        std::iter::successors(self.oldest(queue), |&run| self.after(run))
    }

    /// Adds hits to a queue, none of whose runs may be later.
    pub(super) fn push(&mut self, queue: usize, at: u64, count: u32) {
        change!(self, form => form.push(queue, at, count));
    }

    /// The same, and forgets the runs of the queue before `first`. When the hits count as made is said by the newest run
    /// that is left.
    #[inline]
    pub(super) fn renew(&mut self, queue: usize, first: u64, count: u32, at: impl Fn(Option<Run>) -> u64) {
        change!(self, form => form.renew(queue, first, count, &at));
    }

    /// Adds hits to a queue where they belong by their time. Takes as long as there are earlier runs.
    pub(super) fn insert(&mut self, queue: usize, at: u64, count: u32) {
        change!(self, form => form.insert(queue, at, count));
    }

    /// Adds hits to the newest run that is not later than `at`. If there is none the oldest run becomes as old as that. No
    /// run is added, except to an empty queue.
    pub(super) fn join(&mut self, queue: usize, at: u64, count: u32) {
        change!(self, form => form.join(queue, at, count));
    }

    /// Forgets the runs of a queue before `first`.
    pub(super) fn forget_before(&mut self, queue: usize, first: u64) {
        ask!(self, form => form.forget_before(queue, first));
    }

    /// Forgets so many of the newest hits of a queue. Takes as long as there are runs.
    pub(super) fn forget_newest(&mut self, queue: usize, hits: u32) {
        ask!(self, form => form.forget_newest(queue, hits));
    }

    /// Makes of a queue a single run, whose count is whatever the owner means by it.
    pub(super) fn put(&mut self, queue: usize, at: u64, value: u32) {
        change!(self, form => form.put(queue, at, value));
    }

    /// Forgets all runs of a queue.
    pub(super) fn clear(&mut self, queue: usize) {
        ask!(self, form => form.clear(queue));
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Pool::Few(_) => 0,
            Pool::More(more) => size_of_val(&**more),
            Pool::Many(many) => many.heap_bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
