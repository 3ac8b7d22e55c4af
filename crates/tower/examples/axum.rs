//! A search service whose tenants keep to their policies, in axum. In three terminals:
//!
//! ```console
//! $ lessor serve --config configs/tenants.yaml --listen 127.0.0.1:15000 --state-dir /tmp/lessor
//! $ cargo run -p lessor-tower --example axum -- 127.0.0.1:15000 127.0.0.1:8080
//! $ curl -i -H 'x-tenant: tenant-42' http://127.0.0.1:8080/search
//! ```
//!
//! At its first start the server learns for a minute what is out from before, and leases nothing new. Until then a search is
//! answered with 503, that reason, and the rest of the minute in `Retry-After`. At a later start who holds something keeps what
//! it uses.
//!
//! The policies of tenants, in which windows each may do how much, stand in the server's file. A search turns out to cost what
//! it has found.

use axum::Router;
use axum::http::response::Parts;
use axum::response::{AppendHeaders, IntoResponse};
use axum::routing::get;
use lessor_client::{Client, Gauge, Rate};
use lessor_tower::{Header, InFlightLayer, LimitLayer};
use tokio::net::TcpListener;

/// The header in which a search says what it cost.
const COST: &str = "x-cost";

/// The service behind its limits: the last layer is the first to be asked.
pub(crate) fn app(queries: Rate, workers: Gauge) -> Router {
    Router::new()
        .route("/search", get(search))
        .layer(InFlightLayer::new(workers))
        .layer(LimitLayer::new(queries, Header::new("x-tenant")).settle(cost).name("tenant"))
}

async fn search() -> impl IntoResponse {
    (AppendHeaders([(COST, "2")]), "two were found\n")
}

fn cost(answer: &Parts) -> u32 {
    let cost = answer.headers.get(COST).and_then(|cost| cost.to_str().ok());
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().unwrap_or_else(|| "127.0.0.1:15000".to_owned());
    let listen = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let client = Client::builder(server).connect().await?;
    let queries = client.rate("search/queries").open()?;
    // Said and not measured: where two searches come at once there is a worker for the second one as well.
    let workers = client.gauge("search/workers").wants(8.0).open()?;
    let mut lease = queries.clone();
    tokio::spawn(async move {
        while let Ok(lease) = lease.changed().await {
            println!("search/queries: {lease}");
        }
    });
    let listener = TcpListener::bind(listen).await?;
    let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    axum::serve(listener, app(queries, workers)).with_graceful_shutdown(stop).await?;
    client.close().await;
    Ok(())
}
