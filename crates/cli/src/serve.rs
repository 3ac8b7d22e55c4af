//! `lessor serve`: a server from a configuration file, until it is told to end.

mod access;
pub(crate) mod address;
mod admin;
mod console;
mod followed;
pub(crate) mod tasks;
mod templates;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{ArgGroup, Args};
use lessor_client::Transport;
use lessor_client::internals::clock;
use lessor_proto::{Amount, ClientId, Epoch, Features};
use lessor_server::election::record::next_epoch;
use lessor_server::node::{LearningTimes, NodeConfig, ParentConfig};
use lessor_server::repository::{Glob, Repository, SafeCapacity, Template};
use lessor_server::shell::driver::Driver;
use lessor_server::shell::source::{LoadError, Source};
use lessor_server::shell::{AddressLimits, Build, Server, ServerOptions, random};
use tokio::signal::unix::Signal;
use tracing::{error, info};

use self::access::{AccessFlags, AccessFollowers};
use self::address::{address, server};
use self::admin::{AdminFlags, ServeLevers, Surroundings};
use self::console::ConsoleFlags;
use self::followed::{FollowedFile, Outcome};
use self::tasks::Tasks;
use self::templates::{ConfigEtcd, ConfigPlace, FollowedTemplates};
use self::tls::TlsFlags;
use crate::log::{self, LogFormat};
use crate::signals::Signals;

