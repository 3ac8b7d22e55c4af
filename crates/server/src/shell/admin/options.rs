//! The options of an admin port: its address, and what is written down.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::levers::Levers;

/// The address of an admin port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminAddress {
    /// At the network, where port 0 takes a free one.
    Tcp(SocketAddr),
    /// At a socket of this machine.
    Unix(PathBuf),
}

/// The options of an admin port.
#[derive(Clone, Debug)]
pub struct AdminOptions {
    /// Where to serve it.
    pub address: AdminAddress,
    /// Whether the server does not start when it cannot be served there; otherwise that is said, and there is none.
    pub is_wanted: bool,
    /// The file to which each call is appended; absent: calls are in the log only.
    pub audit_log: Option<PathBuf>,
    /// The levers that only the program around the server has.
    pub levers: Arc<dyn Levers>,
}

// === impl AdminAddress ===

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdminAddress::Tcp(address) => address.fmt(f),
            AdminAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
