//! One decision of a domain out of many, beside governor's keyed limiter in the same run, and what a domain takes in
//! memory. The figures to reach are 150 ns and 100 bytes at 1,000,000 domains.
//!
//! Domains are looked up by number in a map of 64 shards with a lock each, as governor's are in a `DashMap`; both hash as
//! the standard library does. Which domain asks is drawn at random. Time is counted, not read, by both alike.
//!
//! - `rare`: three tiers and a hard limit; each domain asks every thirty seconds, and has nothing in its window of ten;
//! - `often`: the same, every second, so that ten hits count and one is forgotten with each that is made;
//! - `refused`: two tiers, both full; each answer says when to try again.
//!
//! The first two are always granted. `handle` is the same without the map: the domains lie in a vector, each with a lock,
//! as if whoever asks knew where. `read` is what one read costs at random in so many times 128 bytes: a decision takes two
//! reads that wait for each other in the map, in the second of which the domain lies, and a third where it has more than
//! seven facts (`often`); governor's takes two of less memory.
//!
//! Times are those on a processor, as the kernel counts them, so that a machine which others use as well does not count
//! their work, except for what they take of the caches. Two threads: both do the whole number of iterations at once; the
//! figure is the time of the one that took longer, per iteration of one thread.

use std::cell::Cell;
use std::collections::HashMap;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::{Barrier, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use lessor_algorithms::tiers::{Ask, Contract, Domain, Global, Tier, TierPolicy, Window};
use rustix::time::{ClockId, clock_gettime};

const SECOND: u64 = 1_000_000_000;
const SHARDS: usize = 64;
const MILLION: u64 = 1_000_000;

thread_local! {
    /// Each thread has a time of its own, so that they do not disturb each other by counting it.
    static NOW: Cell<u64> = const { Cell::new(0) };
    static DICE: Cell<u64> = const { Cell::new(0) };
    /// The value that was read last.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

fn benches(criterion: &mut Criterion) {
    if std::env::args().all(|argument| argument != "--profile-time") {
        memory();
    }
    for domains in [1, 10_000, MILLION] {
        // Whoever asks in turn does so this often.
        granted(criterion, "rare", domains, 30 * SECOND);
        granted(criterion, "often", domains, SECOND);
        refused(criterion, domains);
        read(criterion, domains);
    }
}

fn granted(criterion: &mut Criterion, name: &str, domains: u64, every: u64) {
    let mut group = group(criterion, name, domains);
    let step = every / domains;
    let town = LazyLock::new(|| {
        let town = Town::new(&steady(), domains, Ask::ONE);
        town.settle_in(step);
        town
    });
    let quota = Quota::per_second(NonZeroU32::MIN).allow_burst(most(100));
    let governor = LazyLock::new(|| governor_of(quota, domains));
    let street = LazyLock::new(|| {
        let street = Street::new(&steady(), domains);
        (0..3 * domains).for_each(|_| _ = street.ask(draw(domains), ticked(step)));
        street
    });
    let load = Load { domains, step };
    measure(&mut group, "lessor", load, &town, Town::ask);
    measure(&mut group, "handle", load, &street, Street::ask);
    measure(&mut group, "governor", load, &governor, |governor, domain, _| {
        governor.check_key(&domain).is_ok()
    });
}

fn refused(criterion: &mut Criterion, domains: u64) {
    let mut group = group(criterion, "refused", domains);
    let town = LazyLock::new(|| Town::new(&strict(), domains, Ask::exactly(15)));
    let governor = LazyLock::new(|| governor_of(Quota::per_hour(NonZeroU32::MIN), domains));
    let load = Load { domains, step: 0 };
    measure(&mut group, "lessor", load, &town, Town::ask);
    measure(&mut group, "governor", load, &governor, |governor, domain, _| {
        governor.check_key(&domain).is_ok()
    });
}

/// Each read says where the next one is.
fn read(criterion: &mut Criterion, domains: u64) {
    let mut group = group(criterion, "read", domains);
    let places =
        LazyLock::new(|| (0..16 * domains).map(|place| place.wrapping_mul(31)).collect::<Vec<u64>>());
    measure(&mut group, "memory", Load { domains, step: 0 }, &places, |places, domain, _| {
        let at = domain ^ (LAST.get() & 1);
        LAST.set(places[(16 * at.min(domains - 1)) as usize]);
        true
    });
}

fn group<'a>(criterion: &'a mut Criterion, name: &str, domains: u64) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(format!("{name}/{domains}"));
    group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3)).sample_size(20);
    group
}