/// Runs a server. SIGTERM and SIGINT drain it, SIGHUP or a changed file reload configuration and certificates.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("record").args(["etcd", "state_dir"]).multiple(true))]
pub(crate) struct Serve {
    /// The configuration: Doorman's YAML, or Lessor's, in a file; or what was pushed into etcd below PREFIX (`lessor push`)
    #[arg(long, env = "LESSOR_CONFIG", value_name = "FILE|etcd:PREFIX")]
    config: ConfigPlace,
    /// Where to serve gRPC, and HTTP on the same port
    #[arg(long, env = "LESSOR_LISTEN", value_name = "HOST:PORT", default_value = "127.0.0.1:15000", value_parser = address)]
    listen: SocketAddr,
    /// Where to serve HTTP (status, metrics, health) besides
    #[arg(long, env = "LESSOR_HTTP", value_name = "HOST:PORT", value_parser = address)]
    http: Option<SocketAddr>,
    /// The name of the node: with a parent it has to be given, and no two nodes may have one
    #[arg(long, env = "LESSOR_NODE", value_name = "NAME", default_value = "root", value_parser = node_name)]
    node: String,
    /// The node above, out of whose capacity this one grants: its servers, asked in turn
    #[arg(long, env = "LESSOR_PARENT", value_name = "HOST:PORT,...", value_delimiter = ',', value_parser = server, requires = "node")]
    parent: Vec<Arc<str>>,
    /// The address that clients are told, if it is not the one to listen at
    #[arg(long, env = "LESSOR_ADVERTISE", value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// The time that requests in flight may take when the server ends
    #[arg(long, env = "LESSOR_DRAIN", value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    drain: Duration,
    /// The time that a request may take to arrive and be answered; streams are opened within it, and stay as long as they like
    #[arg(long, env = "LESSOR_REQUEST_TIMEOUT", value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    request_timeout: Duration,
    /// Grant resources that no template matches whatever is wanted, as Doorman does, instead of refusing them
    #[arg(long, env = "LESSOR_HONOUR_UNKNOWN")]
    honour_unknown: bool,
    /// A directory in which a server without --etcd remembers what is out, so that after a crash holders keep what they have
    /// and others get what was never out; without it, it learns what was out for a lease length. One process at a time. With
    /// --config etcd:PREFIX also the last good templates, for a start without etcd: that is all where --etcd elects
    #[arg(long, env = "LESSOR_STATE_DIR", value_name = "DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    tasks: Tasks,
    #[command(flatten)]
    config_etcd: ConfigEtcd,
    #[command(flatten)]
    access: AccessFlags,
    #[command(flatten)]
    admin: AdminFlags,
    #[command(flatten)]
    tls: TlsFlags,
    #[command(flatten)]
    limits: Limits,
    /// As an earlier version whose streams know these kinds of message, as bits: for tests
    #[arg(long, hide = true)]
    pretend_stream_features: Option<u32>,
    #[command(flatten)]
    console: ConsoleFlags,
    /// The format of log lines; RUST_LOG says which lines there are
    #[arg(long, env = "LESSOR_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// Everything that clients can make grow.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct Limits {
    /// Connections at a time; more wait until one has gone
    #[arg(long, env = "LESSOR_MAX_CONNECTIONS", value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    max_connections: usize,
    /// Connections from one address at a time; more are turned away [default: half of those of a port]
    #[arg(long, env = "LESSOR_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N", value_parser = at_least_one)]
    max_connections_per_address: Option<usize>,
    /// Handshakes of TLS from one address in a second, in the long run; more wait
    #[arg(long, env = "LESSOR_MAX_HANDSHAKES_PER_ADDRESS", value_name = "N", default_value_t = 500, value_parser = at_least_one_a_second)]
    max_handshakes_per_address: u32,
    /// Calls, and messages on streams, from one address in a second, in the long run; more wait, and are not read meanwhile
    /// [default: any number]
    #[arg(long, env = "LESSOR_MAX_REQUESTS_PER_ADDRESS", value_name = "N", value_parser = at_least_one_a_second)]
    max_requests_per_address: Option<u32>,
    /// Streams at a time, all connections together; more are refused
    #[arg(long, env = "LESSOR_MAX_STREAMS", value_name = "N", default_value_t = 100_000, value_parser = at_least_one)]
    max_streams: usize,
    /// Resources in all
    #[arg(long, env = "LESSOR_MAX_RESOURCES", value_name = "N", default_value_t = 100_000, value_parser = at_least_one)]
    max_resources: usize,
    /// Clients of one resource
    #[arg(long, env = "LESSOR_MAX_CLIENTS_PER_RESOURCE", value_name = "N", default_value_t = 1_000_000, value_parser = at_least_one)]
    max_clients_per_resource: usize,
    /// Holdings in all: each client counts as often as it holds or wants a resource. A holding takes some 170 bytes where clients
    /// poll, and 560 to 1,060 where they stream
    #[arg(long, env = "LESSOR_MAX_HOLDINGS", value_name = "N", default_value_t = 2_000_000, value_parser = at_least_one)]
    max_holdings: usize,
    /// Resources in one request; Doorman's clients put all of theirs into one
    #[arg(long, env = "LESSOR_MAX_RESOURCES_PER_REQUEST", value_name = "N", default_value_t = 20_000, value_parser = at_least_one)]
    max_resources_per_request: usize,
    /// Resources that one stream holds: a heartbeat renews all of them
    #[arg(long, env = "LESSOR_MAX_RESOURCES_PER_STREAM", value_name = "N", default_value_t = NodeConfig::RESOURCES_PER_STREAM, value_parser = at_least_one)]
    max_resources_per_stream: usize,
    /// Bytes in one request, and in one message on a stream
    #[arg(long, env = "LESSOR_MAX_REQUEST_BYTES", value_name = "N", default_value_t = 4 << 20, value_parser = at_least_one)]
    max_request_bytes: usize,
    /// Bytes in the name of a client or resource
    #[arg(long, env = "LESSOR_MAX_NAME_BYTES", value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    max_name_bytes: usize,
    /// Priorities of one resource
    #[arg(long, env = "LESSOR_MAX_PRIORITIES", value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    max_priorities: usize,
    /// Buckets of the demand curves of one resource, of a node below
    #[arg(long, env = "LESSOR_MAX_BUCKETS", value_name = "N", default_value_t = 1_024, value_parser = at_least_one)]
    max_buckets: usize,
    /// Processes under one client id that hold a resource at once
    #[arg(long, env = "LESSOR_MAX_LIVES_PER_CLIENT", value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    max_lives_per_client: usize,
}

// === impl Limits ===

impl Limits {
    fn of_address(&self) -> AddressLimits {
        AddressLimits {
            handshakes: self.max_handshakes_per_address.into(),
            requests: self.max_requests_per_address.map(f64::from),
        }
    }
}

// === impl Serve ===

