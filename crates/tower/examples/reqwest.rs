//! A program that keeps to what it may ask of others: `cargo run -p lessor-tower --example reqwest -- 127.0.0.1:15000
//! http://127.0.0.1:8080/search`, with a server on `configs/tenants.yaml` (which learns for a minute at first) and
//! the example `axum`.
//!
//! All programs that open the same rate share it, and whoever answers with `Retry-After` is left alone for so long.

use std::time::Duration;

use lessor_client::{Client, Rate};
use lessor_tower::reqwest::Middleware;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

/// A client of HTTP whose requests wait for a unit each.
pub(crate) fn http(calls: Rate) -> ClientWithMiddleware {
    ClientBuilder::new(Default::default()).with(Middleware::new(calls)).build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().unwrap_or_else(|| "127.0.0.1:15000".to_owned());
    let url = arguments.next().unwrap_or_else(|| "http://127.0.0.1:8080/search".to_owned());
    let client = Client::builder(server).connect().await?;
    let calls = client.rate("search/queries").max_wants(20.0).max_wait(Duration::from_secs(90)).open()?;
    let http = http(calls);
    for call in 0..100 {
        let answer = http.get(&url).header("x-tenant", "tenant-42").send().await?;
        println!("call {call}: {}", answer.status());
    }
    client.close().await;
    Ok(())
}
