//! Addresses of doors, on TCP and as sockets of a file system, and the services behind them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use lessor_client::internals::clock;
use lessor_envoy_proto::rate_limit_service_server::RateLimitServiceServer;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic_health::server::HealthReporter;

use super::Doors;
use super::http::{PeerAddress, Routed, routes};
use super::rls::RlsService;

/// The address of a door: `HOST:PORT`, or `unix:PATH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DoorAddress {
    /// A port.
    Port(SocketAddr),
    /// A socket in the file system.
    Path(PathBuf),
}

/// A text that is no address of a door.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no address; wanted HOST:PORT with the number of an interface, or unix:PATH")]
pub struct BadAddress(String);

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
    readiness: Readiness,
    health: HealthReporter,
    services: JoinSet<()>,
    /// The addresses at which gRPC and HTTP are served, as they were bound.
    bound: Vec<DoorAddress>,
    sockets: Vec<PathBuf>,
}

/// Whether requests are welcome, and when to end.
#[derive(Clone, Debug)]
pub(super) struct Readiness(watch::Sender<bool>);

// === impl DoorAddress ===

impl FromStr for DoorAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<DoorAddress, BadAddress> {
        match text.strip_prefix("unix:") {
            Some("") => Err(BadAddress(text.to_owned())),
            Some(path) => Ok(DoorAddress::Path(path.into())),
            None => text.parse().map(DoorAddress::Port).map_err(|_| BadAddress(text.to_owned())),
        }
    }
}

impl fmt::Display for DoorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DoorAddress::Port(address) => address.fmt(f),
            DoorAddress::Path(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

// === impl Readiness ===

impl Readiness {
    pub(super) fn is_serving(&self) -> bool {
        *self.0.borrow()
    }

    async fn ended(self) {
        let mut changes = self.0.subscribe();
        // The sender is here, so there is one.
        let _ = changes.wait_for(|is_serving| !is_serving).await;
    }
}

// === impl Listening ===

impl Listening {
    /// No door yet.
    #[must_use]
    pub fn new(doors: Arc<Doors>) -> Listening {
        Listening {
            doors,
            readiness: Readiness(watch::Sender::new(true)),
            health: HealthReporter::new(),
            services: JoinSet::new(),
            bound: Vec::new(),
            sockets: Vec::new(),
        }
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
        let router = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(Duration::from_secs(30)))
            .add_service(health)
            .add_service(RlsService::server(Arc::clone(&self.doors)));
        let ended = self.readiness.clone().ended();
        let bound = match bind(address).await? {
            Bound::Port(listener, bound) => {
                let incoming = TcpListenerStream::new(listener);
                self.spawn(router.serve_with_incoming_shutdown(incoming, ended));
                bound
            }
            Bound::Path(listener, path) => {
                let incoming = UnixListenerStream::new(listener);
                self.spawn(router.serve_with_incoming_shutdown(incoming, ended));
                self.sockets.push(path);
                address.clone()
            }
        };
        self.bound.push(bound.clone());
        Ok(bound)
    }

    /// Opens a door over HTTP, and returns the address that it has.
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn open_http(&mut self, address: &DoorAddress) -> Result<DoorAddress, ListenFault> {
        let routed = Routed { doors: Arc::clone(&self.doors), readiness: self.readiness.clone() };
        let router = routes(routed);
        let ended = self.readiness.clone().ended();
        let bound = match bind(address).await? {
            Bound::Port(listener, bound) => {
                let service = router.into_make_service_with_connect_info::<PeerAddress>();
                self.spawn(async { axum::serve(listener, service).with_graceful_shutdown(ended).await });
                bound
            }
            Bound::Path(listener, path) => {
                let service = router.into_make_service_with_connect_info::<PeerAddress>();
                self.spawn(async { axum::serve(listener, service).with_graceful_shutdown(ended).await });
                self.sockets.push(path);
                address.clone()
            }
        };
        self.bound.push(bound.clone());
        Ok(bound)
    }

    /// The addresses of its doors.
    #[must_use]
    pub fn addresses(&self) -> &[DoorAddress] {
        &self.bound
    }

    /// Takes no request any more, answers those that are there, for `longest` at the most, and returns whether all were.
    pub async fn drain(mut self, longest: Duration) -> bool {
        self.health.set_not_serving::<RateLimitServiceServer<RlsService>>().await;
        self.readiness.0.send_replace(false);
        let deadline = clock::now() + longest;
        let all = async { while self.services.join_next().await.is_some() {} };
        let is_done = tokio::select! {
            () = all => true,
            () = clock::sleep_until(deadline) => false,
        };
        for path in &self.sockets {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
        is_done
    }

    fn spawn<E: fmt::Display>(&mut self, service: impl Future<Output = Result<(), E>> + Send + 'static) {
        self.services.spawn(async move {
            if let Err(fault) = service.await {
                tracing::error!(%fault, "a door has ended");
            }
        });
    }
}

enum Bound {
    Port(TcpListener, DoorAddress),
    Path(UnixListener, PathBuf),
}

async fn bind(address: &DoorAddress) -> Result<Bound, ListenFault> {
    let wrong = |fault| ListenFault { address: address.clone(), fault };
    match address {
        DoorAddress::Port(port) => {
            let listener = TcpListener::bind(port).await.map_err(wrong)?;
            let bound = listener.local_addr().map_err(wrong)?;
            Ok(Bound::Port(listener, DoorAddress::Port(bound)))
        }
        DoorAddress::Path(path) => {
            clear(path).await.map_err(wrong)?;
            let listener = UnixListener::bind(path).map_err(wrong)?;
            Ok(Bound::Path(listener, path.clone()))
        }
    }
}

/// Removes a socket that nobody listens at any more.
async fn clear(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if !found.file_type().is_socket() => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "is no socket; wanted a path where there is none, or one",
        )),
        Ok(_) => match tokio::net::UnixStream::connect(path).await {
            Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "somebody listens there")),
            Err(_) => std::fs::remove_file(path),
        },
    }
}

// === impl PeerAddress ===

impl Connected<IncomingStream<'_, TcpListener>> for PeerAddress {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> PeerAddress {
        PeerAddress(Some(stream.remote_addr().ip()))
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for PeerAddress {
    fn connect_info(_: IncomingStream<'_, UnixListener>) -> PeerAddress {
        PeerAddress(None)
    }
}
