//! The cost of a request of a domain: tiers and lease together, beside governor's keyed limiter in the same run.
//!
//! Domains are `tenant-0` to `tenant-999999`, asked in an order that jumps, but their names lie in that order, as if each had
//! just been read: what is measured is not the search for a name. Ours: two tiers (5 a second, or 50 in five
//! seconds) over a lease that is never used up; all that is asked is granted on a clock that moves on, or nearly nothing.
//! Governor: five a second for each key, of type `String` as well; so most are refused.
//!
//! Times are those on a processor, as the kernel counts them for each thread, so that others who use the machine are not
//! counted, nor is waiting for a lock while somebody else holds it. `threads=2`: both do the whole number of iterations; the
//! figure is the time of the one that took longer.
//!
//! `snapshot` is a look at all domains for the ten busiest, in time that passes for all.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use governor::{Quota, RateLimiter};
use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::DomainOptions;
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::clock;
use lessor_client::internals::domain::{Domains, Policies, Rules};
use lessor_client::internals::limiter::Limiter;
use lessor_client::snapshot::Query;
use lessor_proto::Time;
use rustix::time::{ClockId, clock_gettime};

/// The numbers of domains that are measured.
const MANY: [usize; 3] = [1, 10_000, 1_000_000];
/// Prime, so that all domains are asked in turn.
const JUMP: u64 = 7_368_787;
/// Locks, as many as we have.
const SHARDS: usize = 64;

fn domains(limit: u32) -> Domains {
    let tier = |limit, seconds, cooldown| Tier {
        limit,
        window: Duration::from_secs(seconds),
        active: Duration::from_secs(seconds),
        cooldown: Duration::from_secs(cooldown),
        is_skippable: false,
        kind: Window::Sliding { slices: 10 },
    };
    let policy = TierPolicy::new(vec![tier(limit, 1, 0), tier(limit.saturating_mul(10), 5, 15)], None, None);
    let contract = policy.map(Contract::from).unwrap_or_else(|_| unreachable!("it holds together"));
    let rules = Rules { default: Some(contract), ..Rules::default() };
    let policies = Policies::new(rules).unwrap_or_else(|_| unreachable!("there is nothing twice"));
    let domains = Domains::new(DomainOptions { most: 4_000_000, ..DomainOptions::default() });
    domains.follow(Some(Arc::new(policies)));
    domains
}

fn lease() -> Limiter {
    let limiter = Limiter::default();
    limiter.allow(clock::now(), Allowance::new(None, Time::MAX));
    limiter
}

/// As large as the record of a domain, and as much of it is written.
#[repr(align(64))]
#[derive(Clone)]
struct Bare([u64; 16]);

/// Records without anything in them, in shards with a lock each, as many as a table of `many` domains has places.
fn bare(many: usize) -> Vec<Mutex<Vec<Bare>>> {
    (0..SHARDS).map(|_| Mutex::new(vec![Bare([1; 16]); (2 * many / SHARDS).max(1)])).collect()
}

/// The least that a request of a domain can be: its name is hashed, a shard is locked, and one record is read and written, where
/// the hash says. No name is compared, no clock is read and nothing is decided.
fn touch(table: &[Mutex<Vec<Bare>>], hasher: &RandomState, name: &str) -> u64 {
    let hash = hasher.hash_one(name);
    let Ok(mut shard) = table[(hash >> 40) as usize % SHARDS].lock() else { return 0 };
    let place = ((u64::from(hash as u32) * shard.len() as u64) >> 32) as usize;
    let Bare(words) = &mut shard[place];
    words[0] += 1;
    words[15] += words[0];
    words[15]
}

/// The time for which this thread has been on a processor.
fn on_processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The longest time any of the threads took.
fn on_threads(threads: usize, iterations: u64, work: &(impl Fn(u64) + Sync)) -> Duration {
    let barrier = Barrier::new(threads);
    let next = AtomicU64::new(0);
    let run = || {
        barrier.wait();
        let from = next.fetch_add(iterations, Ordering::Relaxed);
        let begun = on_processor();
        (from..from + iterations).for_each(work);
        on_processor().saturating_sub(begun)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let own = run();
        others.into_iter().filter_map(|thread| thread.join().ok()).fold(own, Duration::max)
    })
}

fn request(c: &mut Criterion) {
    let mut group = c.benchmark_group("domain");
    for many in MANY {
        let names: Vec<String> = (0..many).map(|number| format!("tenant-{number}")).collect();
        let place = |turn: u64| usize::try_from(turn % many as u64).unwrap_or(0);
        let asked: Vec<String> = (0..many as u64).map(|turn| names[place(turn * JUMP)].clone()).collect();
        let name = |turn: u64| &asked[place(turn)];
        for (what, limit) in [("granted", u32::MAX / 10), ("mostly_refused", 5)] {
            let (domains, lease, before) = (domains(limit), lease(), resident());
            for name in &names {
                domains.request(&lease, name, 1, 1, clock::now());
            }
            let grown = resident().saturating_sub(before);
            println!("{many} domains take {:.0} bytes each after one request", grown as f64 / many as f64);
            for threads in [1, 2] {
                group.bench_function(format!("lessor/{what}/domains={many}/threads={threads}"), |bencher| {
                    bencher.iter_custom(|iterations| {
                        on_threads(threads, iterations, &|turn| {
                            black_box(domains.request(&lease, black_box(name(turn)), 1, 1, clock::now()));
                        })
                    });
                });
            }
        }
        let (domains, lease) = (domains(5), lease());
        for name in &names {
            domains.request(&lease, name, 1, 1, clock::now());
        }
        group.bench_function(format!("lessor/snapshot/domains={many}"), |bencher| {
            bencher.iter(|| black_box(domains.snapshot(&Query::busiest(10), clock::now())));
        });
        let (table, hasher) = (bare(many), RandomState::default());
        group.bench_function(format!("bare/domains={many}/threads=1"), |bencher| {
            bencher.iter_custom(|iterations| {
                on_threads(1, iterations, &|turn| {
                    black_box(touch(&table, &hasher, black_box(name(turn))));
                })
            });
        });
        group.bench_function(format!("bare_with_clock/domains={many}/threads=1"), |bencher| {
            bencher.iter_custom(|iterations| {
                on_threads(1, iterations, &|turn| {
                    black_box(clock::now());
                    black_box(touch(&table, &hasher, black_box(name(turn))));
                })
            });
        });
        drop(table);
        governor(&mut group, &names, name);
    }
    group.finish();
}

/// The same by a keyed limiter of governor.
fn governor<'a>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    names: &[String],
    name: impl Fn(u64) -> &'a String + Sync,
) {
    let governor = RateLimiter::keyed(Quota::per_second(NonZeroU32::MIN.saturating_add(4)));
    for name in names {
        let _ = governor.check_key(name);
    }
    for threads in [1, 2] {
        group.bench_function(format!("governor/domains={}/threads={threads}", names.len()), |bencher| {
            bencher.iter_custom(|iterations| {
                on_threads(threads, iterations, &|turn| {
                    let _ = black_box(governor.check_key(black_box(name(turn))));
                })
            });
        });
    }
}

/// Bytes of this process in memory.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

criterion_group!(benches, request);
criterion_main!(benches);
