//! Connections at a door: so many at a time, and none that keeps its place by saying nothing.
//!
//! A peer says within seconds what it speaks, or its place is somebody else's; a connection on which nothing is read or written
//! for long is over. Those for whom there is no place wait outside, in the kernel's queue. Peers that are not trusted have a part of
//! the places among them, and are turned away beyond it, so that they never shut out the proxies.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use axum::serve::Listener;
use lessor_client::internals::clock;
use lessor_proto::Time;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::Connected;

use super::Doors;
use super::http::PeerAddress;

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
}

/// A socket that connections come in at.
#[derive(Debug)]
pub(super) enum DoorSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection, and the place that it takes until it is dropped.
#[derive(Debug)]
pub(super) struct DoorConnection {
    bytes: DoorBytes,
    patience: Patience,
    peer: PeerAddress,
    _place: [Option<OwnedSemaphorePermit>; 2],
}

#[derive(Debug)]
enum DoorBytes {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The patience with a peer.
struct Patience {
    /// When it ends, if nothing is heard before.
    ends: Time,
    /// A wait that is over then, or earlier.
    wait: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Bytes that are missing until it is known what the peer speaks.
    missing: usize,
    /// Whether the peer may say nothing for as long as it likes.
    is_endless: bool,
}

/// The bytes that HTTP/2 begins with, and no request of HTTP/1 is shorter.
const PREFACE: usize = 24;
/// The time in which a peer says what it speaks.
const GREETING: Duration = Duration::from_secs(10);
/// The time after which a connection is over on which nothing has moved. Connections of HTTP/2 are pinged more often.
const SILENCE: Duration = Duration::from_secs(300);
/// The silence after which a peer is asked whether it is there, and the time until it is asked again.
const ALIVE: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(10)];

// === impl DoorPlaces ===

impl DoorPlaces {
    /// The places of a door, of which strangers may take a quarter.
    pub(super) fn new(places: usize) -> DoorPlaces {
        let places = places.clamp(1, Semaphore::MAX_PERMITS);
        let semaphore = |places| Arc::new(Semaphore::new(places));
        DoorPlaces { all: semaphore(places), strangers: semaphore((places / 4).max(1)) }
    }
}

// === impl DoorListener ===

impl DoorListener {
    pub(super) fn new(socket: DoorSocket, places: DoorPlaces, doors: Arc<Doors>) -> DoorListener {
        DoorListener { socket, places, doors, greeting: GREETING, preface: PREFACE }
    }

    /// The same, where so many bytes are enough of a greeting.
    pub(super) fn greeted_by(self, preface: usize) -> DoorListener {
        DoorListener { preface, ..self }
    }

    /// The next connection that has a place.
    pub(super) async fn accept(&mut self) -> DoorConnection {
        loop {
            let place = Arc::clone(&self.places.all).acquire_owned().await;
            let place = place.expect("nobody closes the semaphore");
            // Goes on after errors, with a pause when the system has nothing left for another connection.
            let (bytes, address, user) = match &mut self.socket {
                DoorSocket::Tcp(listener) => {
                    let (stream, address) = Listener::accept(listener).await;
                    // A connection that cannot be told so is slower, and serves all the same.
                    let _ = stream.set_nodelay(true);
                    (DoorBytes::Tcp(stream), Some(address.ip()), None)
                }
                DoorSocket::Unix(listener) => {
                    let stream = Listener::accept(listener).await.0;
                    let user = stream.peer_cred().ok().map(|peer| peer.uid());
                    (DoorBytes::Unix(stream), None, user)
                }
            };
            let Some(strangers) = self.place_of_stranger(address) else {
                self.doors.figures.turned_away();
                continue;
            };
            let patience = Patience::new(self.greeting, self.preface);
            return DoorConnection {
                bytes,
                patience,
                peer: PeerAddress { address, user },
                _place: [Some(place), strangers],
            };
        }
    }

    /// The place among those of strangers that a peer takes besides; nothing where there is none left.
    fn place_of_stranger(&self, address: Option<IpAddr>) -> Option<Option<OwnedSemaphorePermit>> {
        match self.doors.in_force.load().book().trusted.contains(address) {
            true => Some(None),
            false => Arc::clone(&self.places.strangers).try_acquire_owned().ok().map(Some),
        }
    }
}

// === impl Patience ===

impl Patience {
    fn new(greeting: Duration, missing: usize) -> Patience {
        let ends = clock::now() + greeting;
        Patience { ends, wait: Box::pin(clock::sleep_until(ends)), missing, is_endless: false }
    }

    /// The peer has said so many bytes.
    fn hear(&mut self, bytes: usize) {
        self.missing = self.missing.saturating_sub(bytes);
        self.renew();
    }

    /// Something has moved.
    fn renew(&mut self) {
        if self.missing == 0 {
            self.ends = clock::now() + SILENCE;
        }
    }

