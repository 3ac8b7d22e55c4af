//! A crowd, to have something to look at in the console: `cargo run --example crowd -- SERVER NAME CLIENTS`, with servers on
//! `configs/tenants.yaml`. Clients want this and that in turn, some of greater priority, and tenants ask within what they lease.

use std::error::Error;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::{Client, Gauge, Rate};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// One of the crowd.
struct Member {
    queries: Rate,
    charges: Rate,
    _workers: Gauge,
    /// The greatest of its wants.
    appetite: f64,
    _client: Client,
}

const TENANTS: [(&str, u32); 6] =
    [("acme", 9), ("bigco", 4), ("initech", 2), ("hooli", 1), ("trial-7", 1), ("umbrella", 3)];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().unwrap_or_else(|| "127.0.0.1:15000".to_owned());
    let name = arguments.next().unwrap_or_else(|| "web".to_owned());
    let count: usize = arguments.next().map_or(Ok(12), |count| count.parse())?;
    let mut dice = Pcg64::seed_from_u64(name.bytes().map(u64::from).sum());
    let mut crowd = Vec::new();
    for number in 0..count {
        let client = Client::builder(&*server).id(format!("{name}-{number}")).build()?;
        let priority = if number % 9 == 4 { 9 } else { 0 };
        // Few want much, and many want little.
        let appetite = 300.0 / (1.0 + number as f64 * 0.7) + dice.random_range(4.0..20.0);
        let queries = client.rate("search/queries").wants(appetite).priority(priority).open()?;
        let charges = client.rate("partners/calls").wants(appetite / 9.0).open()?;
        let workers = client.gauge("search/workers").wants(1.0).open()?;
        crowd.push(Member { queries, charges, _workers: workers, appetite, _client: client });
    }
    let mut next = clock::now();
    for round in 0_u64.. {
        next += Duration::from_millis(100);
        clock::sleep_until(next).await;
        let member = &crowd[dice.random_range(0..crowd.len())];
        let swing = 0.75 + 0.25 * (round as f64 / 90.0).sin() + dice.random_range(-0.12..0.12);
        member.queries.set_wants(member.appetite * swing);
        member.charges.set_wants(member.appetite / 9.0 * swing);
        for (tenant, eagerness) in TENANTS {
            for _ in 0..dice.random_range(0..=eagerness) {
                // A denial is what it comes for as well.
                let _ = crowd[dice.random_range(0..crowd.len())].queries.domain(tenant).try_acquire(1);
            }
        }
    }
    Ok(())
}
