//! All that is remembered of one domain, in one allocation: for each tier when it was entered and which hits it counts.
//!
//! The hits of a tier are a *queue* of runs, oldest first, a run being hits of the same time. The queues of a domain share
//! one vector of cells of 16 bytes, so that looking at a domain is looking at one place in memory. The first cells are the
//! queues themselves; each points at its oldest and its newest run, and each run at the next. Cells of runs that are
//! forgotten are used again.
//!
//! A domain of which nothing is remembered has no cells. None has more than 65,536: where a queue would need more, hits
//! count as made with the newest ones, and are forgotten a little too early.

/// No cell.
const NONE: u16 = u16::MAX;
/// From how many cells on only queues that have no run get one.
const MANY: usize = 65_000;
/// The time of what never was.
pub(super) const NEVER: u64 = u64::MAX;

/// What is remembered of one domain.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    cells: Vec<Cell>,
    /// Hits that were made and are in no queue yet. It says nothing to the pool; anywhere else it would cost 8 bytes.
    pub(super) debt: u32,
    /// The first of the cells that can be used again, each of which links to the next.
    free: u16,
}

/// A queue or a run.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Of a run: when its hits count as made. Of a queue: whatever its owner wants to know.
    at: u64,
    /// Hits; of a queue those of all its runs.
    count: u32,
    /// Of a queue its oldest run; of a run the next one.
    next: u16,
    /// Of a queue its newest run.
    newest: u16,
}

/// Where a reader of a queue stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) count: u32,
    index: u16,
    next: u16,
}

// === impl Pool ===

impl Pool {
    pub(super) const fn new() -> Pool {
        Pool { cells: Vec::new(), debt: 0, free: NONE }
    }

    /// Whether it has no cells.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Makes room for so many queues if there are none. They are empty, and of the time [`NEVER`].
    pub(super) fn open(&mut self, queues: usize) {
        if self.cells.is_empty() {
            self.cells.reserve_exact(queues + 2);
            self.cells.resize(queues, Cell { at: NEVER, count: 0, next: NONE, newest: NONE });
        }
    }

    /// The time that the owner of a queue has set.
    pub(super) fn time(&self, queue: usize) -> u64 {
        self.cells.get(queue).map_or(NEVER, |cell| cell.at)
    }

    pub(super) fn set_time(&mut self, queue: usize, at: u64) {
        self.cells[queue].at = at;
    }

    /// The hits of all runs of a queue.
    pub(super) fn total(&self, queue: usize) -> u32 {
        self.cells.get(queue).map_or(0, |cell| cell.count)
    }

    pub(super) fn oldest(&self, queue: usize) -> Option<Run> {
        self.run(self.cells.get(queue)?.next)
    }

    pub(super) fn newest(&self, queue: usize) -> Option<Run> {
        self.run(self.cells.get(queue)?.newest)
    }

    /// The run that comes after `run` in its queue.
    pub(super) fn after(&self, run: Run) -> Option<Run> {
        self.run(run.next)
    }

    /// The runs of a queue, oldest first.
    pub(super) fn runs(&self, queue: usize) -> impl Iterator<Item = Run> {
        std::iter::successors(self.oldest(queue), |&run| self.after(run))
    }

