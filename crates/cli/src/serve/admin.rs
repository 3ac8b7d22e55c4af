//! The options of the port of operators, and what only this process can do for them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use lessor_server::shell::{AdminAddress, AdminOptions, Levers, ReadFile};
use tracing::warn;

use super::address::address;
use super::followed::FollowedFile;
use crate::log::LogFilter;

/// The flags of the port of operators.
#[derive(Debug, Args)]
#[command(next_help_heading = "Operators")]
pub(super) struct AdminFlags {
    /// Where operators act on this server (`lessor admin`), and nobody else is served: an address of this machine, unless there is
    /// TLS or --insecure, or a socket that the user of this process alone may open [default: admin.sock in --state-dir]
    #[arg(long, env = "LESSOR_ADMIN", value_name = "HOST:PORT|unix:PATH", value_parser = admin_address)]
    admin: Option<AdminAddress>,
    /// A file to which every call of that port is appended before it is answered, as a line of JSON; opened anew at SIGHUP. The
    /// log has the same lines under lessor::audit. What cannot be written down is not done
    #[arg(long, env = "LESSOR_AUDIT_LOG", value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

/// The levers of this process.
#[derive(Debug)]
pub(super) struct ServeLevers {
    pub(super) log: LogFilter,
    pub(super) files: Vec<FollowedFile>,
}

/// The conditions under which a plain port is right.
pub(super) struct Surroundings<'a> {
    pub(super) state_dir: Option<&'a Path>,
    pub(super) speaks_tls: bool,
    pub(super) is_insecure: bool,
    pub(super) has_rules: bool,
}

/// The name of the socket in a state directory.
const SOCKET: &str = "admin.sock";

// === impl AdminFlags ===

impl AdminFlags {
    /// The port, if there is to be one.
    pub(super) fn options(
        &self,
        around: &Surroundings<'_>,
        levers: &Arc<ServeLevers>,
    ) -> anyhow::Result<Option<AdminOptions>> {
        let in_state = || around.state_dir.map(|directory| AdminAddress::Unix(directory.join(SOCKET)));
        let Some(address) = self.admin.clone().or_else(in_state) else {
            if let Some(path) = &self.audit_log {
                bail!(
                    "--audit-log {}: there is no port of operators to write about; wanted --admin or --state-dir besides",
                    path.display()
                );
            }
            return Ok(None);
        };
        if let AdminAddress::Tcp(at) = address {
            if !at.ip().is_loopback() && !around.speaks_tls && !around.is_insecure {
                bail!(
                    "--admin {at}: other machines reach it in plain; wanted an address of this machine, --tls-cert and --tls-key, \
                     or --insecure"
                );
            }
            if !around.has_rules {
                warn!(admin = %at, "whoever reaches the admin port may do everything there; wanted --access, or --admin unix:PATH");
            }
        }
        Ok(Some(AdminOptions {
            address,
            is_wanted: self.admin.is_some(),
            audit_log: self.audit_log.clone(),
            levers: Arc::clone(levers) as Arc<dyn Levers>,
        }))
    }
}

/// `HOST:PORT` or `unix:PATH`.
fn admin_address(text: &str) -> Result<AdminAddress, String> {
    match text.strip_prefix("unix:") {
        Some("") => Err("wanted a path behind unix:".to_owned()),
        Some(path) => Ok(AdminAddress::Unix(PathBuf::from(path))),
        None => address(text)
            .map(|address: SocketAddr| AdminAddress::Tcp(address))
            .map_err(|fault| format!("{fault}, or unix:PATH")),
    }
}

// === impl ServeLevers ===

impl Levers for ServeLevers {
    fn reload(&self) -> Pin<Box<dyn Future<Output = Vec<ReadFile>> + Send + '_>> {
        Box::pin(async {
            let mut read = Vec::with_capacity(self.files.len());
            for file in &self.files {
                read.push(file.read_again().await);
            }
            read
        })
    }

    fn log_filter(&self) -> String {
        self.log.text()
    }

    fn set_log_filter(&self, filter: &str) -> Result<(), String> {
        self.log.set(filter)
    }
}
