//! Tests of waiting for several things at once.

use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use super::*;
use crate::waiting::Waiting;
use crate::waiting::fake::{FakeClock, Tasks};

type Waiters<'a> = Tasks<'a, Result<TogetherPermit, TogetherDenied>>;

#[test]
fn who_waits_holds_nothing_and_is_granted_at_the_moment_that_is_named() {
    let (kitchen, clock) = (Kitchen::new(), FakeClock::default());
    let job = kitchen.job("a", 1, 1, [5, 1, 0]);
    let mut tasks = Waiters::new(&clock);
    tasks.pass(Duration::from_secs(1));
    drop(job.try_acquire(|| at(1.0)).unwrap());
    tasks.spawn(job.acquire_by(&clock, Duration::from_secs(60), |_| ()));
    let gone = tasks.spawn(job.acquire_by(&clock, Duration::from_secs(60), |_| ()));
    tasks.pass(Duration::from_secs(9));
    assert_eq!((tasks.finished().len(), kitchen.workers.in_use()), (0, 0));
    tasks.cancel(gone);
    tasks.pass(Duration::from_millis(1_001));
    let (task, permit) = tasks.finished().remove(0);
    assert_eq!((task, outcome(permit)), (0, Ok((1, None))));
    assert_eq!(kitchen.calls.1.usage().granted, 10);
    tasks.spawn(job.acquire_by(&clock, Duration::from_secs(3), |_| ()));
    let (_, refused) = tasks.finished().remove(0);
    let told = "nothing is granted within 3s: part 1 refuses: bound by its tiers";
    assert_eq!(outcome(refused), Err(told.into()), "at once, as the moment is later");
}

#[test]
fn who_waits_for_a_gauge_stands_in_its_queue_and_asks_for_the_rest_when_let_in() {
    let (kitchen, clock) = (Kitchen::new(), FakeClock::default());
    let busy = kitchen.workers.try_acquire(2, || Time::ZERO).unwrap();
    let jobs = ["a", "b"].map(|tenant| kitchen.job(tenant, 1, 1, [1, 1, 0]));
    let mut tasks = Waiters::new(&clock);
    tasks.pass(Duration::from_secs(1));
    for job in &jobs {
        tasks.spawn(job.acquire_by(&clock, Duration::from_secs(60), |_| ()));
    }
    let gone = tasks.spawn(jobs[0].acquire_by(&clock, Duration::from_secs(60), |_| ()));
    assert_eq!((kitchen.workers.usage().waiting, kitchen.calls.1.usage().granted), (3, 0));
    tasks.cancel(gone);
    assert_eq!(kitchen.workers.usage().waiting, 2);
    let refused = kitchen.job("c", 1, 1, [1, 1, 0]).try_acquire(|| at(1.0));
    assert_eq!(outcome(refused), Err("part 0 refuses: 2 units are waited for already".into()));
    drop(busy);
    tasks.run();
    let served: Vec<_> = tasks.finished().into_iter().map(|(task, permit)| (task, outcome(permit))).collect();
    assert_eq!(served, [(0, Ok((1, None))), (1, Ok((1, None)))]);
    assert_eq!((kitchen.workers.in_use(), kitchen.calls.1.usage().granted), (0, 2));
}

#[test]
fn who_is_let_in_and_then_refused_gives_the_units_to_the_next() {
    let (kitchen, clock) = (Kitchen::new(), FakeClock::default());
    let busy = kitchen.workers.try_acquire(2, || Time::ZERO).unwrap();
    let (greedy, modest) = (kitchen.job("a", 1, 1, [5, 1, 0]), kitchen.job("b", 1, 1, [1, 1, 0]));
    let mut tasks = Waiters::new(&clock);
    tasks.pass(Duration::from_secs(1));
    tasks.spawn(greedy.acquire_by(&clock, Duration::from_secs(60), |_| ()));
    tasks.spawn(modest.acquire_by(&clock, Duration::from_secs(60), |_| ()));
    kitchen.calls.0.request(&kitchen.calls.1, "a", 1, 1, at(1.0));
    drop(busy);
    tasks.run();
    let (task, permit) = tasks.finished().remove(0);
    assert_eq!((task, outcome(permit)), (1, Ok((1, None))));
    assert_eq!(kitchen.workers.in_use(), 0);
    tasks.pass(Duration::from_secs(11));
    let (task, permit) = tasks.finished().remove(0);
    assert_eq!((task, outcome(permit)), (0, Ok((1, None))));
}