    /// Adds hits to a queue, none of whose runs may be later.
    pub(super) fn push(&mut self, queue: usize, at: u64, count: u32) {
        let count = self.grow(queue, count);
        let newest = self.cells[queue].newest;
        if newest == NONE {
            let index = self.cell(Cell { at, count, next: NONE, newest: NONE });
            (self.cells[queue].next, self.cells[queue].newest) = (index, index);
        } else if self.cells[usize::from(newest)].at == at || self.is_full() {
            self.cells[usize::from(newest)].count += count;
        } else {
            self.cells[queue].newest = self.insert_after(newest, at, count);
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
                let next = self.cells[queue].next;
                self.cells[queue].next = self.cell(Cell { at, count, next, newest: NONE });
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
        let cell = &mut self.cells[usize::from(run.index)];
        (cell.at, cell.count) = (cell.at.min(at), cell.count + count);
    }

    /// Forgets the oldest run of a queue.
    pub(super) fn pop(&mut self, queue: usize) {
        let Some(oldest) = self.oldest(queue) else { return };
        let cell = &mut self.cells[queue];
        cell.count -= oldest.count;
        cell.next = oldest.next;
        if oldest.next == NONE {
            cell.newest = NONE;
        }
        self.cells[usize::from(oldest.index)].next = self.free;
        self.free = oldest.index;
    }

    /// Makes of a queue a single run that counts for nothing in the total: the owner knows what it means.
    pub(super) fn put(&mut self, queue: usize, at: u64, value: u32) {
        if self.cells[queue].newest == NONE {
            self.push(queue, at, 0);
        }
        let run = usize::from(self.cells[queue].newest);
        (self.cells[run].at, self.cells[run].count) = (at, value);
    }

    /// Takes all runs out of a queue, oldest first.
    pub(super) fn take(&mut self, queue: usize) -> Vec<(u64, u32)> {
        let runs = self.runs(queue).map(|run| (run.at, run.count)).collect();
        while self.newest(queue).is_some() {
            self.pop(queue);
        }
        runs
    }

    /// Gives back what is allocated and not used.
    pub(super) fn shrink(&mut self, queues: usize) {
        let used: usize = (0..queues).map(|queue| self.runs(queue).count()).sum();
        if self.cells.capacity() <= queues + used {
            return;
        }
        let mut small = Pool { cells: Vec::with_capacity(queues + used), debt: self.debt, free: NONE };
        small.cells.extend_from_slice(&self.cells[..queues]);
        (0..queues).for_each(|queue| small.copy(queue, self, queue));
        *self = small;
    }

    /// Makes a queue what a queue of another pool is.
    pub(super) fn copy(&mut self, queue: usize, other: &Pool, other_queue: usize) {
        let (at, count) = (other.time(other_queue), other.total(other_queue));
        self.cells[queue] = Cell { at, count, next: NONE, newest: NONE };
        for run in other.runs(other_queue) {
            let index = self.cell(Cell { at: run.at, count: run.count, next: NONE, newest: NONE });
            let newest = self.cells[queue].newest;
            let before = if newest == NONE { queue } else { usize::from(newest) };
            self.cells[before].next = index;
            self.cells[queue].newest = index;
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }

    /// Whether queues that have a run get no other.
    fn is_full(&self) -> bool {
        self.cells.len() >= MANY && self.free == NONE
    }

    /// Adds to the total of a queue, as far as the number goes; returns how much was added.
    fn grow(&mut self, queue: usize, count: u32) -> u32 {
        let total = &mut self.cells[queue].count;
        let count = count.min(u32::MAX - *total);
        *total += count;
        count
    }

    /// Links a run behind another one.
    fn insert_after(&mut self, before: u16, at: u64, count: u32) -> u16 {
        let next = self.cells[usize::from(before)].next;
        let index = self.cell(Cell { at, count, next, newest: NONE });
        self.cells[usize::from(before)].next = index;
        index
    }

    /// Stores a cell where one is free.
    fn cell(&mut self, cell: Cell) -> u16 {
        if self.free == NONE {
            self.cells.push(cell);
            // There are at most 257 queues more than the cells that a pool has when it is full.
            return u16::try_from(self.cells.len() - 1).unwrap_or_else(|_| unreachable!("2^16 cells"));
        }
        let index = self.free;
        self.free = self.cells[usize::from(index)].next;
        self.cells[usize::from(index)] = cell;
        index
    }

    fn run(&self, index: u16) -> Option<Run> {
        // No cell has the index of none.
        let &Cell { at, count, next, .. } = self.cells.get(usize::from(index))?;
        Some(Run { at, count, index, next })
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
        assert_eq!((pool.total(0), pool.runs(0).count()), (70_000, MANY - 2));
        let newest = MANY as u64 - 3;
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

    #[test]
    fn what_is_not_used_is_given_back() {
        let mut pool = Pool::new();
        pool.open(3);
        (0..1000).for_each(|at| pool.push(1, at, 1));
        (0..998).for_each(|_| pool.pop(1));
        pool.set_time(2, 17);
        pool.shrink(3);
        assert_eq!(pool.heap_bytes(), 5 * 16);
        assert_eq!(runs(&pool, 1), [(998, 1), (999, 1)]);
        assert_eq!((pool.total(1), pool.time(2)), (2, 17));
        pool.push(1, 1000, 1);
        assert_eq!(runs(&pool, 1), [(998, 1), (999, 1), (1000, 1)]);
    }
}
