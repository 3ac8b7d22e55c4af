//! Sockets in flags and in the environment, and the supervisor that hands them over and is told how the process fares.

use anyhow::{Context, bail};
use clap::Args;
use lessor_doors::shell::{HandedSocket, Sockets};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use tracing::warn;

/// The rights of sockets that are made in the file system.
#[derive(Clone, Debug, Args)]
pub(super) struct SocketFlags {
    /// The rights of sockets of the file system, in octal digits
    #[arg(long, env = "LESSOR_DOORS_SOCKET_MODE", value_name = "MODE", default_value = "0660", value_parser = mode)]
    socket_mode: u32,
    /// The group of sockets of the file system, by number or by its name in /etc/group; that of the process without it
    #[arg(long, env = "LESSOR_DOORS_SOCKET_GROUP", value_name = "GROUP", value_parser = group)]
    socket_group: Option<u32>,
    /// Listens at ports beside another process of the same user that was started with this flag, so that a new one is there before
    /// the old one ends
    #[arg(long, env = "LESSOR_DOORS_SHARE_PORTS")]
    share_ports: bool,
}

/// Groups by name.
const GROUPS: &str = "/etc/group";
/// The first descriptor that is handed over.
const FIRST: usize = 3;

// === impl SocketFlags ===

impl SocketFlags {
    /// Whether another process may listen at the same ports.
    pub(super) fn are_ports_shared(&self) -> bool {
        self.share_ports
    }

    /// Sockets that are made so.
    pub(super) fn sockets(&self) -> Sockets {
        Sockets::default()
            .with_rights(self.socket_mode, self.socket_group)
            .with_shared_ports(self.share_ports)
    }
}

/// The sockets that a supervisor hands over, as systemd does: `LISTEN_FDS` of them, from descriptor 3 on. The variables are
/// removed, so that nobody takes the sockets twice.
pub(crate) fn handed_over() -> anyhow::Result<Vec<HandedSocket>> {
    let mut descriptors = ListenFd::from_env();
    let mut handed = Vec::new();
    for place in 0..descriptors.len() {
        let socket = match descriptors.take_unix_listener(place) {
            Ok(socket) => socket.map(HandedSocket::Path),
            Err(_) => {
                let socket = descriptors.take_tcp_listener(place);
                let wanted = || {
                    format!(
                        "descriptor {} of LISTEN_FDS: wanted a stream socket, at a port or in the file system",
                        FIRST + place
                    )
                };
                socket.with_context(wanted)?.map(HandedSocket::Port)
            }
        };
        handed.extend(socket);
    }
    Ok(handed)
}

/// Tells the supervisor, if there is one.
pub(super) fn tell_supervisor(states: &[NotifyState<'_>]) {
    if let Err(fault) = sd_notify::notify(states) {
        warn!(%fault, "the supervisor at NOTIFY_SOCKET is not told");
    }
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "wanted rights in octal digits, from 0000 to 0777".to_owned())
}

fn group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string(GROUPS).map_err(|fault| format!("{GROUPS}: {fault}"))?;
    group_in(&groups, text).map_err(|fault| fault.to_string())
}

/// The number of a group in lines of `name:password:number:members`.
fn group_in(groups: &str, name: &str) -> anyhow::Result<u32> {
    for line in groups.lines() {
        let mut fields = line.split(':');
        if fields.next() == Some(name) {
            return fields.nth(1).and_then(|number| number.parse().ok()).context("its line has no number");
        }
    }
    bail!("there is no such group in {GROUPS}; wanted one, or its number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_octal_and_groups_have_names() {
        assert_eq!([mode("0660"), mode("600"), mode("0")], [Ok(0o660), Ok(0o600), Ok(0)]);
        for text in ["", "rw", "0680", "1777", "-1"] {
            assert_eq!(mode(text).unwrap_err(), "wanted rights in octal digits, from 0000 to 0777", "{text}");
        }
        let groups = "root:x:0:\nproxies:x:1007:nginx,envoy\nbroken:x";
        assert_eq!(group_in(groups, "proxies").unwrap(), 1007);
        let fault = |name| group_in(groups, name).unwrap_err().to_string();
        assert_eq!(fault("prox"), "there is no such group in /etc/group; wanted one, or its number");
        assert_eq!(fault("broken"), "its line has no number");
        assert_eq!(group("12"), Ok(12));
    }
}
