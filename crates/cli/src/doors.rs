//! `lessor doors`: doors through which proxies ask for limits and programs for locks, over leases of a server; until it is told to
//! end.

mod files;
mod peer;
mod pool;
mod reach;
mod sockets;
mod tls;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use lessor_client::internals::clock;
use lessor_client::{Builder, Client};
use lessor_doors::rules::RuleBook;
use lessor_doors::shell::{DoorAddress, DoorTls, Doors, HandedSocket, KeyBounds, Listening, UsedWindows};
use sd_notify::NotifyState;
use tokio::signal::unix::Signal;
use tracing::{error, info, warn};

pub(crate) use self::files::RuleFiles;
use self::files::RuleSource;
use self::peer::{PeerService, PeerSettings};
use self::pool::PoolFlags;
use self::reach::watch_servers;
pub(crate) use self::sockets::handed_over;
use self::sockets::{SocketFlags, tell_supervisor};
use self::tls::DoorTlsFlags;
use crate::log::{self, LogFormat};
use crate::pages::ServerFlags;
use crate::signals::Signals;

/// Answers proxies that ask whether a request may pass: Envoy over gRPC, and nginx, Traefik and others over HTTP; and programs
/// that ask PoolCounter for a lock. What they may is leased from a server, which needs the templates that `lessor import` prints.
/// SIGTERM and SIGINT drain it, SIGHUP or a changed file reload the rules.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("files").args(["rules", "ratelimit", "peer"]).multiple(true).required(true))]
#[command(group = ArgGroup::new("mouths").args(["rls", "http", "pool", "peer"]).multiple(true).required(true))]
pub(crate) struct OpenDoors {
    #[command(flatten)]
    pub(crate) rules: RuleFlags,
    /// Take the place of another service: its ports, its files and its settings, from the variables that it reads. Flags that
    /// are given count before them
    #[arg(long = "as", env = "LESSOR_DOORS_AS", value_name = "SERVICE", conflicts_with = "rules")]
    peer: Option<PeerService>,
    /// Where to serve Envoy's rate limit service over gRPC; unix:PATH is a socket of the file system. May be given several times
    #[arg(long, env = "LESSOR_DOORS_RLS", value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) rls: Vec<DoorAddress>,
    /// Where to serve checks over HTTP, the rate limit service as JSON, /status, /readyz and /metrics. May be given several times
    #[arg(long, env = "LESSOR_DOORS_HTTP", value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) http: Vec<DoorAddress>,
    #[command(flatten)]
    pool: PoolFlags,
    #[command(flatten)]
    sockets: SocketFlags,
    #[command(flatten)]
    tls: DoorTlsFlags,
    /// Connections that a door takes at a time; others wait. Peers that the rules do not trust have a quarter of them
    #[arg(long, env = "LESSOR_DOORS_CONNECTIONS", value_name = "N", default_value_t = 4_096, value_parser = connections)]
    connections: usize,
    /// Keys of a limit that are remembered at a time; others are answered as without a lease. A server takes no more of all limits
    /// of one process than its --max-resources-per-stream says: whoever has more keys raises both
    #[arg(long, env = "LESSOR_DOORS_MAX_KEYS", value_name = "N", default_value_t = KeyBounds::default().most, value_parser = keys)]
    max_keys: usize,
    /// New keys that one peer may ask for in a second, an address or the user at a socket, with ten seconds of them at once; others
    /// are answered as without a lease [default: any number]
    #[arg(long, env = "LESSOR_DOORS_MAX_NEW_KEYS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_new_keys: Option<u32>,
    /// The client id; made up without it
    #[arg(long, env = "LESSOR_DOORS_ID", value_name = "NAME")]
    pub(crate) id: Option<String>,
    /// Refuse nothing, and count what would be refused
    #[arg(long, env = "LESSOR_DOORS_SHADOW")]
    shadow: bool,
    /// The time that requests in flight may take when it ends
    #[arg(long, env = "LESSOR_DRAIN", value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) drain: Duration,
    #[command(flatten)]
    pub(crate) servers: ServerFlags,
    /// The format of log lines, text without it; RUST_LOG says which lines there are
    #[arg(long, env = "LESSOR_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// The settings of the service whose place is taken.
    #[arg(skip)]
    taken: Option<PeerSettings>,
    /// The rules where nobody says which; there need be no such file.
    #[arg(skip)]
    pub(crate) usual_rules: Option<PathBuf>,
}

/// A process with doors at its beginning.
pub(crate) struct Begun {
    source: RuleSource,
    pub(crate) book: RuleBook,
    signals: Signals,
    handed: Vec<HandedSocket>,
}