criterion_group!(all, benches);
criterion_main!(all);

// === what is measured ===

/// The load on a limiter.
#[derive(Clone, Copy)]
struct Load {
    /// The number of domains, one of which is drawn for each request.
    domains: u64,
    /// The time that goes by between two requests.
    step: u64,
}

/// On one thread and on two; tells how much was granted.
fn measure<L: Sync>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    load: Load,
    limiter: &LazyLock<L, impl FnOnce() -> L>,
    ask: impl Fn(&L, u64, u64) -> bool + Sync,
) {
    for threads in [1, 2] {
        let asked = Mutex::new((0, 0));
        group.bench_function(format!("{name}/threads={threads}"), |bencher| {
            let limiter = LazyLock::force(limiter);
            let ask = |domain, now| ask(limiter, domain, now);
            bencher.iter_custom(|iterations| on_threads(threads, iterations, load, &ask, &asked));
        });
        let (granted, asked) = asked.into_inner().unwrap_or_else(PoisonError::into_inner);
        if asked > 0 {
            println!("{name}: {:.4} granted", granted as f64 / asked as f64);
        }
    }
}

/// The longest time any of the threads took, without starting them.
fn on_threads(
    threads: u64,
    iterations: u64,
    load: Load,
    ask: &(impl Fn(u64, u64) -> bool + Sync),
    asked: &Mutex<(u64, u64)>,
) -> Duration {
    let barrier = Barrier::new(threads as usize);
    let begins = NOW.get();
    let run = |thread: u64| {
        NOW.set(begins);
        DICE.set(begins.wrapping_mul(31).wrapping_add(thread));
        barrier.wait();
        let begun = on_processor();
        let mut granted = 0;
        for _ in 0..iterations {
            granted += u64::from(black_box(ask(draw(load.domains), ticked(load.step * threads))));
        }
        let took = on_processor().saturating_sub(begun);
        let mut sum = asked.lock().unwrap_or_else(PoisonError::into_inner);
        *sum = (sum.0 + granted, sum.1 + iterations);
        took
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let own = run(0);
        others.into_iter().filter_map(|thread| thread.join().ok()).fold(own, Duration::max)
    })
}

/// The time after it has gone on by a step.
fn ticked(step: u64) -> u64 {
    let now = NOW.get() + step;
    NOW.set(now);
    now
}

/// The time for which this thread has been on a processor.
fn on_processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Splitmix64.
fn draw(below: u64) -> u64 {
    let state = DICE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    DICE.set(state);
    let mut x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % below
}

/// Domains of one resource.
struct Town {
    contract: Contract,
    shards: Vec<Mutex<Shard>>,
    domains: u64,
}

/// With a count of all hits each, lest all threads wait for one.
#[derive(Default)]
struct Shard {
    domains: HashMap<u64, Domain>,
    all: Global,
}

// === impl Town ===

impl Town {
    /// Each of whose domains has asked once.
    fn new(contract: &Contract, domains: u64, first: Ask) -> Town {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let town = Town { contract: contract.clone(), shards, domains };
        let now = NOW.get();
        (0..domains)
            .for_each(|domain| assert!(town.request(domain, now, first), "there is room for {first:?}"));
        town
    }

    /// Lets each ask until its window is as full as it gets.
    fn settle_in(&self, step: u64) {
        (0..3 * self.domains).for_each(|_| _ = self.ask(draw(self.domains), ticked(step)));
    }

    fn ask(&self, domain: u64, now: u64) -> bool {
        self.request(domain, now, Ask::ONE)
    }

