//! The cost of a permit: ours beside governor's direct limiter, in one run, on one thread and on two.
//!
//! Groups:
//!
//! - `plenty`: a rate that is never used up, so that only the cost of granting is seen;
//! - `million`: 1,000,000 a second, asked for as fast as it goes, so that nearly all is denied, by both;
//! - `million_paced`: the same rate on a clock that moves as fast as permits are taken, so that nearly all is granted
//!   and the price of a batch is in the figure (ours only: governor's clock cannot be moved at the same price);
//! - `low`: 500 a second, which is too little for shards, with bursts of six for both: hammered on the real clock, so
//!   that nearly all is denied, and paced on one that moves by a token at each question, so that all is granted (on one
//!   thread; on two, one that comes late may be denied);
//! - `gauge`: a permit for something in flight, taken and given back.
//!
//! Two threads: both do the whole number of iterations at once; the figure is the time until the later one is done, per
//! iteration of one thread. A limiter that scales perfectly shows the same as on one thread. It takes two idle
//! processors: threads that take turns on one do not disturb each other.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use governor::nanos::Nanos;
use governor::{Quota, RateLimiter};
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::clock;
use lessor_client::internals::gauge::Semaphore;
use lessor_client::internals::limiter::Limiter;
use lessor_proto::{Amount, Time};

/// A number of units a second that nobody reaches.
const PLENTY: u32 = u32::MAX;
const MILLION: u32 = 1_000_000;
const LOW: u32 = 500;

/// The same work on one and on two threads.
fn on_one_and_two_threads<M: criterion::measurement::Measurement<Value = Duration>>(
    group: &mut BenchmarkGroup<'_, M>,
    name: &str,
    work: impl Fn() + Sync,
) {
    for threads in [1, 2] {
        group.bench_function(format!("{name}/threads={threads}"), |bencher| {
            bencher.iter_custom(|iterations| on_threads(threads, iterations, &work));
        });
    }
}

/// The longest time any of the threads took, without starting them.
#[expect(clippy::disallowed_methods, reason = "a bench measures with the clock that benches use")]
fn on_threads(threads: usize, iterations: u64, work: &(impl Fn() + Sync)) -> Duration {
    let barrier = Barrier::new(threads);
    let run = || {
        barrier.wait();
        let begun = Instant::now();
        for _ in 0..iterations {
            work();
        }
        begun.elapsed()
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let own = run();
        others.into_iter().filter_map(|thread| thread.join().ok()).fold(own, Duration::max)
    })
}

fn governor_of(per_second: u32) -> governor::DefaultDirectRateLimiter {
    let quota =
        NonZeroU32::new(per_second).map_or_else(|| unreachable!("rates are positive"), Quota::per_second);
    RateLimiter::direct(quota)
}

fn limiter_of(per_second: u32) -> Limiter {
    let limiter = Limiter::default();
    limiter.allow(clock::now(), Allowance::forever(Amount::from_units(u64::from(per_second))));
    limiter
}

fn plenty(c: &mut Criterion) {
    let mut group = c.benchmark_group("plenty");
    let governor = governor_of(PLENTY);
    on_one_and_two_threads(&mut group, "governor", || {
        let _ = black_box(governor.check());
    });
    let limiter = limiter_of(PLENTY);
    on_one_and_two_threads(&mut group, "lessor", || {
        let _ = black_box(limiter.try_acquire(black_box(1), clock::now));
    });
    group.finish();
    let usage = limiter.usage();
    println!("plenty: lessor granted {} of {}", usage.granted, usage.attempted);
}

fn million(c: &mut Criterion) {
    let mut group = c.benchmark_group("million");
    let governor = governor_of(MILLION);
    on_one_and_two_threads(&mut group, "governor", || {
        let _ = black_box(governor.check());
    });
    let limiter = limiter_of(MILLION);
    on_one_and_two_threads(&mut group, "lessor", || {
        let _ = black_box(limiter.try_acquire(black_box(1), clock::now));
    });
    group.finish();
    let usage = limiter.usage();
    println!("million: lessor granted {} of {}", usage.granted, usage.attempted);
}

/// With a clock that costs what ours costs and says what keeps the bucket filled.
fn million_paced(c: &mut Criterion) {
    let mut group = c.benchmark_group("million_paced");
    let limiter = limiter_of(MILLION);
    let time = AtomicU64::new(clock::now().as_nanos());
    // A batch is 312 permits, so this is asked every 313; it lets a little more time pass than that.
    let paced = || {
        black_box(clock::now());
        Time::from_nanos(time.fetch_add(400_000, Ordering::Relaxed))
    };
    on_one_and_two_threads(&mut group, "lessor", || {
        let _ = black_box(limiter.try_acquire(black_box(1), paced));
    });
    group.finish();
    let usage = limiter.usage();
    println!("million_paced: lessor granted {} of {}", usage.granted, usage.attempted);
}

/// A clock that costs what ours costs, and moves by a permit of [`LOW`] each time.
#[derive(Clone, Default)]
struct Paced(Arc<AtomicU64>);

impl Paced {
    fn nanos(&self) -> u64 {
        black_box(clock::now());
        self.0.fetch_add(1_000_000_000 / u64::from(LOW), Ordering::Relaxed)
    }
}

impl governor::clock::Clock for Paced {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.nanos())
    }
}

fn low(c: &mut Criterion) {
    let mut group = c.benchmark_group("low");
    let burst = NonZeroU32::MIN.saturating_add(5);
    let quota = Quota::per_second(NonZeroU32::MIN.saturating_add(LOW - 1)).allow_burst(burst);
    let governor = RateLimiter::direct(quota);
    on_one_and_two_threads(&mut group, "hammered/governor", || {
        let _ = black_box(governor.check());
    });
    let limiter = limiter_of(LOW);
    on_one_and_two_threads(&mut group, "hammered/lessor", || {
        let _ = black_box(limiter.try_acquire(black_box(1), clock::now));
    });
    let governor = RateLimiter::direct_with_clock(quota, Paced::default());
    on_one_and_two_threads(&mut group, "paced/governor", || {
        let _ = black_box(governor.check());
    });
    let (paced, clock) = (Limiter::default(), Paced::default());
    paced.allow(Time::ZERO, Allowance::forever(Amount::from_units(u64::from(LOW))));
    on_one_and_two_threads(&mut group, "paced/lessor", || {
        let _ = black_box(paced.try_acquire(black_box(1), || Time::from_nanos(clock.nanos())));
    });
    group.finish();
    for (name, usage) in [("hammered", limiter.usage()), ("paced", paced.usage())] {
        println!("low: {name}: lessor granted {} of {}", usage.granted, usage.attempted);
    }
}

fn gauge(c: &mut Criterion) {
    let mut group = c.benchmark_group("gauge");
    let gauge = Semaphore::default();
    gauge.allow(clock::now(), Allowance::forever(Amount::from_units(1000)));
    on_one_and_two_threads(&mut group, "lessor", || {
        let _ = black_box(gauge.try_acquire(black_box(1), clock::now));
    });
    group.finish();
}

criterion_group!(benches, plenty, million, million_paced, low, gauge);
criterion_main!(benches);