    /// Waits on, and fails when it is at an end.
    fn poll<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if self.is_endless {
            return Poll::Pending;
        }
        while self.wait.as_mut().poll(cx).is_ready() {
            if clock::now() >= self.ends {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.wait = Box::pin(clock::sleep_until(self.ends));
        }
        Poll::Pending
    }
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience")
            .field("ends", &self.ends)
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

// === impl DoorBytes ===

impl DoorBytes {
    fn inner(&mut self) -> Pin<&mut (dyn Duplex + Send)> {
        match self {
            DoorBytes::Tcp(stream) => Pin::new(stream),
            DoorBytes::Unix(stream) => Pin::new(stream),
        }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

// === impl DoorConnection ===

impl DoorConnection {
    pub(super) fn peer(&self) -> PeerAddress {
        self.peer
    }

    /// Bears any silence from here on, or no longer than others'.
    pub(super) fn bear(&mut self, is_endless: bool) {
        if self.patience.is_endless && !is_endless {
            self.patience.renew();
        }
        self.patience.is_endless = is_endless;
    }

    /// Has the kernel ask a silent peer now and then whether it is there still.
    pub(super) fn keep_alive(&self) {
        if let DoorBytes::Tcp(stream) = &self.bytes {
            // A connection that cannot be told so is kept until it is closed.
            let _ = sockopt::set_socket_keepalive(stream, true);
            let _ = sockopt::set_tcp_keepidle(stream, ALIVE[0]);
            let _ = sockopt::set_tcp_keepintvl(stream, ALIVE[1]);
            let _ = sockopt::set_tcp_keepcnt(stream, 3);
        }
    }

    fn written<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(_) => self.patience.renew(),
            Poll::Pending => return self.patience.poll(cx),
        }
        written
    }
}

impl Connected for DoorConnection {
    type ConnectInfo = PeerAddress;

    fn connect_info(&self) -> PeerAddress {
        self.peer
    }
}

impl AsyncRead for DoorConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.bytes.inner().poll_read(cx, buffer);
        match read {
            Poll::Ready(_) => self.patience.hear(buffer.filled().len() - before),
            Poll::Pending => return self.patience.poll(cx),
        }
        read
    }
}

impl AsyncWrite for DoorConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.bytes.inner().poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.bytes.inner().poll_write_vectored(cx, slices);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            DoorBytes::Tcp(stream) => stream.is_write_vectored(),
            DoorBytes::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes.inner().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes.inner().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use lessor_client::Client;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::rules::document::DoorsFile;
    use crate::rules::ratelimit::join;

    /// A listener with two places, whose greeting is that long, and its address.
    async fn listener(greeting: Duration) -> (DoorListener, SocketAddr) {
        let book = join(DoorsFile::default(), &[]).expect("no rules");
        let client = Client::builder("127.0.0.1:1").build().expect("a client");
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("an address");
        let doors = Arc::new(Doors::new(client, book));
        let listener = DoorListener::new(DoorSocket::Tcp(socket), DoorPlaces::new(2), doors);
        (DoorListener { greeting, ..listener }, address)
    }

    #[tokio::test]
    async fn silence_costs_the_place_and_words_keep_it() {
        let (mut listener, address) = listener(Duration::from_millis(50)).await;
        let _silent = TcpStream::connect(address).await.expect("a connection");
        let mut connection = listener.accept().await;
        let read = connection.read_u8().await;
        assert_eq!(read.expect_err("it says nothing").kind(), io::ErrorKind::TimedOut);

        // One byte of a greeting is none.
        let mut slow = TcpStream::connect(address).await.expect("a connection");
        slow.write_all(b"P").await.expect("it takes them");
        let mut connection = listener.accept().await;
        connection.read_u8().await.expect("a byte");
        assert_eq!(connection.read_u8().await.expect_err("no more").kind(), io::ErrorKind::TimedOut);

        let mut speaks = TcpStream::connect(address).await.expect("a connection");
        drop(connection);
        let mut connection = listener.accept().await;
        speaks.write_all(&[b'x'; PREFACE]).await.expect("it takes them");
        connection.read_exact(&mut [0; PREFACE]).await.expect("all of it");
        let more = tokio::time::timeout(Duration::from_millis(200), connection.read_u8()).await;
        assert!(more.is_err(), "it is waited for: {more:?}");
    }

    #[tokio::test]
    async fn who_finds_no_place_waits_outside_and_strangers_have_a_part_of_them() {
        let (mut listener, address) = listener(GREETING).await;
        let _peers = [TcpStream::connect(address).await, TcpStream::connect(address).await];
        let first = listener.accept().await;
        let _second = listener.accept().await;
        let _third = TcpStream::connect(address).await.expect("the kernel takes it");
        let outside = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(outside.is_err(), "{outside:?}");
        drop(first);
        let _third = listener.accept().await;

        let stranger = Some([192, 0, 2, 1].into());
        let one = listener.place_of_stranger(stranger);
        assert!(matches!(one, Some(Some(_))) && listener.place_of_stranger(stranger).is_none());
        assert!(
            matches!(listener.place_of_stranger(None), Some(None)),
            "a socket of the file system is trusted"
        );
    }
}
