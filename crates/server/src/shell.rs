//! The body of a server: sockets, files and the clock around one [`crate::node::Node`].
//!
//! [`Server::start`] binds, serves gRPC and HTTP on one port (and HTTP on a second one if asked to), and gives back a
//! handle; [`Server::drain`] ends it with nothing in flight lost.

mod acceptor;
pub mod admin;
mod admin_calls;
mod bodies;
mod caller;
mod connections;
pub mod driver;
pub mod etcd;
mod gate;
pub mod grpc;
pub mod http;
mod lock_file;
mod measure;
pub mod metrics;
mod options;
mod parent;
mod port;
mod port_name;
mod probe;
pub mod random;
mod refused;
pub mod source;
mod standing;
pub mod state;
mod stream;
mod switch;
mod tls;
mod watched;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::TlsFault;
use lessor_client::internals::tls::ClientTls;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tracing::{error, info, warn};

use self::acceptor::{Acceptor, Incoming, Places};
pub use self::admin::{AdminAddress, AdminFault, AdminOptions, Levers, ReadFile};
use self::admin::{BoundAdmin, Rooms, ServedAdmin};
use self::bodies::Bodies;
pub use self::caller::Caller;
use self::driver::Driver;
pub use self::gate::{Denials, Gate};
pub use self::options::{Build, ElectionOptions, ServerOptions};
use self::port::PortService;
use self::port_name::Port;
use self::probe::NodeAbove;
use self::state::{StateDirectory, StateFault};
use self::stream::Lines;
use self::tls::ServerTls;
use self::tls::certificates::Certificates;
use self::tls::handshake::HandshakeGuard;
pub use self::tls::{TlsClients, TlsOptions};
use crate::node::NodeConfig;
use crate::repository::Repository;

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    driver: Arc<Driver>,
    gate: Arc<Gate>,
    address: SocketAddr,
    plain_address: Option<SocketAddr>,
    certificates: Arc<Certificates>,
    http: Option<SocketAddr>,
    admin: Option<ServedAdmin>,
    drain: Duration,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// The places of all ports.
