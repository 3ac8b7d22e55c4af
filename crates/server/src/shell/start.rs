//! The start of a server: its ports are bound, its driver is made, and the tasks begin that serve the one and keep the other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use lessor_client::internals::tls::ClientTls;
use lessor_client::{BearerToken, TlsFault};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tracing::field::display;
use tracing::{error, info};

use super::acceptor::{self, Acceptor, Places};
use super::address_budget::AddressBudgets;
use super::admin::{self, AdminFault, BoundAdmin, Rooms, ServedAdmin};
use super::bodies::Bodies;
use super::driver::Driver;
use super::etcd::{Election, ElectionStartError, RevisionStore};
use super::gate::Gate;
use super::hosts::HostNames;
use super::leader_pages::LeaderPages;
use super::more_pages::{MadePages, PageParts};
use super::options::ServerOptions;
use super::other_tasks::OtherTasks;
use super::port::PortService;
use super::port_name::Port;
use super::probe::{self, NodeAbove};
use super::server::Server;
use super::standing::{self, Clocks, HandOver, Keeping};
use super::state::{self, StateDirectory, StateFault};
use super::stream::Lines;
use super::tls::ServerTls;
use super::tls::certificates::Certificates;
use super::tls::handshake::HandshakeGuard;
use super::{grpc, http, parent};
use crate::follower::TaskStanding;
use crate::node::NodeConfig;
use crate::record::Record;
use crate::repository::Repository;

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
    Election(#[from] ElectionStartError),
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

/// The listeners of a server but that of operators.
struct Listeners {
    main: BoundPort,
    http: Option<BoundPort>,
    plain: Option<BoundPort>,
}

/// A listener, and the address that it has.
type BoundPort = (TcpListener, SocketAddr);

/// An election, and the reasons for which the task leaves it to others to lead.
type KeptElection = (Election, Keeping);

/// The places of all ports.
struct PortPlaces {
    main: Arc<Places>,
    http: Arc<Places>,
}

/// A server whose tasks begin.
struct Start {
    driver: Arc<Driver>,
    gate: Arc<Gate>,
    certificates: Arc<Certificates>,
    places: PortPlaces,
    budgets: Arc<AddressBudgets>,
    hosts: HostNames,
    leader_pages: LeaderPages,
    stopped: watch::Receiver<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// Connections that are kept for a port of HTTP.
const KEPT: usize = 64;

// === impl PortPlaces ===

impl PortPlaces {
    fn new(options: &ServerOptions, budgets: &Arc<AddressBudgets>, driver: &Arc<Driver>) -> PortPlaces {
        let (all, per_address) = (options.connections, options.connections_per_address);
        let kept = if options.http.is_some() { KEPT.min(all / 2) } else { 0 };
        let places = |port: Port, places: usize| {
            let most = per_address.unwrap_or(places.div_ceil(2));
            Places::new(port, places.max(1), most.max(1), budgets, driver)
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
        mut options: ServerOptions,
        mut config: NodeConfig,
        repository: Repository,
    ) -> Result<Server, StartError> {
        let certificates = Arc::new(load_certificates(&options)?);
        let peers = options.peer_tls.as_ref().map(ClientTls::load).transpose()?.map(Arc::new);
        let Listeners { main, http, plain } = Listeners::bind(&options).await?;
        let (address, http_address, plain_address) = (main.1, http.as_ref().map(at), plain.as_ref().map(at));
        let above = config.parent.as_ref().map(|parent| parent.servers.clone());
        let (memory, fault) = recollect(&options, &mut config)?;
        // The state directory is there by now, where a socket may be.
        let admin = BoundAdmin::bind(options.admin.take()).await?;
        let hosts = HostNames::new(options.advertise.as_deref(), &options.page_hosts);
        let (driver, election) = drive(&mut options, config, repository, address)?;
        if options.state.is_some() {
            if let Some(fault) = &fault {
                let remembers = memory.is_some();
                error!(%fault, remembers, "state directory fails: what was out before is not known");
            }
            driver.hear_of_state(fault.as_deref());
        }
        let (stop, stopped) = watch::channel(false);
        let gate = Arc::new(Gate::new(options.access.take(), options.auth_keys.take()));
        let budgets = AddressBudgets::new(options.address_limits, &driver.traffic().throttled);
        let places = PortPlaces::new(&options, &budgets, &driver);
        let rooms = (Arc::clone(&driver), Arc::clone(&gate));
        let others = OtherTasks::new(peers, certificates.server.is_some());
        let leader_pages = LeaderPages::new(rooms, others.clone(), stopped.clone());
        let tasks = Vec::new();
        let mut start =
            Start { driver, gate, certificates, places, budgets, hosts, leader_pages, stopped, tasks };

        let more = start.more_pages(&options);
        let pages = start.serve_capacity(&options, (main, plain), more.public).await;
        start.keep_node();
        let store = options.templates.as_ref().map(|templates| Arc::clone(&templates.store));
        let resign = election.map(|election| start.stand(election, others));
        if let Some(directory) = memory {
            start.spawn(state::keep(Arc::clone(&start.driver), directory, start.stopped.clone()));
        }
        if let Some(servers) = above {
            start.follow_parent(servers, options.parent_token);
        }
        if let Some(bound) = http {
            start.serve_pages(bound, pages)?;
        }
        let admin = admin.map(|bound| start.serve_operators(bound, (resign, store), more.admin));

        let Start { driver, gate, certificates, tasks, .. } = start;
        let admin_address = admin.as_ref().map(|served| display(&served.address));
        let (http, plain, tls) =
            (http_address.map(display), plain_address.map(display), certificates.server.is_some());
        info!(%address, http, plain, admin = admin_address, tls, "serving");
        let (http, drain) = (http_address, options.drain);
        Ok(Server { driver, gate, address, plain_address, certificates, http, admin, drain, stop, tasks })
    }
}

// === impl Listeners ===

impl Listeners {
    async fn bind(options: &ServerOptions) -> Result<Listeners, StartError> {
        Ok(Listeners {
            main: bind(options.listen).await?,
            http: bind_if(options.http).await?,
            plain: bind_if(options.plain).await?,
        })
    }
}

// === impl Start ===

impl Start {
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    /// The handshakes of a port; absent where it is plain.
    fn guard(&self, port: Port) -> Option<HandshakeGuard> {
        self.certificates.server.as_ref().map(|tls| HandshakeGuard::new(Arc::clone(tls), port))
    }

    /// The pages beside those of the server itself, with that at `/`.
    fn more_pages(&self, options: &ServerOptions) -> MadePages {
        let (driver, gate) = (Arc::clone(&self.driver), Arc::clone(&self.gate));
        let certificates = Arc::clone(&self.certificates);
        let store = options.templates.as_ref().map(|templates| Arc::clone(&templates.store));
        let parts = PageParts { driver, gate, store, certificates, stopped: self.stopped.clone() };
        match &options.pages {
            Some(more) => {
                let looks = http::looks(Arc::clone(&self.driver), Arc::clone(&self.gate));
                let MadePages { public, admin } = more.make(parts);
                MadePages { public, admin: self.leader_pages.show(admin.merge(looks)) }
            }
            None => MadePages { public: http::index(), admin: Router::new() },
        }
    }

    /// Serves gRPC and HTTP, on a plain port as well if there is one. Returns the pages, which another port may serve too.
    async fn serve_capacity(
        &mut self,
        options: &ServerOptions,
        ((main, _), plain): (BoundPort, Option<BoundPort>),
        more: Router,
    ) -> Router {
        let (driver, gate, lines) =
            (Arc::clone(&self.driver), Arc::clone(&self.gate), Arc::new(Lines::default()));
        let pages = http::router(Arc::clone(&driver), Arc::clone(&gate), Arc::clone(&self.certificates));
        let pages = self.hosts.clone().guard(self.leader_pages.show(pages.merge(more)));
        let (request_time, bytes) = (options.request_time, options.request_bytes);
        let (capacity, routes, health) =
            grpc::routes(Arc::clone(&driver), gate, Arc::clone(&lines), bytes).await;
        let bodies = Bodies::new(Arc::clone(&driver), bytes, request_time);
        let routes = Routes::from(routes.into_axum_router().merge(pages.clone()).fallback(grpc::nowhere));
        let service = PortService { capacity, routes, bodies, request_time, stopped: self.stopped.clone() };
        let main = Acceptor::new(main, Arc::clone(&self.places.main), self.guard(Port::Main));
        match self.certificates.server.as_ref().map(|tls| tls.max_age) {
            Some(max_age) => self.spawn(service.clone().serve_aging(main, max_age)),
            None => self.spawn(service.clone().serve(main)),
        }
        if let Some((listener, _)) = plain {
            self.spawn(service.serve(Acceptor::new(listener, Arc::clone(&self.places.main), None)));
        }
        self.spawn(grpc::follow_health(health, Arc::clone(&driver), self.stopped.clone()));
        self.spawn(lines.attend(driver, options.unread_time, self.stopped.clone()));
        pages
    }

    /// Keeps the node and the certificates up to date.
    fn keep_node(&mut self) {
        let driver = || Arc::clone(&self.driver);
        let stopped = || self.stopped.clone();
        let kept = [
            tokio::spawn(Arc::clone(&self.certificates).keep(stopped())),
            tokio::spawn(driver().clean_up(stopped())),
            tokio::spawn(driver().keep_time(stopped())),
            tokio::spawn(driver().keep_domains(stopped())),
            tokio::spawn(driver().keep_lookout(stopped())),
            tokio::spawn(driver().keep_looks(stopped())),
        ];
        self.tasks.extend(kept);
    }

    /// Stands for election. Returns the way to ask that this task leave its node to another.
    fn stand(&mut self, (election, keeping): KeptElection, others: OtherTasks) -> mpsc::Sender<HandOver> {
        let (ask, asked) = mpsc::channel(1);
        let clocks = Clocks::new(others);
        let driver = Arc::clone(&self.driver);
        self.spawn(standing::stand(driver, (election, clocks), keeping, asked, self.stopped.clone()));
        ask
    }

    /// Meets the node above, and follows it.
    fn follow_parent(&mut self, servers: Vec<Arc<str>>, token: Option<BearerToken>) {
        let above = NodeAbove { servers, tls: self.certificates.parent.clone(), token };
        self.spawn(parent::follow(Arc::clone(&self.driver), above.clone(), self.stopped.clone()));
        self.spawn(probe::meet_parent(Arc::clone(&self.driver), above, self.stopped.clone()));
    }

    /// Serves pages alone.
    fn serve_pages(&mut self, (listener, address): BoundPort, pages: Router) -> Result<(), StartError> {
        let requires = self.certificates.server.as_ref().is_some_and(|tls| tls.requires_clients);
        let pages = if requires { http::for_the_known(pages) } else { pages };
        let (places, guard) = (Arc::clone(&self.places.http), self.guard(Port::Http));
        let started = http::start(listener, places, guard, pages, self.stopped.clone());
        self.tasks.push(started.map_err(|source| StartError::Listen { address, source })?);
        Ok(())
    }

    /// Serves operators, who may ask that this task leave its node to another if it stands for election.
    fn serve_operators(
        &mut self,
        bound: BoundAdmin,
        (resign, store): (Option<mpsc::Sender<HandOver>>, Option<Arc<RevisionStore>>),
        more: Router,
    ) -> ServedAdmin {
        let places =
            Places::new(Port::Admin, admin::PLACES, admin::PLACES_PER_ORIGIN, &self.budgets, &self.driver);
        let (driver, gate, certificates) =
            (Arc::clone(&self.driver), Arc::clone(&self.gate), Arc::clone(&self.certificates));
        let guard = if bound.is_local() { None } else { self.guard(Port::Admin) };
        let rooms = Rooms { driver, gate, certificates, resign, store };
        let (incoming, pages, served) = bound.open(rooms, more);
        self.spawn(http::serve(Acceptor::new(incoming, places, guard), pages, self.stopped.clone()));
        served
    }
}

/// Takes the state directory of a server that is the only one of its node, which goes on from what stands there; and the fault
/// of one that it cannot go by.
fn recollect(
    options: &ServerOptions,
    config: &mut NodeConfig,
) -> Result<(Option<StateDirectory>, Option<String>), StateFault> {
    let (None, Some(directory)) = (&options.election, &options.state) else { return Ok((None, None)) };
    let opened = StateDirectory::open(directory, config)?;
    let fault = opened.fault.map(|fault| fault.to_string());
    let Some((directory, record)) = opened.directory else { return Ok((None, fault)) };
    remember(config, &directory, record);
    Ok((Some(directory), fault))
}

/// The node goes on from what stands in its state directory.
fn remember(config: &mut NodeConfig, directory: &StateDirectory, record: Record) {
    (config.epoch, config.line) = (directory.epoch(), Some(directory.line()));
    (config.marks, config.record) = (true, Some(record));
    // Whoever takes the directory next knows that this one has ended.
    config.authority = Duration::ZERO;
    if config.keys.is_none() {
        config.keys = Some(directory.keys().clone());
        config.trust_claims = false;
    }
}

/// The driver of a node, and the election that its task stands for, if it does.
fn drive(
    options: &mut ServerOptions,
    mut config: NodeConfig,
    repository: Repository,
    address: SocketAddr,
) -> Result<(Arc<Driver>, Option<KeptElection>), StartError> {
    let advertise = options.advertise.take().unwrap_or_else(|| address.to_string());
    let (mut driver, election) = match options.election.take() {
        None => (Driver::new(config, repository, advertise, options.streams), None),
        Some(asked) => {
            config.authority = asked.authority;
            let election = asked.start(&config, &advertise)?;
            // It looks who leads first: so it does not come to lead before it hears of this.
            let keeping = Keeping::begin(&election, options.templates.clone());
            let authority = election.authority();
            let driver = Driver::standing(config, repository, advertise, options.streams, authority);
            (driver, Some((election, keeping)))
        }
    };
    if let Some(templates) = &options.templates {
        driver.follow_templates(templates.status.clone());
        // Before anything is served; nothing is broken yet.
        let _ = driver.set_overrides(templates.overrides.borrow().clone());
        if election.is_none() {
            templates.standing.send_replace(TaskStanding { leads: true, stands: true, record: 0 });
        }
    }
    driver.set_meter(options.meter);
    driver.set_build(options.build.clone());
    driver.set_longest_pause(options.longest_pause);
    Ok((Arc::new(driver), election))
}

async fn bind(address: SocketAddr) -> Result<BoundPort, StartError> {
    let bound = async {
        let listener = acceptor::listen(address)?;
        let local = listener.local_addr()?;
        Ok((listener, local))
    };
    bound.await.map_err(|source| StartError::Listen { address, source })
}

fn at((_, address): &BoundPort) -> SocketAddr {
    *address
}

async fn bind_if(address: Option<SocketAddr>) -> Result<Option<BoundPort>, StartError> {
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
