//! Tests of pools of hits.

use proptest::prelude::*;

use super::*;

const QUEUES: usize = 3;

/// A step in a history.
#[derive(Clone, Copy, Debug)]
enum Step {
    Debt(u32),
    Time(usize, u64),
    Push(usize, u64, u32),
    Insert(usize, u64, u32),
    Join(usize, u64, u32),
    ForgetBefore(usize, u64),
    ForgetNewest(usize, u32),
    Put(usize, u64, u32),
    Clear(usize),
    Shrink,
}

fn step() -> impl Strategy<Value = Step> {
    let hits = || prop_oneof![8 => 1..4u32, 1 => 60_000..80_000u32];
    let run = || (0..QUEUES, 0..40u64, hits());
    prop_oneof![
        1 => (0..3u32).prop_map(Step::Debt),
        2 => (1..QUEUES, 0..40u64).prop_map(|(queue, at)| Step::Time(queue, at)),
        8 => run().prop_map(|(queue, at, hits)| Step::Push(queue, at, hits)),
        4 => run().prop_map(|(queue, at, hits)| Step::Insert(queue, at, hits)),
        2 => run().prop_map(|(queue, at, hits)| Step::Join(queue, at, hits)),
        2 => (0..QUEUES, 0..40u64).prop_map(|(queue, at)| Step::ForgetBefore(queue, at)),
        2 => (0..QUEUES, hits()).prop_map(|(queue, hits)| Step::ForgetNewest(queue, hits)),
        1 => run().prop_map(|(queue, at, value)| Step::Put(queue, at, value)),
        1 => (0..QUEUES).prop_map(Step::Clear),
        1 => Just(Step::Shrink),
    ]
}

/// Makes a step, with no time of a push before those that are in the queue.
fn go(pool: &mut Pool, step: Step) {
    let newest = |pool: &Pool, queue| pool.newest(queue).map_or(0, |run| run.at);
    match step {
        Step::Debt(hits) => pool.set_debt(hits),
        Step::Time(queue, at) => pool.set_time(queue, at),
        Step::Push(queue, at, hits) => pool.push(queue, newest(pool, queue) + at, hits),
        Step::Insert(queue, at, hits) => pool.insert(queue, at, hits),
        Step::Join(queue, at, hits) => pool.join(queue, at, hits),
        Step::ForgetBefore(queue, at) => pool.forget_before(queue, at),
        Step::ForgetNewest(queue, hits) => pool.forget_newest(queue, hits),
        Step::Put(queue, at, value) => pool.put(queue, at, value),
        Step::Clear(queue) => pool.clear(queue),
        Step::Shrink => pool.shrink(QUEUES),
    }
}

type Seen = (u64, u32, Vec<(u64, u32, Vec<(u64, u32)>, Option<u64>)>);

fn seen(pool: &Pool) -> Seen {
    let queue = |queue| {
        let runs = pool.runs(queue).map(|run| (run.at, run.count)).collect();
        (pool.time(queue), pool.total(queue), runs, pool.newest(queue).map(|run| run.at))
    };
    (pool.last(), pool.debt(), (0..QUEUES).map(queue).collect())
}

proptest! {
    #[test]
    fn all_forms_answer_alike(steps in prop::collection::vec(step(), 1..60)) {
        let (mut pool, mut many) = (Pool::new(), Pool::Many(Many::with_room(QUEUES, 0)));
        pool.open(QUEUES);
        for step in steps {
            go(&mut pool, step);
            if !matches!(step, Step::Shrink) {
                go(&mut many, step);
            }
            prop_assert_eq!(seen(&pool), seen(&many), "{:?}: {:?}", step, pool);
            for queue in 0..QUEUES {
                let newest = pool.newest(queue).map_or(0, |run| run.at);
                for first in [newest, newest / 2] {
                    prop_assert_eq!(pool.hits_from(queue, first), many.hits_from(queue, first));
                }
            }
        }
    }
}

#[test]
fn queues_do_not_mix() {
    let mut pool = Pool::new();
    pool.open(2);
    for at in 0..4 {
        pool.push(0, at, 1);
        pool.push(1, at / 2, 2);
    }
    let runs = |pool: &Pool, queue| pool.runs(queue).map(|run| (run.at, run.count)).collect::<Vec<_>>();
    assert_eq!(runs(&pool, 0), [(0, 1), (1, 1), (2, 1), (3, 1)]);
    assert_eq!(runs(&pool, 1), [(0, 4), (1, 4)]);
    pool.forget_before(0, 1);
    pool.forget_before(1, 1);
    pool.push(1, 7, 3);
    pool.push(0, 7, 1);
    assert_eq!(runs(&pool, 0), [(1, 1), (2, 1), (3, 1), (7, 1)]);
    assert_eq!(runs(&pool, 1), [(1, 4), (7, 3)]);
    assert_eq!((pool.total(0), pool.total(1)), (4, 7));
}

#[test]
fn hits_find_their_place_by_their_time() {
    let mut pool = Pool::new();
    pool.open(1);
    for at in [5, 3, 9, 3, 1, 7, 9, 5] {
        pool.insert(0, at, 1);
    }
    pool.join(0, 4, 10);
    pool.join(0, 0, 20);
    pool.join(0, 99, 30);
    let runs: Vec<_> = pool.runs(0).map(|run| (run.at, run.count)).collect();
    assert_eq!(runs, [(0, 21), (3, 12), (5, 2), (7, 1), (9, 32)]);
    assert_eq!(pool.total(0), 68);
}

#[test]
fn a_domain_takes_eighty_eight_bytes() {
    assert_eq!(size_of::<Pool>(), 88);
}
