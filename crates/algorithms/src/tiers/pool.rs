//! All that is remembered of one domain, in one allocation: for each tier when it was entered and which hits it counts.
//!
//! The hits of a tier are a *queue* of runs, oldest first, a run being hits of the same time. The queues of a domain share
//! one vector of cells of 16 bytes. The first cells are the queues themselves; each points at its newest run, and that one
//! at the oldest, so that a queue is a circle and needs a single link. Cells of runs that are forgotten are used again.
//!
//! A domain of which nothing is remembered has no cells.

/// No cell.
const NONE: u32 = u32::MAX;
/// The time of what never was.
pub(super) const NEVER: u64 = u64::MAX;

/// What is remembered of one domain.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    cells: Vec<Cell>,
    /// The first of the cells that can be used again, each of which links to the next.
    free: u32,
    /// Hits that were made and are in no queue yet. It says nothing to the pool; anywhere else it would cost 8 bytes.
    pub(super) debt: u32,
}

/// A queue or a run.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Of a run: when its hits count as made. Of a queue: whatever its owner wants to know.
    at: u64,
    /// Hits; of a queue those of all its runs.
    count: u32,
    /// Of a queue its newest run; of a run the next one, and of the newest the oldest.
    next: u32,
}

/// Where a reader of a queue stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) count: u32,
    index: u32,
}

// === impl Pool ===

impl Pool {
    pub(super) const fn new() -> Pool {
        Pool { cells: Vec::new(), free: NONE, debt: 0 }
    }

    /// Whether it has no cells.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Makes room for so many queues if there are none. They are empty, and of the time [`NEVER`].
    pub(super) fn open(&mut self, queues: usize) {
        if self.cells.is_empty() {
            self.cells.reserve_exact(queues + 2);
            self.cells.resize(queues, Cell { at: NEVER, count: 0, next: NONE });
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
        let newest = self.newest(queue)?;
        Some(self.run(self.cells[newest.index as usize].next))
    }

    pub(super) fn newest(&self, queue: usize) -> Option<Run> {
        let index = self.cells.get(queue)?.next;
        (index != NONE).then(|| self.run(index))
    }

    /// The run of a queue that comes after `run`.
    pub(super) fn after(&self, queue: usize, run: Run) -> Option<Run> {
        (run.index != self.cells[queue].next).then(|| self.run(self.cells[run.index as usize].next))
    }

    /// The runs of a queue, oldest first.
    pub(super) fn runs(&self, queue: usize) -> impl Iterator<Item = Run> {
        std::iter::successors(self.oldest(queue), move |&run| self.after(queue, run))
    }

    /// Adds hits to a queue, none of whose runs may be later.
    pub(super) fn push(&mut self, queue: usize, at: u64, count: u32) {
        let count = self.grow(queue, count);
        match self.newest(queue) {
            Some(newest) if newest.at == at => self.cells[newest.index as usize].count += count,
            Some(newest) => {
                let index = self.insert_after(newest.index, at, count);
                self.cells[queue].next = index;
            }
            None => {
                let index = self.cell(Cell { at, count, next: NONE });
                self.cells[index as usize].next = index;
                self.cells[queue].next = index;
            }
        }
    }

    /// Adds hits to a queue where they belong by their time. Takes as long as there are earlier runs.
    pub(super) fn insert(&mut self, queue: usize, at: u64, count: u32) {
        let (Some(oldest), Some(newest)) = (self.oldest(queue), self.newest(queue)) else {
            return self.push(queue, at, count);
        };
        if newest.at <= at {
            return self.push(queue, at, count);
        }
        let count = self.grow(queue, count);
        if oldest.at > at {
            self.insert_after(newest.index, at, count);
            return;
        }
        let before = self.runs(queue).take_while(|run| run.at <= at).last().unwrap_or(oldest);
        if before.at == at {
            self.cells[before.index as usize].count += count;
        } else {
            self.insert_after(before.index, at, count);
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
        let cell = &mut self.cells[run.index as usize];
        (cell.at, cell.count) = (cell.at.min(at), cell.count + count);
    }

    /// Forgets the oldest run of a queue.
    pub(super) fn pop(&mut self, queue: usize) {
        let Some(oldest) = self.oldest(queue) else { return };
        let newest = self.cells[queue].next;
        if oldest.index == newest {
            self.cells[queue].next = NONE;
        } else {
            self.cells[newest as usize].next = self.cells[oldest.index as usize].next;
        }
        self.cells[queue].count -= oldest.count;
        self.cells[oldest.index as usize].next = self.free;
        self.free = oldest.index;
    }

    /// Makes of a queue a single run that counts for nothing in the total: the owner knows what it means.
    pub(super) fn put(&mut self, queue: usize, at: u64, value: u32) {
        if let Some(run) = self.newest(queue) {
            self.cells[run.index as usize] = Cell { at, count: value, next: run.index };
        } else {
            self.push(queue, at, 0);
            let run = self.cells[queue].next;
            self.cells[run as usize].count = value;
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

    /// Gives back what is allocated and not used.
    pub(super) fn shrink(&mut self, queues: usize) {
        let used: usize = (0..queues).map(|queue| self.runs(queue).count()).sum();
        if self.cells.capacity() <= queues + used {
            return;
        }
        let mut small = Pool { cells: Vec::with_capacity(queues + used), free: NONE, debt: self.debt };
        small.cells.extend_from_slice(&self.cells[..queues]);
        for queue in 0..queues {
            small.copy_runs(queue, self, queue);
        }
        *self = small;
    }

    /// Makes a queue what a queue of another pool is.
    pub(super) fn copy(&mut self, queue: usize, other: &Pool, other_queue: usize) {
        self.cells[queue].at = other.time(other_queue);
        self.cells[queue].count = other.total(other_queue);
        self.copy_runs(queue, other, other_queue);
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }

    /// As [`Pool::copy`], without time and total.
    fn copy_runs(&mut self, queue: usize, other: &Pool, other_queue: usize) {
        self.cells[queue].next = NONE;
        let mut oldest = NONE;
        for run in other.runs(other_queue) {
            let before = self.cells[queue].next;
            let index = self.cell(Cell { at: run.at, count: run.count, next: oldest });
            if before == NONE {
                oldest = index;
                self.cells[index as usize].next = index;
            } else {
                self.cells[before as usize].next = index;
            }
            self.cells[queue].next = index;
        }
    }

    /// Adds to the total of a queue, as far as the number goes; returns how much was added.
    fn grow(&mut self, queue: usize, count: u32) -> u32 {
        let total = &mut self.cells[queue].count;
        let count = count.min(u32::MAX - *total);
        *total += count;
        count
    }

    /// Links a run behind another one.
    fn insert_after(&mut self, before: u32, at: u64, count: u32) -> u32 {
        let next = self.cells[before as usize].next;
        let index = self.cell(Cell { at, count, next });
        self.cells[before as usize].next = index;
        index
    }

    /// Stores a cell where one is free.
    fn cell(&mut self, cell: Cell) -> u32 {
        if self.free == NONE {
            self.cells.push(cell);
            return u32::try_from(self.cells.len() - 1).unwrap_or_else(|_| unreachable!("2^32 runs"));
        }
        let index = self.free;
        self.free = self.cells[index as usize].next;
        self.cells[index as usize] = cell;
        index
    }

    fn run(&self, index: u32) -> Run {
        let Cell { at, count, .. } = self.cells[index as usize];
        Run { at, count, index }
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
