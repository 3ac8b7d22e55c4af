//! One decision: a demand changes, and its share is read. The figure to reach is 1 us at 1,000 demands.
//!
//! Three kinds of wants: `fixed`, all equal; `uniform`, nearly all different; `zipf`, few large and many small.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use lessor_algorithms::{Demand, SharePolicy, Shares};

criterion_group!(benches, decisions);
criterion_main!(benches);

fn decisions(criterion: &mut Criterion) {
    for (policy, name) in [(SharePolicy::FairShare, "fair"), (SharePolicy::ProportionalShare, "proportional")]
    {
        let mut group = criterion.benchmark_group(name);
        for (wants, kind) in [(fixed as fn(u64) -> f64, "fixed"), (uniform, "uniform"), (zipf, "zipf")] {
            for len in [100, 1_000, 100_000, 1_000_000] {
                let mut town = Town::new(policy, len, wants);
                group.bench_function(BenchmarkId::new(kind, len), |bencher| {
                    bencher.iter(|| black_box(town.decide()));
                });
            }
        }
    }
}

/// Demands that change one at a time, in no order that a cache could guess.
struct Town {
    shares: Shares,
    demands: Vec<Demand>,
    wants: fn(u64) -> f64,
    changes: u64,
}

impl Town {
    /// The capacity is half of what is wanted.
    fn new(policy: SharePolicy, len: u64, wants: fn(u64) -> f64) -> Town {
        let demands: Vec<Demand> = (0..len)
            .map(|number| Demand { priority: 0, weight: 1, wants: wants(scrambled(number)) })
            .collect();
        let mut shares = Shares::new(policy, 0.0);
        demands.iter().for_each(|demand| shares.insert(demand));
        shares.set_capacity(shares.wants() / 2.0);
        Town { shares, demands, wants, changes: len }
    }

    fn decide(&mut self) -> f64 {
        self.changes += 1;
        let dice = scrambled(self.changes);
        let at = (dice % self.demands.len() as u64) as usize;
        let demand = &mut self.demands[at];
        self.shares.remove(demand);
        demand.wants = (self.wants)(dice);
        self.shares.insert(demand);
        self.shares.share(demand)
    }
}

fn fixed(_: u64) -> f64 {
    10.0
}

fn uniform(dice: u64) -> f64 {
    fraction(dice) * 100.0
}

/// The size of a rank drawn at random among a million, where size is the million divided by rank.
fn zipf(dice: u64) -> f64 {
    1e6 / (fraction(dice) * 1e6).ceil().max(1.0)
}

/// In [0, 1).
fn fraction(dice: u64) -> f64 {
    (dice >> 11) as f64 / (1u64 << 53) as f64
}

/// Splitmix64.
fn scrambled(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
