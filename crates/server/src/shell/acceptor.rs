//! The acceptor of a port: takes so many connections at a time and lets the rest wait outside, in the kernel's queue.
//!
//! A connection must say something, or its place is somebody else's: the library that finds out which version of HTTP
//! a connection speaks waits for that without an end. And no address has more than its part of the places, so that one host
//! that goes wrong does not shut out all others.
//!
//! On a port with TLS each handshake is the work of a task of its own: whoever is slow keeps nobody waiting but itself.

mod connection;
mod places;
mod read_turn;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use futures_util::Stream;
use lessor_proto::Identity;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

use self::connection::Bytes;
pub(super) use self::connection::Connection;
pub(super) use self::places::Places;
use self::places::{Origin, TakenPlace};
use super::caller::{Caller, LocalProcess};
use super::tls::handshake::HandshakeGuard;

/// A listener with a bounded number of connections.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: Incoming,
    places: Arc<Places>,
    /// The time in which whoever connects must say what it speaks.
    greeting: Duration,
    /// Absent on a plain port.
    guard: Option<HandshakeGuard>,
    /// The handshakes under way; nothing comes of those that fail.
    shaking: JoinSet<Option<Connection>>,
}

/// A listener: at an address of the network, or at a path of this machine.
#[derive(Debug)]
pub(super) enum Incoming {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection that has just come in.
enum Socket {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// The time in which a connection must say what it speaks.
const GREETING: Duration = Duration::from_secs(10);
/// Connections that wait in the kernel, as far as that lets so many: whoever finds no room there comes again after a second.
const BACKLOG: u32 = 4_096;

// === impl Acceptor ===

impl Acceptor {
    pub(super) fn new(
        listener: impl Into<Incoming>,
        places: Arc<Places>,
        guard: Option<HandshakeGuard>,
    ) -> Acceptor {
        Acceptor { listener: listener.into(), places, greeting: GREETING, guard, shaking: JoinSet::new() }
    }

    /// All connections to come.
    pub(super) fn connections(self) -> impl Stream<Item = io::Result<Connection>> {
        futures_util::stream::unfold(self, |mut acceptor| async {
            let connection = acceptor.accept().await;
            Some((Ok(connection), acceptor))
        })
    }

    /// The next connection that is ready to be served. Nothing is lost when the future is dropped.
    pub(super) async fn accept(&mut self) -> Connection {
        loop {
            let (socket, place) = tokio::select! {
                Some(shaken) = self.shaking.join_next() => match shaken {
                    Ok(Some(connection)) => return connection,
                    // A handshake that panicked is one that failed.
                    Ok(None) | Err(_) => continue,
                },
                admitted = admit(&mut self.listener, &self.places) => admitted,
            };
            let (greeting, driver) = (self.greeting, Arc::clone(&self.places.driver));
            let (stream, address) = match socket {
                Socket::Tcp(stream, address) => (stream, address),
                Socket::Unix(stream) => {
                    // Who cannot be told is nobody.
                    let Ok(process) = stream.peer_cred() else { continue };
                    let process = LocalProcess { uid: process.uid(), pid: process.pid() };
                    return Connection::new(Bytes::Unix(stream), Caller::local(process), place, greeting);
                }
            };
            let budget = self.places.budgets.of(address.ip());
            let Some(guard) = &self.guard else {
                let caller = Caller::remote(address, Identity::plain(), Some(driver.mark(address)));
                let caller = caller.with_budget(budget);
                return Connection::new(Bytes::Plain(stream), caller, place, greeting);
            };
            let guard = guard.clone();
            self.shaking.spawn(async move {
                let shaken = guard.shake(stream, address, &budget, &driver.traffic().handshakes).await;
                let (stream, identity) = shaken?;
                let caller = Caller::remote(address, identity, Some(driver.mark(address)));
                let caller = caller.with_budget(budget);
                Some(Connection::new(Bytes::Tls(Box::new(stream)), caller, place, greeting))
            });
        }
    }
}

/// Listens at an address.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As every listener does: connections of before may not have gone for good yet.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The next connection for which there is a place.
async fn admit(listener: &mut Incoming, places: &Arc<Places>) -> (Socket, TakenPlace) {
    loop {
        let permit = places.permit().await;
        // Goes on after errors, with a pause when the system has nothing left for another connection.
        let (socket, origin) = match listener {
            Incoming::Tcp(listener) => {
                let (stream, address) = Listener::accept(listener).await;
                // A connection that cannot be told so is slower, and serves all the same.
                let _ = stream.set_nodelay(true);
                (Socket::Tcp(stream, address), Origin::of_address(address.ip()))
            }
            Incoming::Unix(listener) => {
                let (stream, _) = Listener::accept(listener).await;
                let origin = Origin::of_socket(&stream);
                (Socket::Unix(stream), origin)
            }
        };
        if let Some(place) = places.take(origin, permit) {
            return (socket, place);
        }
    }
}

// === impl Incoming ===

impl From<TcpListener> for Incoming {
    fn from(listener: TcpListener) -> Incoming {
        Incoming::Tcp(listener)
    }
}
