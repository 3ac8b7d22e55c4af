//! Unary `GetCapacity` calls a second, against a bare tonic echo of the same messages in the same run: both over
//! loopback, in one process with the load generator, by turns, with the same transport settings.
//!
//! `cargo bench -p lessor-server --bench unary`

#[allow(dead_code, reason = "the decision bench uses the rest")]
mod population;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::capacity_server::{Capacity, CapacityServer};
use lessor_proto::{Amount, Epoch, wire};
use lessor_server::node::NodeConfig;
use lessor_server::shell::{Server, ServerOptions};
use tokio::net::TcpListener;
use tonic::transport::Channel;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use population::repository;

const CONNECTIONS: usize = 4;
/// Calls under way on each connection.
const DEPTH: usize = 16;
/// Short, and many by turns, so that what else the machine does falls on both alike.
const TURN: Duration = Duration::from_millis(400);
const TURNS: usize = 25;

/// Answers what every client wants, without looking further.
struct Echo;

#[tonic::async_trait]
impl Capacity for Echo {
    type SessionStream = tokio_stream::Empty<Result<wire::SessionDown, Status>>;

    async fn session(
        &self,
        _: Request<tonic::Streaming<wire::SessionUpRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        Err(Status::unimplemented("an echo"))
    }

    async fn discovery(
        &self,
        _: Request<wire::DiscoveryRequest>,
    ) -> Result<Response<wire::DiscoveryResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }

    async fn get_capacity(
        &self,
        request: Request<wire::GetCapacityRequest>,
    ) -> Result<Response<wire::GetCapacityResponse>, Status> {
        let request = request.into_inner();
        let response = request.resource.into_iter().map(|resource| {
            let lease = wire::Lease {
                expiry_time: Some(1_800_000_000),
                refresh_interval: Some(5),
                capacity: resource.wants,
                epoch: Some(1),
                seq: Some(1),
                duration_ms: Some(60_000),
                token: Some(vec![0; 8]),
                ..wire::Lease::default()
            };
            wire::ResourceResponse {
                resource_id: resource.resource_id.unwrap_or_default(),
                gets: lease,
                safe_capacity: Some(1.0),
                domains: None,
            }
        });
        Ok(Response::new(wire::GetCapacityResponse {
            response: response.collect(),
            epoch: Some(1),
            ..wire::GetCapacityResponse::default()
        }))
    }

    async fn get_server_capacity(
        &self,
        _: Request<wire::GetServerCapacityRequest>,
    ) -> Result<Response<wire::GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }

    async fn release_capacity(
        &self,
        _: Request<wire::ReleaseCapacityRequest>,
    ) -> Result<Response<wire::ReleaseCapacityResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }
}

#[tokio::main]
async fn main() {
    println!("{:>8} {:>12} {:>12} {:>7} (quartiles)", "clients", "echo calls/s", "calls/s", "ratio");
    for clients in [10, 1_000, 10_000, 100_000] {
        let echo = echo().await;
        let server = server().await;
        let (echo, ours) = (Load::new(echo, clients).await, Load::new(server.address(), clients).await);
        // Everybody has a lease, and connections are warm.
        ours.every_client_once().await;
        echo.run().await;
        let mut ratios = Vec::new();
        let mut sums = (0.0, 0.0);
        for _ in 0..TURNS {
            let (peer, own) = (echo.run().await, ours.run().await);
            ratios.push(own / peer);
            sums = (sums.0 + peer, sums.1 + own);
        }
        ratios.sort_by(f64::total_cmp);
        let (low, middle, high) = (ratios[TURNS / 4], ratios[TURNS / 2], ratios[TURNS * 3 / 4]);
        let (peer, own) = (sums.0 / TURNS as f64, sums.1 / TURNS as f64);
        println!("{clients:>8} {peer:>12.0} {own:>12.0} {middle:>7.3} ({low:.3} to {high:.3})");
        server.drain().await;
    }
}

async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    // The transport of the server, which looks for dead connections: the ratio is about what is behind it.
    let server = tonic::transport::Server::builder()
        .accept_http1(true)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .max_concurrent_streams(Some(1_000))
        .initial_connection_window_size(Some(4 << 20))
        .add_service(CapacityServer::new(Echo));
    tokio::spawn(server.serve_with_incoming(incoming));
    address
}

async fn server() -> Server {
    let options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    let capacity = Amount::from_units(1_000_000);
    Server::start(options, NodeConfig::new("root", Epoch(1)), repository(capacity)).await.expect("a port")
}

/// A load generator with its own connections.
struct Load {
    channels: Vec<Channel>,
    clients: Arc<Vec<wire::GetCapacityRequest>>,
}

impl Load {
    async fn new(server: SocketAddr, clients: usize) -> Load {
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            let endpoint =
                Channel::from_shared(format!("http://{server}")).expect("an address").tcp_nodelay(true);
            channels.push(endpoint.connect().await.expect("it listens"));
        }
        Load { channels, clients: Arc::new((0..clients).map(request).collect()) }
    }

    async fn every_client_once(&self) {
        let mut client = CapacityClient::new(self.channels[0].clone());
        for request in self.clients.iter() {
            client.get_capacity(request.clone()).await.expect("it answers");
        }
    }

    /// Calls a second over one turn.
    async fn run(&self) -> f64 {
        let calls = Arc::new(AtomicU64::new(0));
        let start = clock::now();
        let mut tasks = Vec::new();
        for place in 0..CONNECTIONS * DEPTH {
            let mut client = CapacityClient::new(self.channels[place % CONNECTIONS].clone());
            let (clients, calls) = (Arc::clone(&self.clients), Arc::clone(&calls));
            tasks.push(tokio::spawn(async move {
                // Every task walks all clients from its own beginning, in steps that reach all of them.
                let mut which = place * 7_919;
                while clock::now().since(start) < TURN {
                    which = (which + 6_700_417) % clients.len();
                    client.get_capacity(clients[which].clone()).await.expect("it answers");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        for task in tasks {
            task.await.expect("no task panics");
        }
        calls.load(Ordering::Relaxed) as f64 / clock::now().since(start).as_secs_f64()
    }
}

fn request(number: usize) -> wire::GetCapacityRequest {
    population::ask(number, 10.0 + (number % 17) as f64).to_wire()
}
