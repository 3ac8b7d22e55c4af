//! The cost of a request of several things, beside the same things one by one, which is not all or nothing.
//!
//! A worker, and a hit of each of two resources for the same domain, with the tiers of the bench `domain`, which are never
//! full. The worker comes back at once. `threads=2`: both do the whole number of iterations; the figure is the time until the
//! later one is done.

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::clock;
use lessor_client::internals::domain::{Domains, Policies, Rules};
use lessor_client::internals::gauge::Semaphore;
use lessor_client::internals::limiter::Limiter;
use lessor_client::internals::together::Combination;
use lessor_client::{DomainOptions, Price};
use lessor_proto::Time;

const MUCH: Allowance = Allowance::new(None, Time::MAX);

fn domains() -> (Domains, Limiter) {
    let tier = |limit, seconds, cooldown| Tier {
        limit,
        window: Duration::from_secs(seconds),
        active: Duration::from_secs(seconds),
        cooldown: Duration::from_secs(cooldown),
        is_skippable: false,
        kind: Window::Sliding { slices: 10 },
    };
    let policy = TierPolicy::new(vec![tier(u32::MAX / 10, 1, 0), tier(u32::MAX, 5, 15)], None, None);
    let contract = policy.map(Contract::from).unwrap_or_else(|_| unreachable!("it holds together"));
    let rules = Rules { default: Some(contract), ..Rules::default() };
    let domains = Domains::new(DomainOptions::default());
    domains.follow(Policies::new(rules).ok().map(Arc::new));
    let lease = Limiter::default();
    lease.allow(clock::now(), MUCH);
    (domains, lease)
}

/// The longest time any of the threads took.
#[expect(clippy::disallowed_methods, reason = "a bench measures with the clock that benches use")]
fn on_threads(threads: usize, iterations: u64, work: &(impl Fn(usize) + Sync)) -> Duration {
    let barrier = Barrier::new(threads);
    let run = |thread| {
        barrier.wait();
        let begun = Instant::now();
        (0..iterations).for_each(|_| work(thread));
        begun.elapsed()
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let own = run(0);
        others.into_iter().filter_map(|thread| thread.join().ok()).fold(own, Duration::max)
    })
}

fn job(c: &mut Criterion) {
    let mut group = c.benchmark_group("job");
    let ((calls, call_lease), (queries, query_lease), workers) = (domains(), domains(), Semaphore::default());
    workers.allow(clock::now(), MUCH);
    let tenants = ["tenant-1", "tenant-2"];
    let together = tenants.map(|tenant| {
        Combination::once()
            .gauge(&workers, Price::Once(1))
            .domain(&calls, &call_lease, tenant, Price::Each(1))
            .domain(&queries, &query_lease, tenant, Price::Each(1))
    });
    for threads in [1, 2] {
        group.bench_function(format!("together/threads={threads}"), |bencher| {
            bencher.iter_custom(|iterations| {
                on_threads(threads, iterations, &|thread| {
                    let permit = together[thread].try_acquire(clock::now);
                    assert!(black_box(permit).is_ok());
                })
            });
        });
        group.bench_function(format!("one_by_one/threads={threads}"), |bencher| {
            bencher.iter_custom(|iterations| {
                on_threads(threads, iterations, &|thread| {
                    let worker = workers.try_acquire(1, clock::now);
                    black_box(calls.request(&call_lease, tenants[thread], 1, 1, clock::now()));
                    black_box(queries.request(&query_lease, tenants[thread], 1, 1, clock::now()));
                    assert!(black_box(worker).is_ok());
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, job);
criterion_main!(benches);
