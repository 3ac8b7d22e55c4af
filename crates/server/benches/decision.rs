//! The cost of one decision in process: a holder that is known acknowledges its last grant, wants something else, and
//! is answered, at 100 to 1,000,000 leases of one resource.
//!
//! `cargo bench -p lessor-server --bench decision`

mod population;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use lessor_proto::message::Has;
use lessor_proto::{Incarnation, Time};
use rand::RngExt;

use population::{Population, Wants, ask};

fn decision(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    for wants in [Wants::Fixed, Wants::Uniform, Wants::Zipf] {
        for leases in [100, 1_000, 100_000, 1_000_000] {
            let mut town = Population::new(leases, wants);
            // One request, filled in anew each time, as one that comes off the wire lies in the cache.
            let mut request = ask(0, 0.0);
            let mut now = Time::ZERO + Duration::from_secs(1);
            group.bench_function(BenchmarkId::new(wants.name(), leases), |bencher| {
                bencher.iter(|| {
                    let which = town.dice.random_range(0..leases);
                    request.holder = town.holders[which].clone();
                    request.incarnation = Some(Incarnation(which as u64));
                    let report = &mut request.reports[0];
                    report.bands[0].wants = wants.draw(&mut town.dice);
                    report.has = town.leases[which].map(|(capacity, order)| Has {
                        capacity,
                        order: Some(order),
                        token: Vec::new(),
                        lasts: None,
                        expiry: 0,
                    });
                    now += Duration::from_micros(1);
                    let answer = town.node.ask(now, &request).expect("a template covers it");
                    let grant = &answer.grants[0];
                    town.leases[which] = grant.order.map(|order| (grant.capacity, order));
                    black_box(grant.capacity)
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, decision);
criterion_main!(benches);
