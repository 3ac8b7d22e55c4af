//! The acceptor of a port: takes so many connections at a time and lets the rest wait outside, in the kernel's queue.
//!
//! A connection must say something, or its place is somebody else's: the library that finds out which version of HTTP
//! a connection speaks waits for that without an end. And no address has more than its part of the places, so that one host
//! that goes wrong does not shut out all others.
//!
//! On a port with TLS each handshake is the work of a task of its own: whoever is slow keeps nobody waiting but itself.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use axum::serve::Listener;
use futures_util::Stream;
use lessor_client::internals::clock;
use lessor_proto::Identity;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::caller::{Caller, LocalProcess};
use super::connections::{ListedConnection, OpenConnection};
use super::driver::Driver;
use super::port_name::Port;
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

/// The places of a port.
#[derive(Debug)]
pub(super) struct Places {
    port: Port,
    free: Arc<Semaphore>,
    /// The number that connections from one address may take.
    most: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
    driver: Arc<Driver>,
}

/// A place, until it is dropped.
#[derive(Debug)]
struct Place {
    places: Arc<Places>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

/// A connection, and the place that it takes until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Bytes,
    caller: Caller,
    /// Absent once it has said what it speaks.
    greeting: Option<Greeting>,
    /// Dropped with the connection, if somebody waits for that.
    end: Option<oneshot::Sender<()>>,
    place: Place,
    _listed: ListedConnection,
}

/// The bytes of a connection.
#[derive(Debug)]
enum Bytes {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// The first words of a connection, which are awaited.
struct Greeting {
    /// The wait for the time by which they must have come.
    until: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Bytes that are missing.
    missing: usize,
}

const GREETING: Duration = Duration::from_secs(10);
/// Bytes by which that is known: as many as HTTP/2 begins with.
const PREFACE: usize = 24;

// === impl Places ===

impl Places {
    /// `port` with so many places, of which connections from one address may take no more than `most`.
    pub(super) fn new(port: Port, places: usize, most: usize, driver: &Arc<Driver>) -> Arc<Places> {
        let free = Arc::new(Semaphore::new(places));
        Arc::new(Places { port, free, most, taken: Mutex::default(), driver: Arc::clone(driver) })
    }

    /// The place of a connection from `address`; nothing if that has enough.
    fn take(self: &Arc<Places>, address: IpAddr, permit: OwnedSemaphorePermit) -> Option<Place> {
        // One that speaks IPv4 has one address, however it is written.
        let address = address.to_canonical();
        let mut taken = self.taken();
        let of_address = taken.entry(address).or_default();
        if *of_address >= self.most {
            self.driver.traffic().turned_away.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        *of_address += 1;
        self.driver.traffic().connections.add(self.port);
        Some(Place { places: Arc::clone(self), address, _permit: permit })
    }

    /// The permit of a place, which others wait for outside while there is none.
    async fn permit(&self) -> OwnedSemaphorePermit {
        let free = Arc::clone(&self.free);
        if let Ok(permit) = Arc::clone(&free).try_acquire_owned() {
            return permit;
        }
        let waiting = &self.driver.traffic().waiting;
        waiting.set(self.port, 1);
        let permit = free.acquire_owned().await.expect("nobody closes the semaphore");
        waiting.set(self.port, 0);
        permit
    }

    /// Locks the table, also after a panic: every change of it is one step.
    fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.driver.traffic().connections.remove(self.places.port);
        let mut taken = self.places.taken();
        if let Some(of_address) = taken.get_mut(&self.address) {
            *of_address -= 1;
            if *of_address == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

// === impl Greeting ===

impl fmt::Debug for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Greeting").field("missing", &self.missing).finish_non_exhaustive()
    }
}

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
            let Some(guard) = &self.guard else {
                let caller = Caller::remote(address, Identity::plain(), Some(driver.mark(address)));
                return Connection::new(Bytes::Plain(stream), caller, place, greeting);
            };
            let guard = guard.clone();
            self.shaking.spawn(async move {
                let shaken = guard.shake(stream, address, &driver.traffic().handshakes).await;
                let (stream, identity) = shaken?;
                let caller = Caller::remote(address, identity, Some(driver.mark(address)));
                Some(Connection::new(Bytes::Tls(Box::new(stream)), caller, place, greeting))
            });
        }
    }
}

