//! A pool is made anew: smaller, or with other queues.

use super::{Cell, Pool};

// === impl Pool ===

impl Pool {
    /// Gives back what is allocated and not used.
    pub(in crate::tiers) fn shrink(&mut self, queues: usize) {
        let runs: usize = (0..queues).map(|queue| self.runs(queue).count()).sum();
        if self.cells.len() > 1 + queues + runs {
            let queues = (0..queues).map(|queue| (queue, queue)).collect::<Vec<_>>();
            *self = self.with_queues(queues.len(), &queues);
        }
    }

    /// The same domain with other queues, some of which are some of these: each pair is of one before and one after. With
    /// no more cells than it takes.
    pub(in crate::tiers) fn with_queues(&self, queues: usize, kept: &[(usize, usize)]) -> Pool {
        let runs = kept.iter().map(|&(queue, _)| self.runs(queue).count()).sum();
        let mut pool = Pool::with_room(queues, runs);
        pool.set_last(self.last());
        pool.set_debt(self.debt());
        for &(from, to) in kept {
            pool.copy(to, self, from);
        }
        pool
    }

    /// Makes an empty queue what a queue of another pool is.
    fn copy(&mut self, queue: usize, other: &Pool, other_queue: usize) {
        let (at, count) = (other.time(other_queue), other.total(other_queue));
        self.cells[1 + queue] = Cell { at, count, next: None, newest: None };
        for run in other.runs(other_queue) {
            let index = self.store(run.at, run.count, None);
            match self.cells[1 + queue].newest {
                None => self.cells[1 + queue].next = index,
                Some(newest) => self.cell(newest).next = index,
            }
            self.cells[1 + queue].newest = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(pool: &Pool, queue: usize) -> Vec<(u64, u32)> {
        pool.runs(queue).map(|run| (run.at, run.count)).collect()
    }

    #[test]
    fn what_is_not_used_is_given_back() {
        let mut pool = Pool::new();
        pool.open(3);
        (0..1000).for_each(|at| pool.push(1, at, 1));
        (0..998).for_each(|_| pool.pop(1));
        pool.set_time(2, 17);
        pool.shrink(3);
        assert_eq!(pool.heap_bytes(), 6 * 16);
        assert_eq!(runs(&pool, 1), [(998, 1), (999, 1)]);
        assert_eq!((pool.total(1), pool.time(2)), (2, 17));
        pool.push(1, 1000, 1);
        assert_eq!(runs(&pool, 1), [(998, 1), (999, 1), (1000, 1)]);
    }
}
