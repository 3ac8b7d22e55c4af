//! `lessor agent`: doors beside the programs of a host, over one lease of each resource for all of them; and on request a leaf
//! that leases on to programs.

mod host;
mod leaf;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use lessor_client::Client;
use lessor_doors::rules::RuleBook;
use lessor_doors::shell::{DoorAddress, HandedSocket};

use self::host::{HostId, HostPlace};
use self::leaf::{HostLeaf, HostLeafPlan};
use crate::doors::{Backing, OpenDoors, handed_over};
use crate::serve::address::address;

/// Runs beside the programs of a host: the doors of `lessor doors` on loopback and on sockets of the file system, over one
/// lease of each resource for everything on the host. Nothing need be reachable when it starts. With no more than --server
/// it reads /etc/lessor/doors.yaml, if that is there or once it is, and serves at 127.0.0.1:15080 (HTTP) and 127.0.0.1:15081
/// (Envoy)
#[derive(Debug, Args)]
#[command(mut_group("files", |group| group.required(false)))]
#[command(mut_group("mouths", |group| group.required(false)))]
#[command(mut_arg("max_new_keys", |keys| keys.help("New keys that one peer may ask for in a second, an address or the user at a \
    socket, with ten seconds of them at once; others are answered as without a lease [default: 1000]")))]
#[command(mut_arg("id", |id| id.help("The client id; host name and boot id without it. A restart is another life of the same client")))]
pub(crate) struct Agent {
    #[command(flatten)]
    doors: OpenDoors,
    /// Where to lease on to programs of the host, as a leaf below the server: the doors lease from it as well
    #[arg(long, env = "LESSOR_LEASE_OUT", value_name = "HOST:PORT", value_parser = address)]
    lease_out: Option<SocketAddr>,
    /// Templates of what programs lease beside what doors do: one of the same name counts before that of a rule
    #[arg(long, env = "LESSOR_LEASE_OUT_CONFIG", value_name = "FILE", requires = "lease_out")]
    lease_out_config: Option<PathBuf>,
    /// A directory in which the leaf remembers what it has leased out, so that a restart goes on from there
    #[arg(long, env = "LESSOR_STATE_DIR", value_name = "DIR", requires = "lease_out")]
    state_dir: Option<PathBuf>,
}

/// The rules where nobody says which.
const RULES: &str = "/etc/lessor/doors.yaml";
/// The ports where nobody says which, of HTTP and of Envoy's service: next to that of servers.
const PORTS: [u16; 2] = [15_080, 15_081];

/// The new keys that one program may ask for in a second where nobody says how many.
const NEW_KEYS: u32 = 1_000;

// === impl Agent ===

impl Agent {
    pub(crate) fn run(mut self) -> impl Future<Output = anyhow::Result<()>> {
        // Before there are threads: that changes the environment.
        let handed = handed_over();
        async move {
            let handed = handed?;
            self.take_usual(&handed);
            let id = match &self.doors.id {
                Some(id) => id.clone(),
                None => HostId::read()?.client_id(),
            };
            let is_neighbour = !handed.is_empty() || self.doors.shares_ports();
            let begun = self.doors.begin(handed)?;
            let place = HostPlace::take(&id)?;
            if place.is_none() && !is_neighbour {
                bail!(
                    "another agent with the id {id:?} runs on this host; wanted its end, sockets that a supervisor hands over to \
                     both, --share-ports of both, or another --id"
                );
            }
            let leaf = match self.lease_out {
                Some(listen) => Some(HostLeaf::start(self.plan(listen, &id), &begun.book).await?),
                None => None,
            };
            let served = self.serve(begun, &id, leaf.as_ref());
            tokio::select! {
                served = served => served?,
                broken = broken(leaf.as_ref()) => return Err(broken),
                never = host::keep(&id, place) => match never {},
            }
            if let Some(leaf) = leaf {
                leaf.end().await;
            }
            Ok(())
        }
    }

    /// Takes what is usual where nobody has said anything.
    fn take_usual(&mut self, handed: &[HandedSocket]) {
        let doors = &mut self.doors;
        doors.usual_rules = Some(RULES.into());
        doors.max_new_keys.get_or_insert(NEW_KEYS);
        if !doors.is_somewhere() && handed.is_empty() {
            let usual = PORTS.map(|port| DoorAddress::Port(([127, 0, 0, 1], port).into()));
            let [http, rls] = usual;
            (doors.http, doors.rls) = (vec![http], vec![rls]);
        }
    }

    fn plan(&self, listen: SocketAddr, id: &str) -> HostLeafPlan<'_> {
        HostLeafPlan {
            listen,
            name: id.to_owned(),
            servers: &self.doors.servers,
            config: self.lease_out_config.clone(),
            state: self.state_dir.clone(),
            drain: self.doors.drain,
        }
    }

    /// Serves doors, over the leases of the leaf where there is one: so everything on the host has one lease of a resource.
    async fn serve(
        &self,
        begun: crate::doors::Begun,
        id: &str,
        leaf: Option<&HostLeaf>,
    ) -> anyhow::Result<()> {
        let servers = self.doors.servers.client(Some(id))?;
        let client = match leaf {
            Some(leaf) => Client::builder(leaf.address()).id(id).build()?,
            None => servers.clone().build()?,
        };
        let on_rules = |book: &RuleBook| leaf.into_iter().for_each(|leaf| leaf.take_rules(book));
        let backing = Backing { client, servers, on_rules: &on_rules };
        match leaf {
            Some(leaf) => tokio::select! {
                served = self.doors.serve(begun, backing) => served,
                never = leaf.follow() => match never {},
            },
            None => self.doors.serve(begun, backing).await,
        }
    }
}

/// Waits until a leaf is broken, if there is one.
async fn broken(leaf: Option<&HostLeaf>) -> anyhow::Error {
    match leaf {
        Some(leaf) => leaf.broken().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod deploy;
