//! The host of an agent: its name and its boot, by which servers know the agent; and the place that one agent has there.

use std::convert::Infallible;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use anyhow::Context;
use lessor_client::internals::clock;
use tracing::info;

/// The name of a host, and its boot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HostId {
    name: String,
    boot: String,
}

/// The place of an agent on its host: nobody else of that id has it as long as this is there, nor after that, whatever has ended
/// the process. It is a socket without a file, which containers with a network of their own have for themselves.
#[derive(Debug)]
pub(super) struct HostPlace {
    _held: UnixListener,
}

const NAME: &str = "/proc/sys/kernel/hostname";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The digits of the boot that are told: enough for hosts of one name.
const BOOT_DIGITS: usize = 8;
/// The bytes of an id that a socket is named by, from behind.
const PLACE_BYTES: usize = 80;
/// The interval at which a neighbour tries for the place.
const TRY_AGAIN: Duration = Duration::from_secs(2);

// === impl HostId ===

impl HostId {
    /// That of this host.
    pub(super) fn read() -> anyhow::Result<HostId> {
        let read = |path: &str| {
            std::fs::read_to_string(path).with_context(|| format!("{path}; wanted to read it, or --id"))
        };
        Ok(HostId { name: read(NAME)?.trim().to_owned(), boot: read(BOOT)?.trim().to_owned() })
    }

    /// The client id of the agent of this host.
    pub(super) fn client_id(&self) -> String {
        let boot: String = self.boot.chars().filter(|&digit| digit != '-').take(BOOT_DIGITS).collect();
        format!("agent/{}/{boot}", self.name)
    }
}

// === impl HostPlace ===

impl HostPlace {
    /// Takes the place of the agent `id`, unless another process has it.
    pub(super) fn take(id: &str) -> anyhow::Result<Option<HostPlace>> {
        let name = id.as_bytes();
        let name = [b"lessor/", &name[name.len().saturating_sub(PLACE_BYTES)..]].concat();
        let bound =
            SocketAddr::from_abstract_name(name).and_then(|address| UnixListener::bind_addr(&address));
        match bound {
            Ok(held) => Ok(Some(HostPlace { _held: held })),
            Err(fault) if fault.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(fault) => Err(fault).context("the place of an agent on its host"),
        }
    }
}

/// Keeps the place, or tries for it until the neighbour has ended whose it is.
pub(super) async fn keep(id: &str, mut place: Option<HostPlace>) -> Infallible {
    if place.is_none() {
        info!(id, "the agent of before still runs: this one asks for leases of its own");
    }
    while place.is_none() {
        clock::sleep_until(clock::now() + TRY_AGAIN).await;
        // What can go wrong here has not a moment ago.
        place = HostPlace::take(id).ok().flatten();
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_its_host_and_boot() {
        let here =
            HostId { name: "web-1".to_owned(), boot: "8c1d3a5e-0b11-4f6a-9c6e-6f1f0d3f2b7a".to_owned() };
        assert_eq!(here.client_id(), "agent/web-1/8c1d3a5e");
        assert_eq!(HostId::read().unwrap(), HostId::read().unwrap());
    }

    #[test]
    fn a_place_is_one_agents_until_it_ends() {
        let id = format!("{}/{}", "x".repeat(200), std::process::id());
        let place = HostPlace::take(&id).unwrap().expect("it is free");
        assert!(HostPlace::take(&id).unwrap().is_none());
        let other = HostPlace::take(&format!("{id}/other")).unwrap();
        assert!(other.is_some());
        drop(place);
        assert!(HostPlace::take(&id).unwrap().is_some());
    }
}
