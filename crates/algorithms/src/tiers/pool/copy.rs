//! A history takes another form: a longer one, a shorter one, or one of other queues.

use super::few::Few;
use super::many::Many;
use super::{BESIDE, NEVER, Pool, WITHIN};

// === impl Pool ===

impl Pool {
    /// Gives back what is allocated and not used.
    pub(in crate::tiers) fn shrink(&mut self, queues: usize) {
        let is_loose = match self {
            Pool::Few(_) => false,
            Pool::More(more) => more.len() <= WITHIN,
            Pool::Many(many) => {
                many.room() > queues + self.runs_of(same(queues)) || self.facts(same(queues)) <= BESIDE
            }
        };
        if is_loose {
            *self = self.with_queues(queues, same(queues));
        }
    }

    /// The same domain with other queues, some of which are some of these: each pair is of one before and one after. In the
    /// shortest form into which it fits.
    pub(in crate::tiers) fn with_queues(&self, queues: usize, kept: impl Kept) -> Pool {
        let mut pool = match Few::open(queues) {
            Ok(few) if self.facts(kept.clone()) <= BESIDE => Pool::Few(few),
            _ => Pool::Many(Many::with_room(queues, self.runs_of(kept.clone()))),
        };
        pool.take_over(self, kept);
        pool
    }

    /// Takes the next longer form.
    #[cold]
    pub(super) fn lengthen(&mut self) {
        *self = match self {
            Pool::Few(few) => Pool::More(Box::new(few.widened())),
            Pool::More(more) => {
                let queues = more.queues();
                let mut pool = Pool::Many(Many::with_room(queues, BESIDE));
                pool.take_over(self, same(queues));
                pool
            }
            Pool::Many(_) => return,
        }
    }

    /// Becomes what another one is, as far as its queues are kept. These must be empty here.
    fn take_over(&mut self, other: &Pool, kept: impl Kept) {
        self.set_last(other.last());
        self.set_debt(other.debt());
        for (from, to) in kept {
            if other.time(from) != NEVER {
                self.set_time(to, other.time(from));
            }
            other.runs(from).for_each(|run| self.push(to, run.at, run.count));
        }
    }

    fn runs_of(&self, kept: impl Kept) -> usize {
        kept.map(|(queue, _)| self.runs(queue).count()).sum()
    }

    /// The number of facts in these queues; more than there can be, if one of them cannot be a fact.
    fn facts(&self, kept: impl Kept) -> usize {
        let of_run = |count| if u16::try_from(count).is_ok() { 1 } else { BESIDE + 1 };
        let of_queue = |(queue, _)| {
            let runs: usize = self.runs(queue).map(|run| of_run(run.count)).sum();
            usize::from(self.time(queue) != NEVER) + runs
        };
        usize::from(self.debt() > 0) + kept.map(of_queue).sum::<usize>()
    }
}

/// Which queue becomes which.
pub(in crate::tiers) trait Kept: Iterator<Item = (usize, usize)> + Clone {}

impl<K: Iterator<Item = (usize, usize)> + Clone> Kept for K {}

/// All of them stay.
fn same(queues: usize) -> impl Kept {
    (0..queues).map(|queue| (queue, queue))
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
        pool.set_time(2, 17);
        pool.forget_before(1, 900);
        pool.shrink(3);
        assert_eq!(pool.heap_bytes(), (1 + 3 + 100) * 16);
        assert_eq!(runs(&pool, 1), (900..1000).map(|at| (at, 1)).collect::<Vec<_>>());
        pool.forget_before(1, 990);
        pool.shrink(3);
        assert!(matches!(pool, Pool::More(_)));
        pool.forget_before(1, 998);
        pool.shrink(3);
        assert_eq!(pool.heap_bytes(), 0);
        assert_eq!(runs(&pool, 1), [(998, 1), (999, 1)]);
        assert_eq!((pool.total(1), pool.time(2)), (2, 17));
        pool.push(1, 1000, 1);
        assert_eq!(runs(&pool, 1), [(998, 1), (999, 1), (1000, 1)]);
    }

    #[test]
    fn great_numbers_of_hits_do_not_become_facts() {
        let mut pool = Pool::new();
        pool.open(1);
        pool.push(0, 1, 70_000);
        pool.shrink(1);
        assert_eq!(runs(&pool, 0), [(1, 70_000)]);
        assert_eq!(pool.heap_bytes(), 3 * 16);
    }
}