/// The leases behind doors.
pub(crate) struct Backing<'a> {
    pub(crate) client: Client,
    /// The way to the servers that lease, which is looked at now and then.
    pub(crate) servers: Builder,
    /// Hears of rules that are put in force.
    pub(crate) on_rules: &'a (dyn Fn(&RuleBook) + Sync),
}

/// The files with the rules of doors.
#[derive(Clone, Debug, Args)]
pub(crate) struct RuleFlags {
    /// The rules, as docs/doors.md says
    #[arg(long, visible_alias = "doors", env = "LESSOR_DOORS_RULES", value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// A file of envoyproxy/ratelimit as it is, or a directory of them; may be given several times
    #[arg(long, env = "LESSOR_DOORS_RATELIMIT", value_name = "PATH", value_delimiter = ',')]
    pub(crate) ratelimit: Vec<PathBuf>,
}

/// Files are looked at again after so long: whoever replaces them need not say so.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

// === impl RuleFlags ===

impl RuleFlags {
    /// The files that they name.
    pub(crate) fn files(&self) -> RuleFiles {
        RuleFiles { doors: self.rules.clone(), ratelimit: self.ratelimit.clone(), ..RuleFiles::default() }
    }
}

// === impl OpenDoors ===

impl OpenDoors {
    pub(crate) fn run(mut self) -> impl Future<Output = anyhow::Result<()>> {
        // Before there are threads: that changes the environment.
        let handed = handed_over();
        async move {
            let begun = self.begin(handed?)?;
            let servers = self.servers.client(self.id.as_deref())?;
            // It need not reach a server yet: doors answer that nothing is leased until then.
            let client = servers.clone().build()?;
            self.serve(begun, Backing { client, servers, on_rules: &|_| {} }).await
        }
    }

    /// Whether it is said where to serve.
    pub(crate) fn is_somewhere(&self) -> bool {
        self.peer.is_some() || !self.rls.is_empty() || !self.http.is_empty() || self.pool.is_somewhere()
    }

    /// Whether another process may listen at its ports.
    pub(crate) fn shares_ports(&self) -> bool {
        self.sockets.are_ports_shared()
    }

    /// Begins: with the log, with the settings of the service whose place is taken, and with the rules.
    pub(crate) fn begin(&mut self, handed: Vec<HandedSocket>) -> anyhow::Result<Begun> {
        let of_peer = |service| PeerSettings::of(service, &|name| std::env::var(name).ok());
        self.taken = self.peer.map(of_peer).transpose()?;
        let of_peer = self.taken.as_ref().map(|taken| (taken.log_format, taken.log_level));
        let (format, level) = of_peer.unwrap_or((LogFormat::Text, "info"));
        log::start(self.log_format.unwrap_or(format), level);
        log::note_panics();
        self.take_place();
        let mut source = RuleSource::new(self.files());
        let book = self.in_manner(source.load()?);
        self.pool.check(&book)?;
        Ok(Begun { source, book, signals: Signals::listen()?, handed })
    }

