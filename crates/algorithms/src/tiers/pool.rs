//! All that is remembered of one domain, in one allocation: for each tier when it was entered and which hits it counts.
//!
//! The hits of a tier are a *queue* of runs, oldest first, a run being hits of the same time. The queues of a domain share
//! one slice of cells of 16 bytes, so that looking at a domain is looking at one place in memory, and knowing where takes
//! 16 bytes more. The first cell is of the domain as a whole. Then come the queues, each of which points at its oldest and
//! its newest run, then the runs, each of which points at the next. Cells of runs that are forgotten are used again.
//!
//! A domain of which nothing is remembered has no cells. None has more than 65,536: where a queue would need more, hits
//! count as made with the newest ones, and are forgotten a little too early.

mod copy;

use std::num::NonZeroU16;

/// So many cells there are at most, less those for queues that have no run yet.
const MANY: usize = 65_000;
/// The time of what never was.
pub(super) const NEVER: u64 = u64::MAX;

/// What is remembered of one domain.
#[derive(Clone, Default, Debug)]
pub(super) struct Pool {
    cells: Box<[Cell]>,
}

/// The domain, a queue or a run.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Of a run: when its hits count as made. Of anything else: what its owner wants to know.
    at: u64,
    /// Hits. Of a queue those of all its runs; of the domain those that are in no queue.
    count: u32,
    /// Of a queue its oldest run; of a run the next one; of the domain the first cell that is not used, each of which has
    /// the next one.
    next: Link,
    /// Of a queue its newest run.
    newest: Link,
}

/// A cell that is not that of the domain.
type Link = Option<NonZeroU16>;

/// Where a reader of a queue stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) count: u32,
    index: NonZeroU16,
    next: Link,
}

// === impl Pool ===

impl Pool {
    /// Nothing is allocated.
    pub(super) fn new() -> Pool {
        Pool::default()
    }

    /// Whether it has no cells.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Makes room for so many queues if there are none. They are empty, and of the time [`NEVER`].
    pub(super) fn open(&mut self, queues: usize) {
        if self.cells.is_empty() {
            *self = Pool::with_room(queues, 2);
        }
    }

    /// With so many queues, all empty, and room for so many runs.
    fn with_room(queues: usize, runs: usize) -> Pool {
        let mut cells = Vec::with_capacity(1 + queues + runs);
        cells.push(Cell { at: 0, count: 0, next: None, newest: None });
        cells.resize(1 + queues, Cell { at: NEVER, count: 0, next: None, newest: None });
        let mut pool = Pool { cells: Box::default() };
        pool.add_unused(cells, runs);
        pool
    }

    /// The time of the domain: 0 until it is set.
    pub(super) fn last(&self) -> u64 {
        self.cells.first().map_or(0, |cell| cell.at)
    }

    /// The queues must be open.
    pub(super) fn set_last(&mut self, at: u64) {
        self.cells[0].at = at;
    }

    /// Hits that were made and are in no queue.
    pub(super) fn debt(&self) -> u32 {
        self.cells.first().map_or(0, |cell| cell.count)
    }

    /// The queues must be open.
    pub(super) fn set_debt(&mut self, hits: u32) {
        self.cells[0].count = hits;
    }

    /// The time that the owner of a queue has set.
    pub(super) fn time(&self, queue: usize) -> u64 {
        self.cells.get(1 + queue).map_or(NEVER, |cell| cell.at)
    }

    pub(super) fn set_time(&mut self, queue: usize, at: u64) {
        self.cells[1 + queue].at = at;
    }

    /// The hits of all runs of a queue.
    pub(super) fn total(&self, queue: usize) -> u32 {
        self.cells.get(1 + queue).map_or(0, |cell| cell.count)
    }

    pub(super) fn oldest(&self, queue: usize) -> Option<Run> {
        Some(self.run(self.cells.get(1 + queue)?.next?))
    }

    pub(super) fn newest(&self, queue: usize) -> Option<Run> {
        Some(self.run(self.cells.get(1 + queue)?.newest?))
    }

    /// The run that comes after `run` in its queue.
    pub(super) fn after(&self, run: Run) -> Option<Run> {
        Some(self.run(run.next?))
    }

    /// The runs of a queue, oldest first.
    pub(super) fn runs(&self, queue: usize) -> impl Iterator<Item = Run> {
        std::iter::successors(self.oldest(queue), |&run| self.after(run))
    }

