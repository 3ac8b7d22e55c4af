//! The address of a door, as it is written.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a door: `HOST:PORT`, or `unix:PATH`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DoorAddress {
    /// A port.
    Port(SocketAddr),
    /// A socket in the file system.
    Path(PathBuf),
}

/// A text that is no address of a door.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no address; wanted HOST:PORT with the number of an interface, or unix:PATH")]
pub struct BadAddress(String);

// === impl DoorAddress ===

impl FromStr for DoorAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<DoorAddress, BadAddress> {
        match text.strip_prefix("unix:") {
            Some("") => Err(BadAddress(text.to_owned())),
            Some(path) => Ok(DoorAddress::Path(path.into())),
            None => text.parse().map(DoorAddress::Port).map_err(|_| BadAddress(text.to_owned())),
        }
    }
}

impl fmt::Display for DoorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DoorAddress::Port(address) => address.fmt(f),
            DoorAddress::Path(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
