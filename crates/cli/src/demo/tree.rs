//! The servers: a root, and leaves that hold leases from it over streams on the loopback.

use std::net::SocketAddr;
use std::time::Duration;

use lessor_client::Transport;
use lessor_client::internals::clock;
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::node::{NodeConfig, NodeStatus, ParentConfig, ResourceRow, StatusQuery};
use lessor_server::repository::{Domains, Glob, Repository, SafeCapacity, Template};
use lessor_server::shell::{Server, ServerOptions};
use tokio::task::JoinHandle;

use super::script::{ABSENCE, LEASE, LEAVES};
use super::view;

/// All servers.
#[derive(Debug)]
pub(super) struct Tree {
    capacity: f64,
    /// The rules for tenants that clients are told.
    domains: Domains,
    /// Where the root is whenever it is there.
    address: SocketAddr,
    root: Option<Server>,
    /// It is ending, and another one begins then.
    ending: Option<(JoinHandle<bool>, Time)>,
    leaves: Vec<Server>,
    epoch: Epoch,
}

/// The name of the resource that is leased.
pub(super) const RESOURCE: &str = "target";
/// The burst that clients may save up: enough for requests that bunch up a little.
pub(super) const BURST: Duration = Duration::from_millis(10);
const ANY_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

// === impl Tree ===

impl Tree {
    pub(super) async fn start(capacity: f64, domains: Domains) -> anyhow::Result<Tree> {
        // Nothing is out from before: there is nothing to learn.
        let root = root(ANY_PORT.into(), Epoch(1), repository(capacity, Duration::ZERO, &domains)?).await?;
        let address = root.address();
        let mut leaves = Vec::new();
        for name in LEAVES {
            let mut config = NodeConfig::new(name, Epoch(1));
            let servers = vec![address.to_string().into()];
            config.parent = Some(ParentConfig { servers, transport: Transport::Stream, eager: true });
            let options = ServerOptions::new(ANY_PORT.into());
            let repository = repository(capacity, Duration::ZERO, &domains)?;
            leaves.push(Server::start(options, config, repository).await?);
        }
        Ok(Tree { capacity, domains, address, root: Some(root), ending: None, leaves, epoch: Epoch(1) })
    }

    /// Where the clients of each leaf ask.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.leaves.iter().map(Server::address).collect()
    }

    /// The root ends, as servers do that are told to. Another one begins in its place a while later.
    pub(super) fn end_root(&mut self) {
        if let Some(server) = self.root.take() {
            self.ending = Some((tokio::spawn(server.drain()), clock::now() + ABSENCE));
        }
    }

    /// Another root begins when it is time to. It knows nothing of the one before, and learns for as long as what that one
    /// has granted may last.
    pub(super) async fn begin_root(&mut self) -> anyhow::Result<()> {
        let gone = |(ending, at): &(JoinHandle<bool>, Time)| ending.is_finished() && *at <= clock::now();
        if !self.ending.as_ref().is_some_and(gone) {
            return Ok(());
        }
        let repository = repository(self.capacity, LEASE, &self.domains)?;
        // Somebody may have taken the port: it is tried again.
        if let Ok(server) = root(self.address, self.epoch.next(), repository).await {
            self.epoch = self.epoch.next();
            (self.root, self.ending) = (Some(server), None);
        }
        Ok(())
    }

    /// The state of the root.
    pub(super) fn root(&self) -> view::Root {
        let Some(server) = &self.root else { return view::Root::Away };
        match row(server) {
            Some(row) if row.resource.learning => view::Root::Learns(row.resource.learning_ends_in_seconds),
            // Nobody has come back yet.
            None if self.epoch > Epoch(1) => view::Root::Learns(LEASE.as_secs_f64()),
            _ => view::Root::Serves,
        }
    }

    /// The leaves, without their clients.
    pub(super) fn leaves(&self) -> Vec<view::Leaf> {
        let leaf = |(name, server): (&'static str, &Server)| match row(server) {
            Some(row) => view::Leaf {
                name,
                lease: row.resource.capacity,
                ends: row.lease_ends_in_seconds.unwrap_or(0.0),
                wants: row.resource.wants,
                clients: Vec::new(),
            },
            None => view::Leaf { name, ..view::Leaf::default() },
        };
        LEAVES.into_iter().zip(&self.leaves).map(leaf).collect()
    }

    /// The greatest overcommitment that any of them reports: what it has handed out beyond what it had.
    pub(super) fn overcommitment(&self) -> f64 {
        let rows = self.root.iter().chain(&self.leaves).filter_map(row);
        rows.map(|row| row.resource.overcommitment).fold(0.0, f64::max)
    }

    pub(super) async fn end(self) {
        for leaf in self.leaves {
            leaf.drain().await;
        }
        if let Some(root) = self.root {
            root.drain().await;
        }
        if let Some((ending, _)) = self.ending {
            // One that panicked has ended too.
            let _ = ending.await;
        }
    }
}