impl Serve {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let log = log::start(self.log_format, "info");
        log::note_panics();
        self.check()?;
        let (repository, mut templates, followed) = FollowedTemplates::open(&self).await?;
        let mut rules = self.access.sources();
        let (access, auth_keys) = (rules.load()?, rules.keys.as_mut().map(Source::load).transpose()?);
        let has_rules = access.is_some();
        let (rules, mut files) = rules.followers();
        files.splice(0..0, followed);
        let levers = Arc::new(ServeLevers { log, files });
        let signals = Signals::listen()?;
        let options = ServerOptions {
            access,
            auth_keys,
            templates: templates.watch(),
            ..self.options(&levers, has_rules)?
        };
        let mut config = self.node_config();
        config.keys = self.tasks.keys()?;
        config.trust_claims = config.keys.is_none();
        config.claims = self.tasks.claims();
        self.announce(&config, &repository);
        self.tls.warn(self.listen);
        let server = Server::start(options, config, repository).await?;
        let end = serve(&server, &mut templates, rules, (signals, &levers)).await;
        templates.leave().await;
        if end == End::Broken {
            error!("the node has failed one of its own checks: this process ends");
            server.abandon().await;
            anyhow::bail!(
                "the node has failed one of its own checks, and its books cannot be trusted any more"
            );
        }
        info!("draining");
        match server.drain().await {
            true => info!("drained"),
            false => info!(after = ?self.drain, "ended with requests in flight"),
        }
        Ok(())
    }

    /// Tasks that are elected remember at etcd, and a directory would be of no account.
    fn check(&self) -> Result<(), clap::Error> {
        let is_file = matches!(self.config, ConfigPlace::File(_));
        if self.tasks.are_elected() && self.state_dir.is_some() && is_file {
            let fault = "the argument '--etcd <URL,...>' cannot be used with '--state-dir <DIR>': tasks that are elected remember \
                         at etcd; only the templates of --config etcd:PREFIX are kept in a directory besides\n";
            return Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, fault));
        }
        Ok(())
    }

    /// The options of the server, but for rules and keys.
    fn options(&self, levers: &Arc<ServeLevers>, has_rules: bool) -> anyhow::Result<ServerOptions> {
        let around = Surroundings {
            state_dir: self.state_dir.as_deref().filter(|_| !self.tasks.are_elected()),
            speaks_tls: self.tls.options().is_some(),
            is_insecure: self.tls.is_insecure(),
            has_rules,
        };
        Ok(ServerOptions {
            http: self.http,
            tls: self.tls.options(),
            plain: self.tls.plain()?,
            parent_tls: self.tls.parent(),
            peer_tls: self.tls.peers(),
            parent_token: self.access.parent_token(),
            advertise: self.advertise.clone(),
            drain: self.drain,
            request_time: self.request_timeout,
            connections: self.limits.max_connections,
            connections_per_address: self.limits.max_connections_per_address,
            address_limits: self.limits.of_address(),
            streams: self.limits.max_streams,
            request_bytes: self.limits.max_request_bytes,
            election: self.tasks.election()?,
            // Where tasks are elected only templates are kept there.
            state: self.state_dir.clone().filter(|_| !self.tasks.are_elected()),
            admin: self.admin.options(&around, levers)?,
            pages: Some(self.console.pages()),
            page_hosts: self.console.page_hosts(),
            build: Build {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: env!("LESSOR_BUILT_FROM").to_owned(),
            },
            ..ServerOptions::new(self.listen)
        })
    }

    /// Says in the first line of the log what begins here.
    fn announce(&self, config: &NodeConfig, repository: &Repository) {
        let templates = repository.templates().len();
        let (version, node, file) = (env!("LESSOR_VERSION"), &self.node, &self.config);
        let parent = match &self.parent[..] {
            [] => "none".to_owned(),
            servers => servers.join(","),
        };
        let memory = match (&self.state_dir, self.tasks.are_elected()) {
            (_, true) => "etcd",
            (Some(_), _) => "state directory",
            (None, _) => "none",
        };
        let epoch = config.epoch;
        let learning = self.learning(LearningTimes::at_start(repository, config));
        info!(version, %node, %file, templates, parent, memory, %epoch, learning, "starting");
    }

    /// Whether it learns what is out, for how long and until when.
    fn learning(&self, LearningTimes { leases, floors }: LearningTimes) -> String {
        if leases.is_zero() && floors.is_zero() {
            return "no".to_owned();
        }
        if self.tasks.are_elected() {
            return "once it leads, unless the record says what is out".to_owned();
        }
        let until = |time: Duration| {
            let end = SystemTime::UNIX_EPOCH + clock::wall().since_epoch + time;
            format!("{time:.1?}, until {}", humantime::format_rfc3339_seconds(end))
        };
        let mut learning = format!("for {}", until(leases));
        if !floors.is_zero() {
            learning.push_str(&format!(", and of floors for {}", until(floors)));
        }
        if self.state_dir.is_some() {
            learning.push_str(", unless the record says what is out");
        }
        learning
    }

    fn node_config(&self) -> NodeConfig {
        let mut config = NodeConfig::new(self.node.clone(), epoch());
        config.resources = self.limits.max_resources;
        config.clients_per_resource = self.limits.max_clients_per_resource;
        config.holdings = self.limits.max_holdings;
        config.resources_per_stream = self.limits.max_resources_per_stream;
        config.lives_per_client = self.limits.max_lives_per_client;
        config.message.name_bytes = self.limits.max_name_bytes;
        config.message.resources_per_request = self.limits.max_resources_per_request;
        config.message.bands_per_resource = self.limits.max_priorities;
        config.message.buckets_per_resource = self.limits.max_buckets;
        config.hash_seed = random::number();
        config.parent = (!self.parent.is_empty()).then(|| ParentConfig {
            servers: self.parent.clone(),
            transport: Transport::Stream,
            eager: true,
        });
        config.features = self.pretend_stream_features.map_or(config.features, Features::from_bits);
        config.unknown_names = self.honour_unknown.then(|| Arc::new(whatever_is_wanted()));
        config
    }
}