struct PortPlaces {
    main: Arc<Places>,
    http: Arc<Places>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be bound.
    #[error("cannot listen at {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The task cannot stand for election.
    #[error("cannot stand for election")]
    Election(#[from] etcd::ElectionStartError),
    /// Certificates or keys cannot be used.
    #[error("cannot speak TLS")]
    Tls(#[from] TlsFault),
    /// The admin port cannot be served.
    #[error(transparent)]
    Admin(#[from] AdminFault),
    /// The state directory is another's, or holds what would be out of date.
    #[error(transparent)]
    State(#[from] StateFault),
}

/// Connections that are kept for a port of HTTP.
const KEPT: usize = 64;

// === impl PortPlaces ===

impl PortPlaces {
    fn new(all: usize, per_address: Option<usize>, has_http: bool, driver: &Arc<Driver>) -> PortPlaces {
        let kept = if has_http { KEPT.min(all / 2) } else { 0 };
        let places = |port: Port, places: usize| {
            let most = per_address.unwrap_or(places.div_ceil(2));
            Places::new(port, places.max(1), most.max(1), driver)
        };
        PortPlaces { main: places(Port::Main, all - kept), http: places(Port::Http, kept) }
    }
}

// === impl Server ===

impl Server {
    /// Binds and serves.
    ///
    /// # Errors
    /// When an address cannot be bound, or the task cannot stand for election.
    pub async fn start(
        options: ServerOptions,
        mut config: NodeConfig,
        repository: Repository,
    ) -> Result<Server, StartError> {
        let certificates = Arc::new(load_certificates(&options)?);
        let (listener, address) = bind(options.listen).await?;
        let (http, plain) = (bind_if(options.http).await?, bind_if(options.plain).await?);
        let (connections, per_address) = (options.connections, options.connections_per_address);
        let advertise = options.advertise.unwrap_or_else(|| address.to_string());
        let above = config.parent.as_ref().map(|parent| parent.servers.clone());
        let (mut election, mut memory, mut fault) = (None, None, None);
        if let (None, Some(directory)) = (&options.election, &options.state) {
            let opened = StateDirectory::open(directory, &config.name)?;
            fault = opened.fault.map(|fault| fault.to_string());
            if let Some((directory, record)) = opened.directory {
                remember(&mut config, &directory, record);
                memory = Some(directory);
            }
        }
        // The state directory is there by now, where a socket may be.
        let admin = BoundAdmin::bind(options.admin).await?;
        let mut driver = match options.election {
            None => Driver::new(config, repository, advertise, options.streams),
            Some(options_of_election) => {
                config.authority = options_of_election.authority;
                let started = options_of_election.start(&config, &advertise)?;
                let authority = started.authority();
                election = Some(started);
                Driver::standing(config, repository, advertise, options.streams, authority)
            }
        };
        driver.set_meter(options.meter);
        driver.set_build(options.build);
        driver.set_longest_pause(options.longest_pause);
        let driver = Arc::new(driver);
        let places = PortPlaces::new(connections, per_address, http.is_some(), &driver);
        if options.state.is_some() {
            if let Some(fault) = &fault {
                let remembers = memory.is_some();
                error!(%fault, remembers, "state directory fails: what was out before is not known");
            }
            driver.hear_of_state(fault.as_deref());
        }
        let (stop, stopped) = watch::channel(false);

        let lines = Arc::new(Lines::default());
        let gate = Arc::new(Gate::new(options.access, options.auth_keys));
        let web = http::router(Arc::clone(&driver), Arc::clone(&gate), Arc::clone(&certificates));
        let request_time = options.request_time;
        let (capacity, routes, health) =
            grpc::routes(Arc::clone(&driver), Arc::clone(&gate), Arc::clone(&lines), options.request_bytes)
                .await;
        let bodies = Bodies::new(Arc::clone(&driver), options.request_bytes, request_time);
        let routes = Routes::from(routes.into_axum_router().merge(web.clone()).fallback(grpc::nowhere));
        let service = PortService { capacity, routes, bodies, request_time, stopped: stopped.clone() };
        let guard = |port| certificates.server.as_ref().map(|tls| HandshakeGuard::new(Arc::clone(tls), port));
        let main = Acceptor::new(listener, Arc::clone(&places.main), guard(Port::Main));
        let mut tasks = vec![
            match &certificates.server {
                Some(tls) => tokio::spawn(service.clone().serve_aging(main, tls.max_age)),
                None => tokio::spawn(service.clone().serve(main)),
            },
            tokio::spawn(Arc::clone(&certificates).keep(stopped.clone())),
            tokio::spawn(grpc::follow_health(health, Arc::clone(&driver), stopped.clone())),
            tokio::spawn(Arc::clone(&driver).clean_up(stopped.clone())),
            tokio::spawn(Arc::clone(&driver).keep_time(stopped.clone())),
            tokio::spawn(Arc::clone(&driver).keep_domains(stopped.clone())),
            tokio::spawn(Arc::clone(&driver).keep_lookout(stopped.clone())),
            tokio::spawn(lines.attend(Arc::clone(&driver), stopped.clone())),
        ];
        let mut resign = None;
        if let Some(election) = election {
            let (ask, asked) = mpsc::channel(1);
            resign = Some(ask);
            let standing = standing::stand(Arc::clone(&driver), election, asked, stopped.clone());
            tasks.push(tokio::spawn(standing));
        }
        if let Some(directory) = memory {
            tasks.push(tokio::spawn(state::keep(Arc::clone(&driver), directory, stopped.clone())));
        }
        if let Some(servers) = above {
            let above = NodeAbove { servers, tls: certificates.parent.clone(), token: options.parent_token };
            tasks.push(tokio::spawn(parent::follow(Arc::clone(&driver), above.clone(), stopped.clone())));
            tasks.push(tokio::spawn(probe::meet_parent(Arc::clone(&driver), above, stopped.clone())));
        }
        let plain_address = plain.map(|(listener, address)| {
            tasks.push(tokio::spawn(service.serve(Acceptor::new(listener, Arc::clone(&places.main), None))));
            address
        });
        let http_address = http.as_ref().map(|(_, address)| *address);
        if let Some((listener, address)) = http {
            let requires = certificates.server.as_ref().is_some_and(|tls| tls.requires_clients);
            let pages = if requires { http::for_the_known(web) } else { web };
            let started = http::start(listener, places.http, guard(Port::Http), pages, stopped.clone());
            tasks.push(started.map_err(|source| StartError::Listen { address, source })?);
        }
        let admin = admin.map(|bound| {
            let places = Places::new(Port::Admin, admin::PLACES, bound.places_per_address(), &driver);
            let (driver, gate, certificates) =
                (Arc::clone(&driver), Arc::clone(&gate), Arc::clone(&certificates));
            let (incoming, pages, served) = bound.open(Rooms { driver, gate, certificates, resign });
            let guard = matches!(incoming, Incoming::Tcp(_)).then(|| guard(Port::Admin)).flatten();
            let acceptor = Acceptor::new(incoming, places, guard);
            tasks.push(tokio::spawn(http::serve(acceptor, pages, stopped)));
            served
        });
        let (http, plain) =
            (http_address.map(tracing::field::display), plain_address.map(tracing::field::display));
        let admin_address = admin.as_ref().map(|served| tracing::field::display(&served.address));
        info!(%address, http, plain, admin = admin_address, tls = certificates.server.is_some(), "serving");
        let drain = options.drain;
        Ok(Server {
            driver,
            gate,
            address,
            plain_address,
            certificates,
            http: http_address,
            admin,
            drain,
            stop,
            tasks,
        })
    }

    /// Where it serves gRPC and HTTP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves the same in plain, if it does.
    #[must_use]
    pub fn plain_address(&self) -> Option<SocketAddr> {
        self.plain_address
    }

    /// Reads certificates, keys, authorities and revocations again soon, as it does when their files change.
    pub fn renew_certificates(&self) {
        self.certificates.ask();
    }

    /// Where it serves operators, if it does.
    #[must_use]
    pub fn admin_address(&self) -> Option<&AdminAddress> {
        self.admin.as_ref().map(|served| &served.address)
    }

    /// Opens the audit log anew, as it may have been moved away: soon, by a task of the runtime that this is called on.
    pub fn reopen_audit_log(&self) {
        if let Some(admin) = &self.admin {
            admin.audit.reopen_soon();
        }
    }

    /// Where it serves HTTP alone.
    #[must_use]
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// The driver of its node.
    #[must_use]
    pub fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// The gate, which says who may what.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Waits until the node has failed one of its own checks, and its books cannot be trusted any more. The server answers
    /// nothing from then on: whoever runs it calls [`Server::abandon`] and ends the process.
    pub async fn broken(&self) {
        self.driver.until_broken().await;
    }

    /// Ends a server whose node is broken: it leads no more, so that another task may at once, and what is written already
    /// stays written. Nothing in flight is waited for.
    pub async fn abandon(mut self) {
        self.stop.send_replace(true);
        let tasks = std::mem::take(&mut self.tasks);
        let handles: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let ended = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(standing::RESIGNATION, ended).await;
        handles.iter().for_each(tokio::task::AbortHandle::abort);
    }

    /// Takes no more connections, answers what is in flight, closes streams, and ends. Holders live on their leases meanwhile. Gives back
    /// whether everything had ended in time.
    pub async fn drain(mut self) -> bool {
        self.driver.start_draining();
        self.stop.send_replace(true);
        self.driver.close_streams();
        let tasks = std::mem::take(&mut self.tasks);
        let handles: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let ended = tokio::time::timeout(self.drain, async {
            for task in tasks {
                // A task that panicked has ended too.
                let _ = task.await;
            }
        });
        let in_time = ended.await.is_ok();
        if !in_time {
            warn!(after = ?self.drain, "drain cut short");
            handles.iter().for_each(tokio::task::AbortHandle::abort);
        }
        in_time
    }
}

/// A server that is dropped without a drain ends at once.
impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The node goes on from what stands in its state directory.
fn remember(config: &mut NodeConfig, directory: &StateDirectory, record: crate::record::Record) {
    (config.epoch, config.line) = (directory.epoch(), Some(directory.line()));
    (config.marks, config.record) = (true, Some(record));
    // Whoever takes the directory next knows that this one has ended.
    config.authority = Duration::ZERO;
    if config.keys.is_none() {
        config.keys = Some(directory.keys().clone());
        config.trust_claims = false;
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let local = listener.local_addr()?;
        Ok((listener, local))
    };
    bound.await.map_err(|source| StartError::Listen { address, source })
}

async fn bind_if(address: Option<SocketAddr>) -> Result<Option<(TcpListener, SocketAddr)>, StartError> {
    match address {
        Some(address) => bind(address).await.map(Some),
        None => Ok(None),
    }
}

fn load_certificates(options: &ServerOptions) -> Result<Certificates, TlsFault> {
    let server = options.tls.as_ref().map(ServerTls::load).transpose()?.map(Arc::new);
    let parent = options.parent_tls.as_ref().map(ClientTls::load).transpose()?.map(Arc::new);
    Ok(Certificates::new(server, parent))
}