async fn root(listen: SocketAddr, epoch: Epoch, repository: Repository) -> anyhow::Result<Server> {
    Ok(Server::start(ServerOptions::new(listen), NodeConfig::new("root", epoch), repository).await?)
}

/// The status of the one resource there is at a server, once somebody has asked for it.
fn row(server: &Server) -> Option<ResourceRow> {
    let query = StatusQuery { holders: 0, domains: 0, ..StatusQuery::default() };
    let NodeStatus { resources, .. } = server.driver().status(&query).ok()?;
    resources.into_iter().find(|row| row.resource.resource == RESOURCE)
}

fn repository(capacity: f64, learning: Duration, domains: &Domains) -> anyhow::Result<Repository> {
    let repository = Repository::new(vec![Template {
        safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
        burst: Some(BURST),
        description: "requests a second".to_owned(),
        lease_length: LEASE,
        refresh_interval: Duration::from_secs(1),
        learning,
        domains: Some(domains.clone()),
        ..Template::new(Glob::new(RESOURCE)?, Amount::from_f64(capacity))
    }])?;
    Ok(repository)
}

#[cfg(test)]
mod tests {
    use lessor_client::Client;
    use tokio::time::{interval, timeout};

    use super::*;
    use crate::demo::tenants;

    /// Longer than anything should take on any machine.
    const AGES: Duration = Duration::from_secs(30);

    async fn until(tree: &mut Tree, mut holds: impl FnMut(&Tree) -> bool) {
        let mut timer = interval(Duration::from_millis(20));
        let waiting = async {
            while !holds(tree) {
                tree.begin_root().await.unwrap();
                timer.tick().await;
            }
        };
        timeout(AGES, waiting).await.expect("it comes to that");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn capacity_is_leased_through_leaves_and_kept_while_another_root_begins() {
        let mut tree = Tree::start(480.0, tenants::domains(40.0).unwrap()).await.unwrap();
        let mut clients = Vec::new();
        for address in tree.addresses() {
            let client = Client::builder(address.to_string()).build().unwrap();
            let queries = client.rate(RESOURCE).wants(400.0).open().unwrap();
            clients.push((client, queries));
        }
        let has = |leases: &[f64], tree: &Tree| {
            let leaves = tree.leaves();
            leaves.iter().zip(leases).all(|(leaf, &lease)| (leaf.lease - lease).abs() < 1e-3)
        };
        until(&mut tree, |tree| has(&[240.0, 240.0], tree)).await;
        clients[0].1.set_wants(100.0);
        until(&mut tree, |tree| has(&[100.0, 380.0], tree)).await;

        tree.end_root();
        assert_eq!(tree.root(), view::Root::Away);
        let mut least = f64::MAX;
        let mut keeps = |tree: &Tree| {
            least = tree.leaves().iter().map(|leaf| leaf.lease).sum::<f64>().min(least);
        };
        until(&mut tree, |tree| {
            keeps(tree);
            matches!(tree.root(), view::Root::Learns(_))
        })
        .await;
        until(&mut tree, |tree| {
            keeps(tree);
            tree.root() == view::Root::Serves
        })
        .await;
        assert!(least > 479.0, "the leaves had {least} together at some time");
        assert!(tree.overcommitment() < 1e-3);
        for (client, queries) in clients {
            drop(queries);
            client.close().await;
        }
        tree.end().await;
    }
}