    /// Serves until it is told to end, and gives everything back.
    pub(crate) async fn serve(&self, begun: Begun, backing: Backing<'_>) -> anyhow::Result<()> {
        let Begun { mut source, book, signals, handed } = begun;
        let client = backing.client.clone();
        info!(version = env!("LESSOR_VERSION"), rules = %Counted(&book), id = %client.id(), "starting");
        let bounds = KeyBounds { most: self.max_keys, new_a_second: self.max_new_keys };
        let doors = Arc::new(Doors::bounded(client.clone(), book, bounds));
        let tls = self.tls.load()?;
        let listening = self.open(&doors, handed, tls.as_ref()).await?;
        tell_supervisor(&[NotifyState::Ready, NotifyState::Status("no server has answered yet")]);
        let Signals { mut terminate, mut interrupt, hang_up } = signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            never = self.follow((&mut source, &doors), tls.as_deref(), hang_up, backing.on_rules) => match never {},
            never = watch_servers(&backing.servers, &doors) => match never {},
        }
        tell_supervisor(&[NotifyState::Stopping, NotifyState::Status("draining")]);
        info!("draining");
        match listening.drain(self.drain).await {
            true => info!("drained"),
            false => info!(after = ?self.drain, "ended with requests in flight"),
        }
        let UsedWindows { keys, uses } = doors.used_windows();
        // What is not in use goes back, and the rest is left to its lease.
        client.close().await;
        match keys {
            0 => info!("all leases are released"),
            _ => info!(
                keys,
                uses, "released but for what was used in windows: that stays charged until its lease ends"
            ),
        }
        Ok(())
    }

    /// Serves where the service did whose place is taken, as far as flags do not say otherwise.
    fn take_place(&mut self) {
        let Some(taken) = &self.taken else { return };
        if self.rls.is_empty() {
            self.rls.push(taken.rls.clone());
        }
        if self.http.is_empty() {
            self.http.push(taken.http.clone());
        }
        if let Some(tls) = &taken.tls {
            self.tls.take(tls);
        }
        if !taken.passed_over.is_empty() {
            let variables = taken.passed_over.join(", ");
            warn!(variables, "passed over: units are leased, and figures are at /metrics");
        }
    }

    /// The files with the rules.
    fn files(&self) -> RuleFiles {
        let mut files = self.rules.files();
        if let (None, None, [], Some(usual)) =
            (&files.doors, &self.taken, &files.ratelimit[..], &self.usual_rules)
        {
            (files.doors, files.is_optional) = (Some(usual.clone()), true);
        }
        if let Some(taken) = &self.taken {
            files.document = taken.document();
            if files.ratelimit.is_empty() {
                files.ratelimit.push(taken.files.clone());
            }
        }
        files
    }

    fn in_manner(&self, book: RuleBook) -> RuleBook {
        let book = match &self.taken {
            Some(taken) => taken.in_manner(book),
            None => book,
        };
        if self.shadow { book.in_shadow() } else { book }
    }

    async fn open(
        &self,
        doors: &Arc<Doors>,
        handed: Vec<HandedSocket>,
        tls: Option<&Arc<DoorTls>>,
    ) -> anyhow::Result<Listening> {
        let sockets = self.sockets.sockets().with_handed(handed);
        let are_secure = self.tls.are_there();
        let [of_rls, of_http] = are_secure.map(|is_there| tls.filter(|_| is_there).cloned());
        let mut listening = Listening::new(Arc::clone(doors), self.connections)
            .with_sockets(sockets)
            .with_tls(of_rls, of_http);
        let [rls, http] = [(&self.rls, are_secure[0]), (&self.http, are_secure[1])]
            .map(|(addresses, is_secure)| addresses.iter().filter(move |_| !is_secure));
        for address in rls.chain(http).chain(&self.pool.pool) {
            if let DoorAddress::Port(address) = address
                && !address.ip().is_loopback()
            {
                warn!(%address, "plain, and other machines reach it: wanted --tls-cert and --tls-key, or a network of proxies only");
            }
        }
        let (mut rls, mut http) = (Vec::new(), Vec::new());
        for address in &self.rls {
            rls.push(listening.open_rls(address).await.context("--rls")?);
        }
        for address in &self.http {
            http.push(listening.open_http(address).await.context("--http")?);
        }
        let pool = self.pool.open(&mut listening).await?;
        if let Some(left) = listening.sockets().left().first() {
            let address =
                left.address().map_or_else(|fault| fault.to_string(), |address| address.to_string());
            bail!(
                "the supervisor has handed over a socket at {address}; wanted --rls, --http or --pool there"
            );
        }
        info!(rls = named(&rls), http = named(&http), pool = named(&pool), "serving");
        Ok(listening)
    }

    /// Puts the rules in force whenever their files have changed, or a signal says to read them again.
    async fn follow(
        &self,
        (source, doors): (&mut RuleSource, &Doors),
        tls: Option<&DoorTls>,
        mut hang_up: Signal,
        on_rules: &(dyn Fn(&RuleBook) + Sync),
    ) -> Infallible {
        loop {
            let is_told = tokio::select! {
                _ = hang_up.recv() => true,
                () = clock::sleep_until(clock::now() + LOOK_AGAIN) => false,
            };
            if let Some(tls) = tls {
                tls::refresh(tls, doors);
            }
            if !source.look() && !is_told {
                continue;
            }
            match source.load() {
                Ok(book) => {
                    info!(rules = %Counted(&book), "reloaded");
                    on_rules(&book);
                    doors.replace(self.in_manner(book));
                }
                Err(fault) => {
                    doors.reload_failed();
                    error!("the old rules stay in force\n{fault:#}");
                }
            }
        }
    }
}

/// Addresses in one word.
fn named(addresses: &[DoorAddress]) -> String {
    match addresses {
        [] => "none".to_owned(),
        _ => addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

/// A number of keys.
fn keys(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok().filter(|number| (1..=10_000_000).contains(number));
    number.ok_or_else(|| "wanted a number from 1 to 10000000".to_owned())
}

/// A number of connections.
fn connections(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok().filter(|number| (4..=1_000_000).contains(number));
    number.ok_or_else(|| "wanted a number from 4 to 1000000".to_owned())
}

/// The number of sets and limits, in words, and the edition where there is one.
pub(crate) struct Counted<'a>(pub(crate) &'a RuleBook);

// === impl Counted ===

impl std::fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (sets, limits) = (self.0.sets().len(), self.0.limits());
        write!(f, "{sets} set{}, {limits} limit{}", plural(sets), plural(limits))?;
        match self.0.version {
            0 => Ok(()),
            version => write!(f, ", version {version}"),
        }
    }
}
