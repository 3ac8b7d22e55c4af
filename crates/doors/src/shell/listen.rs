//! Doors that are open: the services behind their addresses, and how they end.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_envoy_proto::rate_limit_service_server::RateLimitServiceServer;
use tokio::task::JoinSet;
use tonic_health::server::HealthReporter;

use super::Doors;
use super::address::DoorAddress;
use super::conversation;
use super::http::Routed;
use super::listener::{DoorListener, DoorPlaces};
use super::pool::{self, PoolDoor};
use super::readiness::{Phase, Readiness};
use super::rls::{RlsService, RlsSwitch};
use super::sockets::Sockets;
use super::tls::{DoorTls, PortTls};

/// A door that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {fault}")]
pub struct ListenFault {
    address: DoorAddress,
    fault: io::Error,
}

/// Doors that are open.
#[derive(Debug)]
pub struct Listening {
    doors: Arc<Doors>,
    connections: usize,
    readiness: Readiness,
    health: HealthReporter,
    services: JoinSet<()>,
    /// The addresses at which gRPC and HTTP are served, as they were bound.
    bound: Vec<DoorAddress>,
    sockets: Sockets,
    /// The TLS of its ports for gRPC, and of those for HTTP; absent: they are plain.
    tls: [Option<Arc<DoorTls>>; 2],
}

/// The interval at which a silent connection of HTTP/2 is pinged, and the time that it has for its answer.
const KEEP_ALIVE: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(10)];
/// The time for which connections are still taken after health has said that there is an end.
const NOTICE: Duration = Duration::from_secs(1);
/// Requests under way on one connection.
const STREAMS: u32 = 1_000;

// === impl Listening ===

impl Listening {
    /// No door yet. Each that is opened takes so many connections at a time.
    #[must_use]
    pub fn new(doors: Arc<Doors>, connections: usize) -> Listening {
        Listening {
            doors,
            connections,
            readiness: Readiness::serving(),
            health: HealthReporter::new(),
            services: JoinSet::new(),
            bound: Vec::new(),
            sockets: Sockets::default(),
            tls: [None, None],
        }
    }

    /// Takes these sockets, and makes others in their manner.
    #[must_use]
    pub fn with_sockets(self, sockets: Sockets) -> Listening {
        Listening { sockets, ..self }
    }

    /// Speaks TLS at ports for gRPC, and at those for HTTP. PoolCounter's lines are plain, as are sockets of the file system.
    #[must_use]
    pub fn with_tls(self, rls: Option<Arc<DoorTls>>, http: Option<Arc<DoorTls>>) -> Listening {
        for tls in [&rls, &http].into_iter().flatten() {
            self.doors.figures.tls.ends(tls.ends());
        }
        Listening { tls: [rls, http], ..self }
    }

    /// The sockets of its doors.
    #[must_use]
    pub fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Opens a door for Envoy's rate limit service, and returns the address that it has.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn open_rls(&mut self, address: &DoorAddress) -> Result<DoorAddress, ListenFault> {
        self.health.set_serving::<RateLimitServiceServer<RlsService>>().await;
        let health = tonic_health::pb::health_server::HealthServer::new(
            tonic_health::server::HealthService::from_health_reporter(self.health.clone()),
        );
        let mut router = tonic::transport::Server::builder();
        let tls = self.tls[0].clone();
        if let Some(tls) = &tls {
            router = router.max_connection_age(tls.max_age);
        }
        let router = router
            .http2_keepalive_interval(Some(KEEP_ALIVE[0]))
            .http2_keepalive_timeout(Some(KEEP_ALIVE[1]))
            .max_concurrent_streams(Some(STREAMS))
            .layer(RlsSwitch::layer(RlsService::server(Arc::clone(&self.doors))))
            .add_service(health);
        let ended = Box::pin(self.readiness.clone().ended());
        let (listener, bound) = self.listen(address).await?;
        let listener = listener.over(tls.map(PortTls::Rls));
        let incoming = futures_util::stream::unfold((listener, ended), |(mut listener, mut ended)| async {
            let connection = listener.accept_until(ended.as_mut()).await?;
            Some((Ok::<_, io::Error>(connection), (listener, ended)))
        });
        // The end of those who come is the sign for those who are there.
        self.spawn(router.serve_with_incoming_shutdown(incoming, std::future::pending()));
        Ok(bound)
    }

    /// Opens a door over HTTP, and returns the address that it has.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn open_http(&mut self, address: &DoorAddress) -> Result<DoorAddress, ListenFault> {
        let tls = self.tls[1].clone();
        let requires_certificates = tls.as_ref().is_some_and(|tls| tls.requires_clients);
        let readiness = self.readiness.clone();
        let routed = Routed { doors: Arc::clone(&self.doors), readiness, requires_certificates };
        let (listener, bound) = self.listen(address).await?;
        let age = tls.as_ref().map(|tls| tls.max_age);
        let listener = listener.over(tls.map(PortTls::Http));
        self.services.spawn(conversation::serve(listener, routed, age));
        Ok(bound)
    }

    /// Opens a door for programs that ask PoolCounter, and returns the address that it has. Where it `is_open` a lock is given also
    /// where nothing is leased.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn open_pool(
        &mut self,
        address: &DoorAddress,
        is_open: bool,
    ) -> Result<DoorAddress, ListenFault> {
        let (listener, bound) = self.listen(address).await?;
        let door = PoolDoor::new(Arc::clone(&self.doors), is_open);
        self.services.spawn(pool::serve(listener.greeted_by(pool::GREETING), door, self.readiness.clone()));
        Ok(bound)
    }

    /// Listens at an address.
    async fn listen(&mut self, address: &DoorAddress) -> Result<(DoorListener, DoorAddress), ListenFault> {
        let wrong = |fault| ListenFault { address: address.clone(), fault };
        let (socket, bound) = self.sockets.at(address).await.map_err(wrong)?;
        self.bound.push(bound.clone());
        let places = DoorPlaces::new(self.connections);
        Ok((DoorListener::new(socket, places, Arc::clone(&self.doors)), bound))
    }

    /// The addresses of its doors.
    #[must_use]
    pub fn addresses(&self) -> &[DoorAddress] {
        &self.bound
    }

    /// Says that there is an end, and answers on until those have heard it who send others here; then takes no connection any
    /// more and answers what is there. That takes `longest` at the most. Returns whether all was answered.
    pub async fn drain(mut self, longest: Duration) -> bool {
        let began = clock::now();
        self.health.set_not_serving::<RateLimitServiceServer<RlsService>>().await;
        self.readiness.enter(Phase::Leaving);
        clock::sleep_until(began + NOTICE.min(longest / 10)).await;
        // While they are open: another process may take the place from here on.
        self.sockets.remove();
        self.readiness.enter(Phase::Ended);
        let deadline = began + longest;
        let all = async { while self.services.join_next().await.is_some() {} };
        tokio::select! {
            () = all => true,
            () = clock::sleep_until(deadline) => false,
        }
    }

    fn spawn<E: fmt::Display>(&mut self, service: impl Future<Output = Result<(), E>> + Send + 'static) {
        self.services.spawn(async move {
            if let Err(fault) = service.await {
                tracing::error!(%fault, "a door has ended");
            }
        });
    }
}
