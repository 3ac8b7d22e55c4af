//! A burst of requests of one tenant, of which no more pass than there may be in any minute, whoever else serves the tenant:
//! `cargo run --example windows -- 127.0.0.1:15000 tenant-42`, with `configs/windows.yaml`.

use lessor_client::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().unwrap_or_else(|| "127.0.0.1:15000".to_owned());
    let tenant = arguments.next().unwrap_or_else(|| "tenant-42".to_owned());
    let client = Client::builder(server).connect().await?;
    let requests = client.windows("api/").open()?;
    let mut passed = 0;
    for _ in 0..150 {
        match requests.acquire(&tenant, 1).await {
            Ok(()) => passed += 1,
            Err(denied) if denied.is_over_limit() => {
                println!("{passed} passed; the next one after {:?}: {denied}", denied.retry_after());
                break;
            }
            Err(denied) => {
                println!("503, {denied}");
                break;
            }
        }
    }
    if let Some(usage) = requests.usage(&tenant) {
        println!("{} uses count here, of {} that are leased", usage.uses, usage.leased);
    }
    Ok(())
}