/// The next connection for which there is a place.
async fn admit(listener: &mut Incoming, places: &Arc<Places>) -> (Socket, Place) {
    loop {
        let permit = places.permit().await;
        // Goes on after errors, with a pause when the system has nothing left for another connection.
        let (socket, address) = match listener {
            Incoming::Tcp(listener) => {
                let (stream, address) = Listener::accept(listener).await;
                // A connection that cannot be told so is slower, and serves all the same.
                let _ = stream.set_nodelay(true);
                (Socket::Tcp(stream, address), address.ip())
            }
            Incoming::Unix(listener) => {
                let (stream, _) = Listener::accept(listener).await;
                (Socket::Unix(stream), IpAddr::from([0; 16]))
            }
        };
        if let Some(place) = places.take(address, permit) {
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

// === impl Bytes ===

impl Bytes {
    fn inner(&mut self) -> Pin<&mut (dyn Duplex + Send)> {
        match self {
            Bytes::Plain(stream) => Pin::new(stream),
            Bytes::Tls(stream) => Pin::new(&mut **stream),
            Bytes::Unix(stream) => Pin::new(stream),
        }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

// === impl Connection ===

impl Connection {
    fn new(stream: Bytes, mut caller: Caller, place: Place, greeting: Duration) -> Connection {
        let open = OpenConnection::new(place.places.port, caller.clone());
        let listed = ListedConnection::new(&place.places.driver.traffic().table, open);
        caller.connection = listed.number();
        let greeting =
            Greeting { until: Box::pin(clock::sleep_until(clock::now() + greeting)), missing: PREFACE };
        Connection { stream, caller, greeting: Some(greeting), end: None, place, _listed: listed }
    }

    /// Ends when the connection has been dropped.
    pub(super) fn ended(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let (end, ended) = oneshot::channel();
        self.end = Some(end);
        async move {
            // That it is dropped is all that ever comes.
            let _ = ended.await;
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.greeting.is_none() {
            return self.stream.inner().poll_read(cx, buffer);
        }
        let before = buffer.filled().len();
        let read = self.stream.inner().poll_read(cx, buffer);
        let Some(greeting) = &mut self.greeting else { return read };
        match read {
            Poll::Ready(read) => {
                greeting.missing = greeting.missing.saturating_sub(buffer.filled().len() - before);
                if greeting.missing == 0 {
                    self.greeting = None;
                }
                Poll::Ready(read)
            }
            Poll::Pending => greeting.until.as_mut().poll(cx).map(|()| {
                self.place.places.driver.traffic().silent.fetch_add(1, Ordering::Relaxed);
                Err(io::ErrorKind::TimedOut.into())
            }),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.inner().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.inner().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Tls(stream) => stream.is_write_vectored(),
            Bytes::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.inner().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.inner().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use lessor_proto::Epoch;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::node::NodeConfig;
    use crate::repository::Repository;

    fn driver() -> Arc<Driver> {
        let config = NodeConfig::new("root", Epoch(1));
        Arc::new(Driver::new(config, Repository::default(), "here:1".to_owned(), 1))
    }

    async fn open(places: usize, most: usize) -> (Acceptor, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Acceptor::new(listener, Places::new(Port::Main, places, most, &driver()), None), address)
    }

    #[tokio::test]
    async fn who_finds_no_place_waits_until_somebody_leaves() {
        let (mut acceptor, address) = open(1, 1).await;
        let _first = TcpStream::connect(address).await.unwrap();
        let _second = TcpStream::connect(address).await.unwrap();
        let inside = acceptor.accept().await;
        let places = Arc::clone(&acceptor.places);
        let traffic = || {
            let traffic = places.driver.traffic();
            (traffic.connections.of(Port::Main), traffic.waiting.of(Port::Main))
        };
        assert_eq!(traffic(), (1, 0));
        // Nobody is let in while the only permit is taken: polled once, and again after it is free.
        let mut next = Box::pin(acceptor.accept());
        assert!(futures_util::poll!(&mut next).is_pending());
        assert_eq!(traffic(), (1, 1), "somebody waits");
        drop(inside);
        let _second = next.await;
        assert_eq!(traffic(), (1, 0));
    }

    #[tokio::test]
    async fn no_address_has_more_than_its_part_of_the_places() {
        let (mut acceptor, address) = open(3, 2).await;
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let first = acceptor.accept().await;
        let second = acceptor.accept().await;
        let places = Arc::clone(&acceptor.places);
        let mut next = Box::pin(acceptor.accept());
        assert!(futures_util::poll!(&mut next).is_pending(), "a place is free, and not for this address");
        assert_eq!(clients[2].read(&mut [0]).await.unwrap(), 0, "it is turned away, and not left waiting");
        assert_eq!(places.driver.traffic().turned_away.load(Ordering::Relaxed), 1);
        drop(first);
        let _again = TcpStream::connect(address).await.unwrap();
        next.await;
        drop(second);
    }

    /// Reads until that fails.
    async fn fault(connection: &mut Connection) -> io::ErrorKind {
        loop {
            match connection.read(&mut [0; 64]).await {
                Ok(0) => panic!("it has ended in order"),
                Ok(_) => {}
                Err(error) => return error.kind(),
            }
        }
    }

    #[tokio::test]
    async fn who_does_not_say_what_it_speaks_leaves_its_place_to_others() {
        let (mut acceptor, address) = open(1, 1).await;
        acceptor.greeting = Duration::from_millis(20);
        let _silent = TcpStream::connect(address).await.unwrap();
        let mut silent = acceptor.accept().await;
        assert_eq!(fault(&mut silent).await, io::ErrorKind::TimedOut);
        drop(silent);

        let mut dribbles = TcpStream::connect(address).await.unwrap();
        let mut dribble = acceptor.accept().await;
        dribbles.write_all(b"PRI").await.unwrap();
        assert_eq!(fault(&mut dribble).await, io::ErrorKind::TimedOut, "three bytes say nothing");
    }

    #[tokio::test]
    async fn of_who_has_said_what_it_speaks_nothing_more_is_asked() {
        let (mut acceptor, address) = open(1, 1).await;
        let mut speaks = TcpStream::connect(address).await.unwrap();
        let mut heard = acceptor.accept().await;
        assert!(heard.greeting.is_some());
        speaks.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        heard.read_exact(&mut [0; PREFACE]).await.unwrap();
        assert!(heard.greeting.is_none());
    }
}