    fn request(&self, domain: u64, now: u64, ask: Ask) -> bool {
        let shard = &self.shards[domain as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let Shard { domains, all } = &mut *shard;
        let domain = domains.entry(domain).or_default();
        black_box(domain.request(&self.contract, all, now, ask)).granted > 0
    }
}

/// Domains that are found by their place.
struct Street {
    contract: Contract,
    domains: Vec<Mutex<Domain>>,
    alls: Vec<Mutex<Global>>,
}

// === impl Street ===

impl Street {
    /// Of as many domains, none of which has asked.
    fn new(contract: &Contract, domains: u64) -> Street {
        let domains = (0..domains).map(|_| Mutex::default()).collect();
        let alls = (0..SHARDS).map(|_| Mutex::default()).collect();
        Street { contract: contract.clone(), domains, alls }
    }

    fn ask(&self, domain: u64, now: u64) -> bool {
        let all = &self.alls[domain as usize % SHARDS];
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut domain = self.domains[domain as usize].lock().unwrap_or_else(PoisonError::into_inner);
        black_box(domain.request(&self.contract, &mut all, now, Ask::ONE)).granted > 0
    }
}

// === policies ===

fn tier(limit: u32, window: u64, active: u64, cooldown: u64) -> Tier {
    let [window, active, cooldown] = [window, active, cooldown].map(Duration::from_secs);
    Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact }
}

fn contract(tiers: Vec<Tier>, hard: Option<u32>) -> Contract {
    let policy = TierPolicy::new(tiers, hard, None);
    Contract::from(policy.unwrap_or_else(|error| unreachable!("{error}")))
}

/// That of section 11 of the protocol.
fn steady() -> Contract {
    let skippable = Tier { is_skippable: true, ..tier(400, 10, 15, 120) };
    contract(vec![tier(100, 10, 60, 0), tier(200, 10, 30, 60), skippable], Some(80))
}

/// Fifteen, and then nothing for a while.
fn strict() -> Contract {
    contract(vec![tier(5, 600, 600, 0), tier(10, 600, 600, 600)], None)
}

type Governor = RateLimiter<u64, DashMapStateStore<u64>, Counted, NoOpMiddleware<Nanos>>;

/// The time of this thread, for governor.
#[derive(Clone, Debug)]
struct Counted;

impl Clock for Counted {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        NOW.get().into()
    }
}

/// That has been asked once by each domain.
fn governor_of(quota: Quota, domains: u64) -> Governor {
    let governor = RateLimiter::dashmap_with_clock(quota, Counted);
    (0..domains).for_each(|domain| assert!(governor.check_key(&domain).is_ok(), "it is the first"));
    governor
}

fn most(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

// === memory ===

/// Prints the bytes that a domain takes in each state, of a million in a vector: by its own account, and as the
/// resident set grows.
fn memory() {
    let contract = steady();
    let tell = |name: &str, live: &dyn Fn(&mut Domain, &mut Global)| {
        let before = resident();
        let domains = (0..MILLION).map(|_| {
            let mut domain = Domain::new();
            live(&mut domain, &mut Global::default());
            domain
        });
        let domains: Vec<Domain> = domains.collect();
        let own: usize = domains.iter().map(|domain| size_of::<Domain>() + domain.heap_bytes()).sum();
        let grown = resident().saturating_sub(before);
        let each = |bytes: usize| bytes as f64 / MILLION as f64;
        println!("{name:28} {:6.1} bytes a domain, {:6.1} with the allocator's", each(own), each(grown));
        // What is given back would be missing from the growth of the next.
        std::mem::forget(domains);
    };
    let ask = |domain: &mut Domain, all: &mut Global, at: u64, copies: u32| {
        domain.request(&contract, all, at * SECOND, Ask::up_to(copies))
    };
    tell("idle", &|domain, all| {
        ask(domain, all, 0, 1);
        domain.rest(&contract, 300 * SECOND);
    });
    tell("quiet after one hit", &|domain, all| {
        ask(domain, all, 0, 1);
        domain.rest(&contract, 2 * SECOND);
    });
    tell("in cooldown after a burst", &|domain, all| {
        (0..5).for_each(|at| _ = ask(domain, all, 2 * at, 80));
        domain.rest(&contract, 59 * SECOND);
    });
    tell("busy, one hit a second", &|domain, all| (0..30).for_each(|at| _ = ask(domain, all, at, 1)));
    tell("busy, 80 hits every second", &|domain, all| (0..60).for_each(|at| _ = ask(domain, all, at, 80)));
}

/// Bytes of this process in memory.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}
