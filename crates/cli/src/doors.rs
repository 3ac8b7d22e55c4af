//! `lessor doors`: doors through which proxies ask for limits, over leases of a server; until it is told to end.

mod files;
mod peer;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{ArgGroup, Args};
use lessor_client::Client;
use lessor_client::internals::clock;
use lessor_doors::rules::RuleBook;
use lessor_doors::shell::{DoorAddress, Doors, Listening};
use tokio::signal::unix::Signal;
use tracing::{error, info, warn};

pub(crate) use self::files::RuleFiles;
use self::files::RuleSource;
use self::peer::{PeerService, PeerSettings};
use crate::log::{self, LogFormat};
use crate::pages::ServerFlags;
use crate::signals::Signals;

/// Answers proxies that ask whether a request may pass: Envoy over gRPC, and nginx, Traefik and others over HTTP. What they
/// may is leased from a server, which needs the templates that `lessor import` prints. SIGTERM and SIGINT drain it, SIGHUP or a
/// changed file reload the rules.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("files").args(["rules", "ratelimit", "peer"]).multiple(true).required(true))]
#[command(group = ArgGroup::new("mouths").args(["rls", "http", "peer"]).multiple(true).required(true))]
pub(crate) struct OpenDoors {
    #[command(flatten)]
    rules: RuleFlags,
    /// Take the place of another service: its ports, its files and its settings, from the variables that it reads. Flags that
    /// are given count before them
    #[arg(long = "as", env = "LESSOR_DOORS_AS", value_name = "SERVICE", conflicts_with = "rules")]
    peer: Option<PeerService>,
    /// Where to serve Envoy's rate limit service over gRPC; unix:PATH is a socket of the file system
    #[arg(long, env = "LESSOR_DOORS_RLS", value_name = "HOST:PORT")]
    rls: Option<DoorAddress>,
    /// Where to serve checks over HTTP, the rate limit service as JSON, /healthcheck and /metrics
    #[arg(long, env = "LESSOR_DOORS_HTTP", value_name = "HOST:PORT")]
    http: Option<DoorAddress>,
    /// Connections that a door takes at a time; others wait. Peers that the rules do not trust have a quarter of them
    #[arg(long, env = "LESSOR_DOORS_CONNECTIONS", value_name = "N", default_value_t = 4_096, value_parser = connections)]
    connections: usize,
    /// The client id; made up without it, and no two processes may have one
    #[arg(long, env = "LESSOR_DOORS_ID", value_name = "NAME")]
    id: Option<String>,
    /// Refuse nothing, and count what would be refused
    #[arg(long, env = "LESSOR_DOORS_SHADOW")]
    shadow: bool,
    /// The time that requests in flight may take when it ends
    #[arg(long, env = "LESSOR_DRAIN", value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    drain: Duration,
    #[command(flatten)]
    servers: ServerFlags,
    /// The format of log lines, text without it; RUST_LOG says which lines there are
    #[arg(long, env = "LESSOR_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// The settings of the service whose place is taken.
    #[arg(skip)]
    taken: Option<PeerSettings>,
}

/// The files with the rules of doors.
#[derive(Clone, Debug, Args)]
pub(crate) struct RuleFlags {
    /// The rules, as docs/doors.md says
    #[arg(long, env = "LESSOR_DOORS_RULES", value_name = "FILE")]
    rules: Option<std::path::PathBuf>,
    /// A file of envoyproxy/ratelimit as it is, or a directory of them; may be given several times
    #[arg(long, env = "LESSOR_DOORS_RATELIMIT", value_name = "PATH", value_delimiter = ',')]
    ratelimit: Vec<std::path::PathBuf>,
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
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let of_peer = |service| PeerSettings::of(service, &|name| std::env::var(name).ok());
        self.taken = self.peer.map(of_peer).transpose()?;
        let of_peer = self.taken.as_ref().map(|taken| (taken.log_format, taken.log_level));
        let (format, level) = of_peer.unwrap_or((LogFormat::Text, "info"));
        log::start(self.log_format.unwrap_or(format), level);
        log::note_panics();
        self.take_place();
        let mut source = RuleSource::new(self.files());
        let book = self.in_manner(source.load()?);
        let signals = Signals::listen()?;
        let client = self.client()?;
        info!(version = env!("LESSOR_VERSION"), rules = %Counted(&book), id = %client.id(), "starting");
        let doors = Arc::new(Doors::new(client.clone(), book));
        let listening = self.open(&doors).await?;
        let Signals { mut terminate, mut interrupt, hang_up } = signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            never = self.follow(&mut source, &doors, hang_up) => match never {},
        }
        info!("draining");
        match listening.drain(self.drain).await {
            true => info!("drained"),
            false => info!(after = ?self.drain, "ended with requests in flight"),
        }
        // What is not in use goes back, and the rest is left to its lease.
        client.close().await;
        Ok(())
    }

    /// Serves where the service did whose place is taken, as far as flags do not say otherwise.
    fn take_place(&mut self) {
        let Some(taken) = &self.taken else { return };
        self.rls.get_or_insert_with(|| taken.rls.clone());
        self.http.get_or_insert_with(|| taken.http.clone());
        if !taken.passed_over.is_empty() {
            let variables = taken.passed_over.join(", ");
            warn!(variables, "passed over: units are leased, and figures are at /metrics");
        }
    }

    /// The files with the rules.
    fn files(&self) -> RuleFiles {
        let mut files = self.rules.files();
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

    /// The client, which need not reach a server yet: doors answer that nothing is leased until then.
    fn client(&self) -> anyhow::Result<Client> {
        Ok(self.servers.client(self.id.as_deref())?.build()?)
    }

    async fn open(&self, doors: &Arc<Doors>) -> anyhow::Result<Listening> {
        let mut listening = Listening::new(Arc::clone(doors), self.connections);
        for address in self.rls.iter().chain(&self.http) {
            if let DoorAddress::Port(address) = address
                && !address.ip().is_loopback()
            {
                warn!(%address, "plain, and other machines reach it: wanted a network of proxies only");
            }
        }
        let rls = match &self.rls {
            Some(address) => listening.open_rls(address).await.context("--rls")?.to_string(),
            None => "none".to_owned(),
        };
        let http = match &self.http {
            Some(address) => listening.open_http(address).await.context("--http")?.to_string(),
            None => "none".to_owned(),
        };
        info!(rls, http, "serving");
        Ok(listening)
    }

    /// Puts the rules in force whenever their files have changed, or a signal says to read them again.
    async fn follow(&self, source: &mut RuleSource, doors: &Doors, mut hang_up: Signal) -> Infallible {
        loop {
            let is_told = tokio::select! {
                _ = hang_up.recv() => true,
                () = clock::sleep_until(clock::now() + LOOK_AGAIN) => false,
            };
            if !source.look() && !is_told {
                continue;
            }
            match source.load() {
                Ok(book) => {
                    info!(rules = %Counted(&book), "reloaded");
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
