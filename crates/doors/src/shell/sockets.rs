//! Sockets of doors: those that a supervisor hands over, and those that are made here, with the rights that they get.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream};

use super::address::DoorAddress;
use super::listener::{BACKLOG, DoorSocket};

/// The sockets of the doors of a process.
#[derive(Debug)]
pub struct Sockets {
    /// The rights of sockets that are made in the file system.
    mode: u32,
    /// Their group; absent: that of the process.
    group: Option<u32>,
    /// Whether another process that says so too may listen at the same ports.
    are_ports_shared: bool,
    /// Those that were handed over, and at which no door is yet.
    handed: Vec<HandedSocket>,
    /// Those that were made here, with what they are known by.
    made: Vec<(PathBuf, FileMark)>,
}

/// A socket that listens already, and is another's: it stays where it is when this process ends.
#[derive(Debug)]
pub enum HandedSocket {
    /// At a port.
    Port(std::net::TcpListener),
    /// In the file system.
    Path(std::os::unix::net::UnixListener),
}

/// A file, whatever its name: its device and its number there.
type FileMark = (u64, u64);

// === impl HandedSocket ===

impl HandedSocket {
    /// The address that it listens at.
    ///
    /// # Errors
    /// When the system does not say, or it has none.
    pub fn address(&self) -> io::Result<DoorAddress> {
        match self {
            HandedSocket::Port(listener) => listener.local_addr().map(DoorAddress::Port),
            HandedSocket::Path(listener) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().ok_or(io::ErrorKind::AddrNotAvailable)?;
                Ok(DoorAddress::Path(path.to_owned()))
            }
        }
    }

    fn into_door(self) -> io::Result<DoorSocket> {
        match self {
            HandedSocket::Port(listener) => {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener).map(DoorSocket::Tcp)
            }
            HandedSocket::Path(listener) => {
                listener.set_nonblocking(true)?;
                UnixListener::from_std(listener).map(DoorSocket::Unix)
            }
        }
    }
}

// === impl Sockets ===

impl Default for Sockets {
    /// None that was handed over, and the owner and the group may connect to those that are made.
    fn default() -> Sockets {
        Sockets { mode: 0o660, group: None, are_ports_shared: false, handed: Vec::new(), made: Vec::new() }
    }
}

impl Sockets {
    /// Gives sockets that are made in the file system these rights.
    #[must_use]
    pub fn with_rights(self, mode: u32, group: Option<u32>) -> Sockets {
        Sockets { mode, group, ..self }
    }

    /// Shares ports with another process of the same user that does so too: connections come to either, until one of them ends.
    #[must_use]
    pub fn with_shared_ports(self, are_ports_shared: bool) -> Sockets {
        Sockets { are_ports_shared, ..self }
    }

    /// Has doors at the addresses of these listen there.
    #[must_use]
    pub fn with_handed(self, handed: Vec<HandedSocket>) -> Sockets {
        Sockets { handed, ..self }
    }

    /// Those that were handed over, and at which there is no door.
    pub fn left(&self) -> &[HandedSocket] {
        &self.handed
    }

