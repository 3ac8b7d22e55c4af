//! Listeners of doors: so many connections at a time, each of which has shaken hands where there is TLS.
//!
//! Those for whom there is no place wait outside, in the kernel's queue. Peers that are not trusted have a part of the places among
//! them, and are turned away beyond it, so that they never shut out the proxies. A handshake has as much time as a greeting, and
//! keeps nobody else waiting.
//!
//! Connections that the kernel has taken before the end are heard: a client knows no difference between that and being accepted.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Doors;
use super::connection::{ConnectionPlace, DoorBytes, DoorConnection};
use super::peer::ConnectedPeer;
use super::tls::PortTls;

#[cfg(test)]
mod tests;

/// The places of a door.
#[derive(Debug)]
pub(super) struct DoorPlaces {
    all: Arc<Semaphore>,
    /// Those that peers may take that are not trusted.
    strangers: Arc<Semaphore>,
}

/// A listener of connections, each of which takes a place.
#[derive(Debug)]
pub(super) struct DoorListener {
    socket: DoorSocket,
    places: DoorPlaces,
    doors: Arc<Doors>,
    greeting: Duration,
    /// The bytes by which it is known what a peer speaks.
    preface: usize,
    /// The TLS of a port, if it is not plain.
    tls: Option<PortTls>,
    /// The handshakes that are under way; nothing comes of those that fail.
    handshakes: JoinSet<Option<DoorConnection>>,
}

/// A socket that connections come in at.
#[derive(Debug)]
pub(super) enum DoorSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// Closed, with the connections that had come before.
    Closed(VecDeque<Arrival>),
}

/// A connection as it comes in.
#[derive(Debug)]
pub(super) enum Arrival {
    Tcp(TcpStream, IpAddr),
    Unix(UnixStream),
}

/// The bytes that HTTP/2 begins with, and no request of HTTP/1 is shorter.
const PREFACE: usize = 24;
/// The time in which a peer says what it speaks.
const GREETING: Duration = Duration::from_secs(10);
/// The time for which the next connection is waited for behind the end: a handshake, or a place.
const LAST: Duration = Duration::from_secs(1);
/// The connections that wait in the kernel until they are accepted.
pub(super) const BACKLOG: u32 = 1_024;

// === impl DoorPlaces ===

impl DoorPlaces {
    /// The places of a door, of which strangers may take a quarter.
    pub(super) fn new(places: usize) -> DoorPlaces {
        let places = places.clamp(1, Semaphore::MAX_PERMITS);
        let semaphore = |places| Arc::new(Semaphore::new(places));
        DoorPlaces { all: semaphore(places), strangers: semaphore((places / 4).max(1)) }
    }
}

// === impl DoorSocket ===

impl DoorSocket {
    /// The next connection. Goes on after errors, with a pause when the system has nothing left for another one.
    async fn next(&mut self) -> Arrival {
        match self {
            DoorSocket::Tcp(listener) => {
                let (stream, address) = Listener::accept(listener).await;
                Arrival::over_tcp(stream, address.ip())
            }
            DoorSocket::Unix(listener) => Arrival::Unix(Listener::accept(listener).await.0),
            DoorSocket::Closed(waiting) => match waiting.pop_front() {
                Some(arrival) => arrival,
                None => std::future::pending().await,
            },
        }
    }

    /// Closes it, but for those who wait in the kernel.
    fn close(&mut self) {
        let waiting = match self {
            DoorSocket::Tcp(listener) => listener.as_fd().try_clone_to_owned().map(|listener| {
                let listener = std::net::TcpListener::from(listener);
                at_hand(|| {
                    let (stream, address) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    Ok(Arrival::over_tcp(TcpStream::from_std(stream)?, address.ip()))
                })
            }),
            DoorSocket::Unix(listener) => listener.as_fd().try_clone_to_owned().map(|listener| {
                let listener = std::os::unix::net::UnixListener::from(listener);
                at_hand(|| {
                    let (stream, _) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    UnixStream::from_std(stream).map(Arrival::Unix)
                })
            }),
            DoorSocket::Closed(_) => return,
        };
        // Where the system has no descriptor left they are cut off.
        *self = DoorSocket::Closed(waiting.unwrap_or_default());
    }

    /// Whether nobody comes any more.
    fn is_spent(&self) -> bool {
        matches!(self, DoorSocket::Closed(waiting) if waiting.is_empty())
    }
}

// === impl Arrival ===

impl Arrival {
    fn over_tcp(stream: TcpStream, address: IpAddr) -> Arrival {
        // A connection that cannot be told so is slower, and serves all the same.
        let _ = stream.set_nodelay(true);
        Arrival::Tcp(stream, address)
    }
}