/// Why a server ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It was told to.
    Signal,
    /// Its node has failed one of its own checks.
    Broken,
}

/// Until a signal says to end, or the node is broken.
async fn serve(
    server: &Server,
    templates: &mut FollowedTemplates,
    rules: AccessFollowers,
    (signals, levers): (Signals, &ServeLevers),
) -> End {
    let Signals { mut terminate, mut interrupt, hang_up } = signals;
    let templates = templates.follow(server.driver());
    tokio::select! {
        _ = terminate.recv() => End::Signal,
        _ = interrupt.recv() => End::Signal,
        () = server.broken() => End::Broken,
        never = templates => match never {},
        never = rules.follow(server.gate()) => match never {},
        never = hear(hang_up, levers, server) => match never {},
    }
}

/// Lets all who follow files know when a signal says to read them again. The server follows those of certificates itself.
async fn hear(mut hang_up: Signal, levers: &ServeLevers, server: &Server) -> Infallible {
    loop {
        hang_up.recv().await;
        levers.files.iter().for_each(FollowedFile::hint);
        server.renew_certificates();
        server.reopen_audit_log();
    }
}

fn reload(driver: &Driver, loaded: Result<Repository, LoadError>) -> Outcome {
    let outcome = match loaded {
        Ok(repository) => {
            let version = Some(repository.version()).filter(|&version| version > 0);
            driver.reload(repository).map(|()| version).map_err(anyhow::Error::from)
        }
        Err(fault) => Err(fault.into()),
    };
    outcome.map_err(|fault| {
        driver.reload_failed();
        error!("the old configuration stays in force\n{fault}");
        fault.to_string()
    })
}

/// The node above knows this one by its name, as it does clients.
fn node_name(text: &str) -> Result<String, String> {
    const BYTES: usize = 256;
    match ClientId::new(text, BYTES) {
        Ok(_) => Ok(text.to_owned()),
        Err(fault) => {
            Err(format!("it {fault}; wanted 1 to {BYTES} bytes of text without control characters"))
        }
    }
}

fn at_least_one_a_second(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("wanted a whole number of at least 1, and at most {}", u32::MAX))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("wanted a whole number of at least 1".to_owned()),
    }
}

/// A server alone and without memory has nobody to ask which epochs there have been: it goes by the date, as those that are
/// elected or remember do in their first. Below the millisecond it is drawn: two of one name that are started together are two.
pub(crate) fn epoch() -> Epoch {
    let date = next_epoch(
        Epoch::default(),
        u64::try_from(clock::wall().since_epoch.as_millis()).unwrap_or(u64::MAX),
    );
    Epoch(date.0 | (random::number() & 0xffff))
}

fn whatever_is_wanted() -> Template {
    Template {
        safe_capacity: SafeCapacity::Unlimited,
        description: "no template matches it".to_owned(),
        policy: lessor_server::repository::SharePolicy::None,
        ..Template::new(Glob::new("*").expect("a glob"), Amount::ZERO)
    }
}

#[cfg(test)]
pub(crate) mod deploy;