    /// A socket at `address`, and the address that it has: the one that was handed over, or a new one.
    pub(super) async fn at(&mut self, address: &DoorAddress) -> io::Result<(DoorSocket, DoorAddress)> {
        let is_there = |handed: &HandedSocket| handed.address().is_ok_and(|at| at == *address);
        if let Some(place) = self.handed.iter().position(is_there) {
            return Ok((self.handed.swap_remove(place).into_door()?, address.clone()));
        }
        match address {
            DoorAddress::Port(port) => {
                let listener = listen(*port, self.are_ports_shared)?;
                let bound = listener.local_addr()?;
                Ok((DoorSocket::Tcp(listener), DoorAddress::Port(bound)))
            }
            DoorAddress::Path(path) => {
                clear(path).await?;
                let listener = UnixListener::bind(path)?;
                self.made.push((path.clone(), mark(path)?));
                if let Some(group) = self.group {
                    chown(path, None, Some(group))?;
                }
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(self.mode))?;
                Ok((DoorSocket::Unix(listener), address.clone()))
            }
        }
    }

    /// Removes those from the file system that were made here, unless another's stands in their place. As long as they are open no
    /// other file has their numbers.
    pub(super) fn remove(&self) {
        for (path, made) in &self.made {
            if mark(path).is_ok_and(|found| found == *made) {
                // Somebody else may have removed it meanwhile.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

fn listen(port: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    let socket = if port.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As a port is bound by the system's library otherwise: one whose last connections are not forgotten yet is free.
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(is_shared)?;
    let listener = socket.bind(port).and_then(|()| socket.listen(BACKLOG));
    listener.map_err(|fault| match fault.kind() {
        io::ErrorKind::AddrInUse if port.port() != 0 => io::Error::new(fault.kind(), taken(is_shared)),
        _ => fault,
    })
}

/// Why a port cannot be had, and what is wanted.
fn taken(is_shared: bool) -> &'static str {
    match is_shared {
        true => {
            "somebody listens there who does not share the port, or is of another user; wanted their end, or one user and \
             --share-ports of both"
        }
        false => "somebody listens there; wanted their end, or --share-ports of both",
    }
}

fn mark(path: &Path) -> io::Result<FileMark> {
    std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Removes a socket that nobody listens at any more.
async fn clear(path: &Path) -> io::Result<()> {
    let taken = |why: String| Err(io::Error::new(io::ErrorKind::AddrInUse, why));
    match std::fs::symlink_metadata(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(fault),
        Ok(found) if !found.file_type().is_socket() => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "is no socket; wanted a path where there is none, or one",
        )),
        Ok(_) => match UnixStream::connect(path).await {
            Ok(_) => taken("somebody listens there".to_owned()),
            Err(fault) if fault.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
            // One whose queue is full, or which this process may not connect to, may well be another's.
            Err(fault) => taken(format!("somebody may listen there: {fault}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(folder: &tempfile::TempDir) -> (PathBuf, DoorAddress) {
        let path = folder.path().join("door.sock");
        (path.clone(), DoorAddress::Path(path))
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_never() {
        let folder = tempfile::tempdir().unwrap();
        let (path, address) = path_of(&folder);
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "it is stale");
        let mut first = Sockets::default();
        let (listener, bound) = first.at(&address).await.unwrap();
        assert_eq!(bound, address);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        let mut second = Sockets::default().with_rights(0o600, None);
        let fault = second.at(&address).await.unwrap_err();
        assert_eq!(fault.to_string(), "somebody listens there");
        second.remove();
        assert!(UnixStream::connect(&path).await.is_ok(), "it is the first one's");
        std::fs::remove_file(&path).unwrap();
        let next = second.at(&address).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        first.remove();
        assert!(path.exists(), "another's stands there by now");
        drop(listener);
        second.remove();
        drop(next);
        assert!(!path.exists());
        std::fs::write(&path, "a file").unwrap();
        let fault = first.at(&address).await.unwrap_err();
        assert_eq!(fault.to_string(), "is no socket; wanted a path where there is none, or one");
    }

    #[tokio::test]
    async fn what_was_handed_over_is_taken_by_its_address_and_left_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let (path, address) = path_of(&folder);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = DoorAddress::Port(port.local_addr().unwrap());
        let handed = [
            HandedSocket::Port(port),
            HandedSocket::Path(std::os::unix::net::UnixListener::bind(&path).unwrap()),
        ];
        let mut sockets = Sockets::default().with_handed(handed.into());
        let (_door, bound) = sockets.at(&address).await.unwrap();
        assert_eq!((bound, sockets.left().len()), (address, 1));
        assert!(UnixStream::connect(&path).await.is_ok());
        assert_eq!(sockets.left()[0].address().unwrap(), at);
        let _other = sockets.at(&at).await.unwrap();
        assert!(sockets.left().is_empty());
        sockets.remove();
        assert!(path.exists(), "it is its supervisor's");
    }

    #[tokio::test]
    async fn a_port_is_shared_by_those_who_all_say_so() {
        let shared = || Sockets::default().with_shared_ports(true);
        let anywhere = DoorAddress::Port(([127, 0, 0, 1], 0).into());
        let (old, address) = shared().at(&anywhere).await.unwrap();
        let alone = Sockets::default().at(&address).await.unwrap_err();
        let wanted = "somebody listens there; wanted their end, or --share-ports of both";
        assert_eq!((alone.kind(), &*alone.to_string()), (io::ErrorKind::AddrInUse, wanted));
        let (mut new, _) = shared().at(&address).await.unwrap();
        drop(old);
        let DoorAddress::Port(port) = address else { panic!("{address:?} is no port") };
        let (connected, accepted) = tokio::join!(tokio::net::TcpStream::connect(port), async {
            match &mut new {
                DoorSocket::Tcp(listener) => listener.accept().await.is_ok(),
                DoorSocket::Unix(_) | DoorSocket::Closed(_) => false,
            }
        });
        assert!(connected.is_ok() && accepted, "the new one answers");
    }
}
