//! A worker that keeps to its share of a database: `cargo run --example worker -- 127.0.0.1:15000`.

use lessor_client::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:15000".to_owned());
    let client = Client::builder(server).connect().await?;
    let queries = client.rate("db-orders").open()?;
    for job in 0..100 {
        queries.acquire(1).await?;
        println!("job {job} runs at {:?} a second", queries.lease().capacity);
    }
    client.close().await;
    Ok(())
}
