//! Jobs that need several things at once: `cargo run --example jobs -- 127.0.0.1:15000`, with a server on
//! `configs/tenants.yaml`, which learns for a minute at first.
//!
//! Each job holds a worker and takes ten queries of its tenant, and is a call of a guest. None of it is taken as long as any
//! of it lacks.

use std::time::Duration;

use lessor_client::{Client, Price, Together};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:15000".to_owned());
    let client = Client::builder(server).connect().await?;
    let workers = client.gauge("search/workers").wants(2.0).open()?;
    let queries = client.rate("search/queries").wants(1000.0).burst(Duration::from_millis(100)).open()?;
    let calls = client.rate("partners/calls").wants(100.0).open()?;
    for round in 0..12 {
        let jobs = Together::between(1, 5)
            .gauge(&workers, Price::Once(1))
            .domain(&queries, "tenant-42", Price::Each(10))
            .domain(&calls, "guest-1", Price::Each(1))
            .max_wait(Duration::from_secs(90)); // a server grants nothing in its first minute
        let permit = jobs.acquire().await?;
        println!("round {round}: {} jobs run", permit.copies());
        drop(permit); // the worker is free again
    }
    client.close().await;
    Ok(())
}
