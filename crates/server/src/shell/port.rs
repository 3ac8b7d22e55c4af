//! A port of gRPC and HTTP, plain or over TLS.

use std::io;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use lessor_proto::wire::capacity_server::CapacityServer;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic::transport::Server;
use tower::Layer;
use tower::layer::layer_fn;
use tracing::warn;

use super::acceptor::{Acceptor, Connection};
use super::bodies::Bodies;
use super::grpc::Service;
use super::random;
use super::switch::Switch;

/// The service that is offered on every port of gRPC.
#[derive(Clone)]
pub(super) struct PortService {
    /// The service of nearly all requests, which stands among the routes as well.
    pub(super) capacity: CapacityServer<Service>,
    pub(super) routes: Routes,
    pub(super) bodies: Bodies,
    pub(super) request_time: Duration,
    pub(super) stopped: watch::Receiver<bool>,
}

/// The part of its greatest age at which a connection is told to end, at the earliest and at the latest: connections that
/// were made in one instant do not all come back in one.
const ENDS: [f64; 2] = [0.6, 0.8];
/// The longest time that it then has to answer what is under way. A stream is cut off after that, which costs no lease.
const GRACE: Duration = Duration::from_secs(5);

// === impl PortService ===

impl PortService {
    /// Serves a port until stopped.
    pub(super) async fn serve(self, acceptor: Acceptor) {
        let server = builder().layer(self.switch()).add_routes(self.routes);
        if let Err(error) =
            server.serve_with_incoming_shutdown(acceptor.connections(), stopping(self.stopped)).await
        {
            warn!(%error, "server ended");
        }
    }

    /// Serves a port on which no connection grows older than `max_age`, until stopped.
    pub(super) async fn serve_aging(self, mut acceptor: Acceptor, max_age: Duration) {
        let (mut connections, mut stopped) = (JoinSet::new(), self.stopped.clone());
        loop {
            tokio::select! {
                // An error means that the server handle is gone, which is a stop as well.
                _ = stopped.wait_for(|&stop| stop) => break,
                connection = acceptor.accept() => {
                    connections.spawn(self.clone().serve_one(connection, max_age));
                }
                Some(_) = connections.join_next() => {}
            }
        }
        drop(acceptor);
        while connections.join_next().await.is_some() {}
    }

    async fn serve_one(self, mut connection: Connection, max_age: Duration) {
        let server = builder()
            .max_connection_age(max_age.mul_f64(spread(ENDS)))
            .max_connection_age_grace(GRACE.min(max_age.mul_f64(1.0 - ENDS[1])))
            .layer(self.switch())
            .add_routes(self.routes);
        // The end of what comes in would be the end of what is there: it goes on for as long as the connection does.
        let ended = connection.ended();
        let only = stream::iter([Ok::<_, io::Error>(connection)]);
        let only = only.chain(stream::once(ended).filter_map(async |()| None));
        // What a peer does wrong is its own affair.
        let _ = server.serve_with_incoming_shutdown(only, stopping(self.stopped)).await;
    }

    /// The switch in front of the routes. A request is opened within its time, and a stream then takes as long as it likes.
    fn switch(&self) -> impl Layer<Routes, Service = Switch> + Clone + use<> {
        let (capacity, bodies, request_time) =
            (self.capacity.clone(), self.bodies.clone(), self.request_time);
        layer_fn(move |routes| Switch::new(capacity.clone(), routes, bodies.clone(), request_time))
    }
}

fn builder() -> Server {
    Server::builder()
        .accept_http1(true)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        // Of one connection: requests and streams. A proxy may carry those of many clients.
        .max_concurrent_streams(Some(1_000))
        // h2 ends a connection when small messages wait that cost more than half of this, each about 240 bytes: so eight of each
        // stream may wait.
        .initial_connection_window_size(Some(4 << 20))
}

/// A number between two, and another one each time.
fn spread([least, most]: [f64; 2]) -> f64 {
    least + (most - least) * random::fraction()
}

async fn stopping(mut stopped: watch::Receiver<bool>) {
    // An error means that the server handle is gone, which is a stop as well.
    let _ = stopped.wait_for(|&stop| stop).await;
}