    /// Adds hits to a queue, none of whose runs may be later.
    pub(super) fn push(&mut self, queue: usize, at: u64, count: u32) {
        let count = self.grow(queue, count);
        let Some(newest) = self.cells[1 + queue].newest else {
            let index = self.store(at, count, None);
            (self.cells[1 + queue].next, self.cells[1 + queue].newest) = (index, index);
            return;
        };
        if self.cell(newest).at == at || self.is_full() {
            self.cell(newest).count += count;
        } else {
            self.cells[1 + queue].newest = self.insert_after(newest, at, count);
        }
    }

    /// Adds hits to a queue where they belong by their time. Takes as long as there are earlier runs.
    pub(super) fn insert(&mut self, queue: usize, at: u64, count: u32) {
        if self.newest(queue).is_none_or(|newest| newest.at <= at) {
            return self.push(queue, at, count);
        }
        match self.runs(queue).take_while(|run| run.at <= at).last() {
            _ if self.is_full() => self.join(queue, at, count),
            Some(run) if run.at == at => self.join(queue, at, count),
            Some(run) => {
                let count = self.grow(queue, count);
                self.insert_after(run.index, at, count);
            }
            None => {
                let count = self.grow(queue, count);
                self.cells[1 + queue].next = self.store(at, count, self.cells[1 + queue].next);
            }
        }
    }

    /// Adds hits to the newest run that is not later than `at`. If there is none the oldest run becomes as old as that. No
    /// run is added, except to an empty queue.
    pub(super) fn join(&mut self, queue: usize, at: u64, count: u32) {
        let Some(oldest) = self.oldest(queue) else { return self.push(queue, at, count) };
        let count = self.grow(queue, count);
        let newest = self.newest(queue).filter(|run| run.at <= at);
        let earlier = || self.runs(queue).take_while(|run| run.at <= at).last();
        let run = newest.or_else(earlier).unwrap_or(oldest);
        let cell = self.cell(run.index);
        (cell.at, cell.count) = (cell.at.min(at), cell.count + count);
    }

    /// Forgets the oldest run of a queue.
    pub(super) fn pop(&mut self, queue: usize) {
        let Some(oldest) = self.oldest(queue) else { return };
        let cell = &mut self.cells[1 + queue];
        cell.count -= oldest.count;
        cell.next = oldest.next;
        if oldest.next.is_none() {
            cell.newest = None;
        }
        self.cell(oldest.index).next = self.cells[0].next;
        self.cells[0].next = Some(oldest.index);
    }

    /// Makes of a queue a single run that counts for nothing in the total: the owner knows what it means.
    pub(super) fn put(&mut self, queue: usize, at: u64, value: u32) {
        if self.cells[1 + queue].newest.is_none() {
            self.push(queue, at, 0);
        }
        if let Some(run) = self.cells[1 + queue].newest {
            let cell = self.cell(run);
            (cell.at, cell.count) = (at, value);
        }
    }

    /// Takes all runs out of a queue, oldest first.
    pub(super) fn take(&mut self, queue: usize) -> Vec<(u64, u32)> {
        let runs = self.runs(queue).map(|run| (run.at, run.count)).collect();
        while self.newest(queue).is_some() {
            self.pop(queue);
        }
        runs
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }

    /// Whether queues that have a run get no other.
    fn is_full(&self) -> bool {
        self.cells.len() >= MANY && self.cells[0].next.is_none()
    }

    /// Adds to the total of a queue, as far as the number goes; returns how much was added.
    fn grow(&mut self, queue: usize, count: u32) -> u32 {
        let total = &mut self.cells[1 + queue].count;
        let count = count.min(u32::MAX - *total);
        *total += count;
        count
    }

    /// Links a run behind another one.
    fn insert_after(&mut self, before: NonZeroU16, at: u64, count: u32) -> Link {
        let next = self.cell(before).next;
        let index = self.store(at, count, next);
        self.cell(before).next = index;
        index
    }

    /// Stores a run where a cell is free.
    fn store(&mut self, at: u64, count: u32, next: Link) -> Link {
        if self.cells[0].next.is_none() {
            let len = self.cells.len();
            // Queues without a run, of which there are at most 129, get one even then.
            let count = if len < MANY { len.min(MANY - len) } else { 1 };
            let mut cells = Vec::with_capacity(len + count);
            cells.extend_from_slice(&self.cells);
            self.add_unused(cells, count);
        }
        let index = self.cells[0].next?;
        self.cells[0].next = self.cell(index).next;
        *self.cell(index) = Cell { at, count, next, newest: None };
        Some(index)
    }