#[test]
fn who_cannot_be_served_is_told_at_once_and_others_when_their_time_is_over() {
    let clock = FakeClock::default();
    let (rate, none) = (lease(6), Limiter::default());
    let workers = Semaphore::new(Waiting { max_waiters: 1, ..Waiting::DEFAULT });
    let second = Duration::from_secs(1);
    let (huge, idle) =
        (Combination::once().rate(&rate, Price::Once(8)), Combination::once().rate(&none, Price::Once(1)));
    let manned = Combination::once().gauge(&workers, Price::Once(1));
    let mut tasks = Waiters::new(&clock);
    tasks.spawn(huge.acquire_by(&clock, second, |_| ()));
    tasks.spawn(idle.acquire_by(&clock, second * 4, |_| ()));
    tasks.spawn(manned.acquire_by(&clock, second * 4, |_| ()));
    tasks.spawn(manned.acquire_by(&clock, second * 4, |_| ()));
    let told = |tasks: &mut Waiters<'_>| -> Vec<_> {
        let finished = tasks.finished().into_iter();
        finished.map(|(task, permit)| (task, outcome(permit).unwrap_err())).collect()
    };
    let at_once = [
        (0, "part 0 refuses: 8 at once is above the burst of 6".to_owned()),
        (3, "1 are waiting for part 0 already, which is as many as may".to_owned()),
    ];
    assert_eq!(told(&mut tasks), at_once);
    tasks.pass(Duration::from_millis(3_900));
    assert_eq!(told(&mut tasks), []);
    tasks.pass(Duration::from_millis(101));
    let late = "nothing is granted within 4s: part 0 refuses: nothing is leased".to_owned();
    assert_eq!(told(&mut tasks), [(1, late.clone()), (2, late)]);
}

/// Asks for something of the same kitchen when it is woken, on the thread that wakes it.
struct Nosy {
    kitchen: Kitchen,
    granted: AtomicU64,
}

impl Wake for Nosy {
    fn wake(self: Arc<Self>) {
        let (domains, lease) = &self.kitchen.calls;
        let decision = domains.request(lease, "a", 1, 1, at(1.0));
        self.kitchen.disk.try_acquire(1, || at(1.0)).unwrap();
        self.granted.fetch_add(decision.granted.into(), Ordering::SeqCst);
    }
}

/// Three slots are held, one more is waited for, and two copies can be had of all else.
fn check_woken(min: u32, expected: Option<u32>) {
    let nosy = Arc::new(Nosy { kitchen: Kitchen::new(), granted: AtomicU64::new(0) });
    let (kitchen, clock, waker) = (&nosy.kitchen, FakeClock::default(), Waker::from(Arc::clone(&nosy)));
    let slots = gauge(3);
    let permit = slots.try_acquire(3, || at(1.0)).unwrap();
    let mut waiting = pin!(slots.acquire_by(&clock, 1));
    let mut context = Context::from_waker(&waker);
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    let request = Combination::between(min, 3)
        .gauge(&slots, Price::Each(1))
        .domain(&kitchen.calls.0, &kitchen.calls.1, "a", Price::Each(2))
        .rate(&kitchen.disk, Price::Each(2));
    let answer = request.attempt(Held::Permit(0, permit), &|| at(1.0));
    assert_eq!(answer.as_ref().ok().map(TogetherPermit::copies), expected);
    assert_eq!(nosy.granted.load(Ordering::SeqCst), 1, "of min {min}");
    assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
}

#[test]
fn who_is_woken_by_units_that_come_back_finds_no_lock_held() {
    check_woken(1, Some(2));
    check_woken(3, None);
}