/// All that is there without a wait, as far as a queue of the kernel goes.
fn at_hand(mut next: impl FnMut() -> io::Result<Arrival>) -> VecDeque<Arrival> {
    let mut found = VecDeque::new();
    for _ in 0..BACKLOG {
        match next() {
            Ok(arrival) => found.push_back(arrival),
            Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => break,
            // One that is gone already.
            Err(_) => {}
        }
    }
    found
}

// === impl DoorListener ===

impl DoorListener {
    pub(super) fn new(socket: DoorSocket, places: DoorPlaces, doors: Arc<Doors>) -> DoorListener {
        let handshakes = JoinSet::new();
        DoorListener { socket, places, doors, greeting: GREETING, preface: PREFACE, tls: None, handshakes }
    }

    /// The same, where so many bytes are enough of a greeting.
    pub(super) fn greeted_by(self, preface: usize) -> DoorListener {
        DoorListener { preface, ..self }
    }

    /// The same, which speaks TLS at a port. Sockets of the file system are plain: the system says who is at the other end.
    pub(super) fn over(self, tls: Option<PortTls>) -> DoorListener {
        DoorListener { tls, ..self }
    }

    /// The next connection, until there is an end. Then it listens no more, and this is none when all have been taken who had come
    /// before.
    pub(super) async fn accept_until(
        &mut self,
        ended: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<DoorConnection> {
        if !matches!(self.socket, DoorSocket::Closed(_)) {
            tokio::select! {
                () = ended => self.socket.close(),
                connection = self.accept() => return connection,
            }
        }
        timeout(LAST, self.accept()).await.ok().flatten()
    }

    /// The next connection that has a place, and that has shaken hands where there is TLS; none when it listens no more.
    pub(super) async fn accept(&mut self) -> Option<DoorConnection> {
        loop {
            let is_spent = self.socket.is_spent();
            if is_spent && self.handshakes.is_empty() {
                return None;
            }
            let all = Arc::clone(&self.places.all);
            let arrives = async {
                let place = all.acquire_owned().await.expect("nobody closes the semaphore");
                (place, self.socket.next().await)
            };
            let (place, arrival) = tokio::select! {
                Some(shaken) = self.handshakes.join_next() => match shaken {
                    Ok(Some(connection)) => return Some(connection),
                    _ => continue,
                },
                arrived = arrives, if !is_spent => arrived,
            };
            let (stream, peer) = match arrival {
                Arrival::Tcp(stream, address) => (Ok(stream), ConnectedPeer::at(address)),
                Arrival::Unix(stream) => {
                    let peer = ConnectedPeer::beside(&stream);
                    (Err(stream), peer)
                }
            };
            let Some(strangers) = self.place_of_stranger(peer.address.address) else {
                self.doors.figures.turned_away();
                continue;
            };
            let place = ConnectionPlace::new(place, strangers);
            let bytes = match (stream, &self.tls) {
                (Ok(stream), Some(tls)) => {
                    self.shake(stream, tls.clone(), (peer, place));
                    continue;
                }
                (Ok(stream), None) => DoorBytes::Tcp(stream),
                (Err(stream), _) => DoorBytes::Unix(stream),
            };
            return Some(DoorConnection::new(bytes, (self.greeting, self.preface), peer, place));
        }
    }

    /// Begins a handshake.
    fn shake(&mut self, stream: TcpStream, tls: PortTls, (peer, place): (ConnectedPeer, ConnectionPlace)) {
        let (greeting, preface, doors) = (self.greeting, self.preface, Arc::clone(&self.doors));
        self.handshakes.spawn(async move {
            let shaken = timeout(greeting, tls.shake(stream)).await;
            match shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                    let (peer, place) = match certificate {
                        Some(certificate) => (peer.certified(certificate), place.of_a_known_peer()),
                        None => (peer, place),
                    };
                    let bytes = DoorBytes::Tls(Box::new(stream));
                    Some(DoorConnection::new(bytes, (greeting, preface), peer, place))
                }
                Err(fault) => {
                    doors.figures.tls.handshakes_failed.inc();
                    tracing::debug!(address = ?peer.address.address, %fault, "handshake failed");
                    None
                }
            }
        });
    }

    /// The place among those of strangers that a peer takes besides; nothing where there is none left.
    fn place_of_stranger(&self, address: Option<IpAddr>) -> Option<Option<OwnedSemaphorePermit>> {
        match self.doors.in_force.load().book().trusted.contains(address) {
            true => Some(None),
            false => Arc::clone(&self.places.strangers).try_acquire_owned().ok().map(Some),
        }
    }
}