    /// Takes these cells, all of which are used, and so many that are not.
    fn add_unused(&mut self, mut cells: Vec<Cell>, count: usize) {
        let (first, end) = (cells.len(), cells.len() + count);
        let link = |index: usize| u16::try_from(index).ok().and_then(NonZeroU16::new).filter(|_| index < end);
        cells[0].next = link(first);
        cells.extend((first..end).map(|index| Cell { at: 0, count: 0, next: link(index + 1), newest: None }));
        self.cells = cells.into_boxed_slice();
    }

    fn cell(&mut self, index: NonZeroU16) -> &mut Cell {
        &mut self.cells[usize::from(index.get())]
    }

    fn run(&self, index: NonZeroU16) -> Run {
        let Cell { at, count, next, .. } = self.cells[usize::from(index.get())];
        Run { at, count, index, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(pool: &Pool, queue: usize) -> Vec<(u64, u32)> {
        pool.runs(queue).map(|run| (run.at, run.count)).collect()
    }

    #[test]
    fn queues_share_the_cells_and_do_not_mix() {
        let mut pool = Pool::new();
        pool.open(2);
        for at in 0..4 {
            pool.push(0, at, 1);
            pool.push(1, at / 2, 2);
        }
        assert_eq!(runs(&pool, 0), [(0, 1), (1, 1), (2, 1), (3, 1)]);
        assert_eq!(runs(&pool, 1), [(0, 4), (1, 4)]);
        pool.pop(0);
        pool.pop(1);
        let bytes = pool.heap_bytes();
        pool.push(1, 7, 3);
        pool.push(0, 7, 1);
        assert_eq!(runs(&pool, 0), [(1, 1), (2, 1), (3, 1), (7, 1)]);
        assert_eq!(runs(&pool, 1), [(1, 4), (7, 3)]);
        assert_eq!((pool.total(0), pool.total(1)), (4, 7));
        assert_eq!(pool.heap_bytes(), bytes);
    }

    #[test]
    fn hits_find_their_place_by_their_time() {
        let mut pool = Pool::new();
        pool.open(1);
        for at in [5, 3, 9, 3, 1, 7, 9, 5] {
            pool.insert(0, at, 1);
        }
        assert_eq!(runs(&pool, 0), [(1, 1), (3, 2), (5, 2), (7, 1), (9, 2)]);
        pool.join(0, 4, 10);
        pool.join(0, 0, 20);
        pool.join(0, 99, 30);
        assert_eq!(runs(&pool, 0), [(0, 21), (3, 12), (5, 2), (7, 1), (9, 32)]);
        assert_eq!(pool.total(0), 68);
        assert_eq!(pool.take(0), [(0, 21), (3, 12), (5, 2), (7, 1), (9, 32)]);
        assert_eq!((pool.total(0), pool.newest(0).is_none()), (0, true));
    }

    #[test]
    fn totals_stop_at_the_greatest_number() {
        let mut pool = Pool::new();
        pool.open(1);
        pool.push(0, 1, u32::MAX - 1);
        pool.push(0, 2, 5);
        assert_eq!(runs(&pool, 0), [(1, u32::MAX - 1), (2, 1)]);
        pool.pop(0);
        assert_eq!(pool.total(0), 1);
    }

    #[test]
    fn a_pool_that_is_full_takes_hits_of_other_times_as_of_the_newest() {
        let mut pool = Pool::new();
        pool.open(2);
        (0..70_000).for_each(|at| pool.push(0, at, 1));
        assert_eq!((pool.total(0), pool.runs(0).count()), (70_000, MANY - 3));
        let newest = MANY as u64 - 4;
        assert_eq!(pool.newest(0).map(|run| run.at), Some(newest));
        pool.insert(0, 7, 5);
        assert_eq!(pool.runs(0).nth(7).map(|run| run.count), Some(6));
        // Another queue still gets its first.
        pool.push(1, 1, 1);
        pool.push(1, 2, 1);
        assert_eq!(runs(&pool, 1), [(1, 2)]);
        pool.pop(0);
        pool.push(1, 3, 1);
        assert_eq!(runs(&pool, 1), [(1, 2), (3, 1)]);
    }
}
