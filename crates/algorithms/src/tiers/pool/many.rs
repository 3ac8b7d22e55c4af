//! A history of any length: cells, each of which is the domain, a queue or a run.
//!
//! The first cell is of the domain as a whole. Then come the queues, each of which points at its oldest and its newest run,
//! then the runs, each of which points at the next. Cells of runs that are forgotten are used again.

use std::num::NonZeroU16;

use super::{NEVER, Run};

/// The greatest number of cells, less those for queues that have no run yet.
const MANY: usize = 65_000;

/// Cells of 16 bytes.
#[derive(Clone, Debug)]
pub(in crate::tiers) struct Many {
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

// === impl Many ===

impl Many {
    /// With so many queues, all empty, and room for so many runs.
    pub(super) fn with_room(queues: usize, runs: usize) -> Many {
        let mut cells = Vec::with_capacity(1 + queues + runs);
        cells.push(Cell { at: 0, count: 0, next: None, newest: None });
        cells.resize(1 + queues, Cell { at: NEVER, count: 0, next: None, newest: None });
        let mut pool = Many { cells: Box::default() };
        pool.add_unused(cells, runs);
        pool
    }

    /// The time of the domain: 0 until it is set.
    pub(super) fn last(&self) -> u64 {
        self.cells[0].at
    }

    pub(super) fn set_last(&mut self, at: u64) {
        self.cells[0].at = at;
    }

    /// Hits that were made and are in no queue.
    pub(super) fn debt(&self) -> u32 {
        self.cells[0].count
    }

    pub(super) fn set_debt(&mut self, hits: u32) {
        self.cells[0].count = hits;
    }

    /// The time that the owner of a queue has set.
    pub(super) fn time(&self, queue: usize) -> u64 {
        self.cells[1 + queue].at
    }

    pub(super) fn set_time(&mut self, queue: usize, at: u64) {
        self.cells[1 + queue].at = at;
    }

    /// The hits of all runs of a queue.
    pub(super) fn total(&self, queue: usize) -> u32 {
        self.cells[1 + queue].count
    }

    /// Of those that are not before `first`.
    pub(super) fn hits_from(&self, queue: usize, first: u64) -> u32 {
        let gone = self.runs(queue).take_while(|run| run.at < first);
        self.total(queue) - gone.map(|run| run.count).sum::<u32>()
    }

    pub(super) fn oldest(&self, queue: usize) -> Option<Run> {
        Some(self.run(self.cells[1 + queue].next?))
    }

    pub(super) fn newest(&self, queue: usize) -> Option<Run> {
        Some(self.run(self.cells[1 + queue].newest?))
    }

    /// The run that comes after `run` in its queue.
    pub(super) fn after(&self, run: Run) -> Option<Run> {
        Some(self.run(NonZeroU16::new(run.later)?))
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
        if self.cell(newest.get()).at == at || self.is_full() {
            self.cell(newest.get()).count += count;
        } else {
            self.cells[1 + queue].newest = self.insert_after(newest.get(), at, count);
        }
    }

    /// The same, and forgets the runs of the queue before `first`. When the hits count as made is said by the newest run
    /// that is left.
    pub(super) fn renew(&mut self, queue: usize, first: u64, hits: u32, at: impl Fn(Option<Run>) -> u64) {
        self.forget_before(queue, first);
        self.push(queue, at(self.newest(queue)), hits);
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
                self.insert_after(run.place, at, count);
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
        let cell = self.cell(run.place);
        (cell.at, cell.count) = (cell.at.min(at), cell.count + count);
    }

    /// Forgets the runs of a queue before `first`.
    pub(super) fn forget_before(&mut self, queue: usize, first: u64) {
        while self.oldest(queue).is_some_and(|run| run.at < first) {
            self.pop(queue);
        }
    }

    /// Forgets all runs of a queue.
    pub(super) fn clear(&mut self, queue: usize) {
        while self.oldest(queue).is_some() {
            self.pop(queue);
        }
    }

    /// Forgets so many of the newest hits of a queue. Takes as long as there are runs.
    pub(super) fn forget_newest(&mut self, queue: usize, hits: u32) {
        let mut left = self.total(queue).saturating_sub(hits);
        for _ in 0..self.runs(queue).count() {
            let Some(Run { at, count, .. }) = self.oldest(queue) else { return };
            self.pop(queue);
            if left > 0 {
                self.push(queue, at, count.min(left));
            }
            left -= count.min(left);
        }
    }

    /// Makes of a queue a single run.
    pub(super) fn put(&mut self, queue: usize, at: u64, value: u32) {
        self.clear(queue);
        self.push(queue, at, value);
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }

    /// The number of queues and runs for which there is room.
    pub(super) fn room(&self) -> usize {
        self.cells.len() - 1
    }

    /// Forgets the oldest run of a queue.
    fn pop(&mut self, queue: usize) {
        let Some(oldest) = self.oldest(queue) else { return };
        let cell = &mut self.cells[1 + queue];
        cell.count -= oldest.count;
        cell.next = NonZeroU16::new(oldest.later);
        if oldest.later == 0 {
            cell.newest = None;
        }
        self.cell(oldest.place).next = self.cells[0].next;
        self.cells[0].next = NonZeroU16::new(oldest.place);
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
    fn insert_after(&mut self, before: u16, at: u64, count: u32) -> Link {
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
        self.cells[0].next = self.cell(index.get()).next;
        *self.cell(index.get()) = Cell { at, count, next, newest: None };
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

    fn cell(&mut self, index: u16) -> &mut Cell {
        &mut self.cells[usize::from(index)]
    }

    fn run(&self, index: NonZeroU16) -> Run {
        let Cell { at, count, next, .. } = self.cells[usize::from(index.get())];
        Run { at, count, place: index.get(), later: next.map_or(0, NonZeroU16::get) }
    }
}

#[cfg(test)]
mod tests;
