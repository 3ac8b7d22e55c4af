//! A service of gRPC, the health service, whose callers keep to a limit each:
//! `cargo run -p lessor-tower --example tonic -- 127.0.0.1:15000 127.0.0.1:8081`, with a server on
//! `configs/tenants.yaml`, which learns for a minute at first.
//!
//! A call beyond the limit of its address is answered with `RESOURCE_EXHAUSTED`, and with a `RetryInfo` that says when to come
//! again.

use lessor_client::{Client, Rate};
use lessor_tower::{Grpc, LimitLayer, PeerIp};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// Serves until `stop` ends.
pub(crate) async fn serve(
    listener: TcpListener,
    calls: Rate,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let (_reporter, health) = tonic_health::server::health_reporter();
    Server::builder()
        .layer(LimitLayer::new(calls, PeerIp::new()).answer(Grpc))
        .add_service(health)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), stop)
        .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().unwrap_or_else(|| "127.0.0.1:15000".to_owned());
    let listen = arguments.next().unwrap_or_else(|| "127.0.0.1:8081".to_owned());
    let client = Client::builder(server).connect().await?;
    let calls = client.rate("search/queries").open()?;
    let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    serve(TcpListener::bind(listen).await?, calls, stop).await?;
    client.close().await;
    Ok(())
}
