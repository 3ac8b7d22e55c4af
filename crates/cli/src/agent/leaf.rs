//! The leaf in an agent: a node below the server, out of whose lease doors and programs of the host have theirs.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use lessor_client::Transport;
use lessor_doors::rules::RuleBook;
use lessor_doors::rules::templates::templates;
use lessor_server::node::{NodeConfig, ParentConfig};
use lessor_server::repository::Repository;
use lessor_server::shell::source::{self, Source};
use lessor_server::shell::{Build, Server, ServerOptions, random};
use tokio::sync::{Mutex, watch};
use tracing::{error, warn};

use crate::pages::ServerFlags;
use crate::serve::epoch;

/// The plan of a leaf.
pub(super) struct HostLeafPlan<'a> {
    pub(super) listen: SocketAddr,
    /// The name of the node.
    pub(super) name: String,
    pub(super) servers: &'a ServerFlags,
    /// Templates beside those of the rules.
    pub(super) config: Option<PathBuf>,
    /// The directory in which it remembers what is out; absent: nowhere.
    pub(super) state: Option<PathBuf>,
    pub(super) drain: Duration,
}

/// A leaf that runs.
pub(super) struct HostLeaf {
    server: Server,
    /// The file with templates, and what of it has been seen.
    config: Mutex<Option<Source<Repository>>>,
    /// The templates of the rules in force.
    rules: watch::Sender<Repository>,
}

// === impl HostLeaf ===

impl HostLeaf {
    /// Starts it, with the templates of these rules.
    pub(super) async fn start(plan: HostLeafPlan<'_>, book: &RuleBook) -> anyhow::Result<HostLeaf> {
        if !plan.listen.ip().is_loopback() {
            let address = plan.listen;
            warn!(%address, "plain, and other machines reach it: wanted loopback, as it leases to whoever asks");
        }
        let mut config = NodeConfig::new(plan.name, epoch());
        config.hash_seed = random::number();
        config.parent = Some(ParentConfig {
            servers: plan.servers.server.iter().map(|server| Arc::from(server.as_str())).collect(),
            transport: Transport::Stream,
            eager: true,
        });
        let options = ServerOptions {
            parent_tls: plan.servers.tls.settings(),
            parent_token: plan.servers.tls.token(),
            drain: plan.drain,
            state: plan.state,
            build: Build {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: env!("LESSOR_BUILT_FROM").to_owned(),
            },
            ..ServerOptions::new(plan.listen)
        };
        let mut source = plan.config.map(Source::new);
        let own = source.as_mut().map(Source::load).transpose().context("--lease-out-config")?;
        let rules = watch::Sender::new(of_rules(book)?);
        let repository = joined(own.as_ref(), &rules.borrow())?;
        let server = Server::start(options, config, repository).await.context("--lease-out")?;
        Ok(HostLeaf { server, config: Mutex::new(source), rules })
    }

    /// The address at which programs of this host find it.
    pub(super) fn address(&self) -> String {
        let mut address = self.server.address();
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        address.to_string()
    }

    /// Takes the templates of other rules.
    pub(super) fn take_rules(&self, book: &RuleBook) {
        match of_rules(book) {
            Ok(repository) => {
                self.rules.send_replace(repository);
            }
            Err(fault) => error!("the old templates stay in force\n{fault:#}"),
        }
    }

    /// Puts templates in force whenever the rules or their own file have changed.
    pub(super) async fn follow(&self) -> Infallible {
        let (mut rules, mut config) = (self.rules.subscribe(), self.config.lock().await);
        loop {
            tokio::select! {
                // The sender is here.
                _ = rules.changed() => {}
                () = changed(config.as_ref()) => {}
            }
            if let Err(fault) = self.reload(config.as_mut()) {
                self.server.driver().reload_failed();
                error!("the old templates stay in force\n{fault:#}");
            }
        }
    }

    fn reload(&self, config: Option<&mut Source<Repository>>) -> anyhow::Result<()> {
        let own = config.map(Source::load).transpose()?;
        self.server.driver().reload(joined(own.as_ref(), &self.rules.borrow())?)?;
        Ok(())
    }

    /// Waits until its books cannot be trusted any more.
    pub(super) async fn broken(&self) -> anyhow::Error {
        self.server.broken().await;
        anyhow!("the leaf has failed one of its own checks, and its books cannot be trusted any more")
    }

    /// Ends it. Programs live on their leases meanwhile.
    pub(super) async fn end(self) {
        self.server.drain().await;
    }
}

/// Waits until a file has changed, if there is one.
async fn changed(source: Option<&Source<Repository>>) {
    match source {
        Some(source) => source.changed().await,
        None => std::future::pending().await,
    }
}

/// The templates of what doors lease.
fn of_rules(book: &RuleBook) -> anyhow::Result<Repository> {
    source::parse("the templates of the rules", &templates(book)).map_err(|faults| anyhow!("{faults}"))
}

/// Templates of a file, and those of rules of which none has the same name there.
fn joined(own: Option<&Repository>, rules: &Repository) -> anyhow::Result<Repository> {
    let own = own.map_or(&[][..], Repository::templates);
    let is_new = |template: &&Arc<_>| {
        let rule: &lessor_server::repository::Template = template;
        own.iter().all(|own| own.glob != rule.glob)
    };
    let all = own.iter().chain(rules.templates().iter().filter(is_new));
    Ok(Repository::new(all.map(|template| template.as_ref().clone()).collect())?)
}
