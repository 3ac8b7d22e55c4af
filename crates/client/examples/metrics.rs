//! A worker whose figures Prometheus can read: `cargo run -p lessor-client --features prometheus --example metrics -- ADDRESS`,
//! with a server on `configs/tenants.yaml`. It prints the page that a handler of `/metrics` would answer with.

use std::error::Error;
use std::time::Duration;

use lessor_client::Client;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:15000".to_owned());
    let client = Client::builder(address).id("worker-1").connect().await?;
    let mut registry = Registry::default();
    // The ten busiest domains of each rate have figures of their own.
    registry.register_collector(Box::new(client.collector(10)));

    let searches = client.rate("search/queries").max_wait(Duration::from_secs(5)).open()?;
    for search in 0..20 {
        let tenant = if search % 4 == 0 { "tenant-1" } else { "tenant-2" };
        // A denial is counted too.
        let _ = searches.domain(tenant).acquire(1).await;
    }
    let mut page = String::new();
    encode(&mut page, &registry)?;
    print!("{page}");
    client.close().await;
    Ok(())
}
