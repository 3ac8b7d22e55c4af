//! A connection at a door, which does not keep its place by saying nothing.
//!
//! A peer says within seconds what it speaks, or its place is somebody else's; a connection on which nothing is read or written
//! for long is over.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use lessor_client::internals::clock;
use lessor_proto::Time;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::peer::ConnectedPeer;

/// A connection, and the place that it takes until it is dropped.
#[derive(Debug)]
pub(super) struct DoorConnection {
    bytes: DoorBytes,
    patience: Patience,
    peer: ConnectedPeer,
    _place: ConnectionPlace,
}

/// The place of a connection, and the one among those of strangers, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    _all: OwnedSemaphorePermit,
    _of_strangers: Option<OwnedSemaphorePermit>,
}

/// The way that the bytes of a connection go.
#[derive(Debug)]
pub(super) enum DoorBytes {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// The patience with a peer. The clock is read once in a while, and not whenever something moves.
struct Patience {
    /// When it ends, if nothing has moved since that was said.
    ends: Time,
    /// Whether something has.
    has_moved: bool,
    /// A wait that is over then, or earlier.
    wait: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Bytes that are missing until it is known what the peer speaks.
    missing: usize,
    /// Whether the peer may say nothing for as long as it likes.
    is_endless: bool,
    /// The requests of the connection, and when the next one is to be there at the latest; absent: another looks after that.
    turns: Option<(Arc<Turns>, Time)>,
}

/// The requests on a connection, as far as patience has to know of them.
#[derive(Default, Debug)]
pub(super) struct Turns {
    /// Whether one has come since that was asked last.
    has_come: AtomicBool,
    /// Whether one is being answered.
    is_answering: AtomicBool,
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(super) struct Answering<'a>(&'a Turns);

/// The time after which a connection is over on which nothing has moved. Connections of HTTP/2 are pinged more often.
const SILENCE: Duration = Duration::from_secs(300);
/// The interval at which it is looked whether anything has moved; patience may last for so much longer.
const BEAT: Duration = Duration::from_secs(1);
/// The time in which the head of a request comes, also of the next one on a connection: longer than proxies keep one that is idle
/// (nginx 60 s), so that they are the ones who close it.
const HEAD: Duration = Duration::from_secs(75);
/// The silence after which a peer is asked whether it is there, and the time until it is asked again.
const ALIVE: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(10)];

// === impl ConnectionPlace ===

impl ConnectionPlace {
    pub(super) fn new(
        all: OwnedSemaphorePermit,
        of_strangers: Option<OwnedSemaphorePermit>,
    ) -> ConnectionPlace {
        ConnectionPlace { _all: all, _of_strangers: of_strangers }
    }

    /// The same, which is not among those of strangers any more.
    pub(super) fn of_a_known_peer(self) -> ConnectionPlace {
        ConnectionPlace { _of_strangers: None, ..self }
    }
}

// === impl Patience ===

impl Patience {
    fn new(greeting: Duration, missing: usize) -> Patience {
        let ends = clock::now() + greeting;
        let wait = Box::pin(clock::sleep_until(ends));
        Patience { ends, has_moved: false, wait, missing, is_endless: false, turns: None }
    }

    /// The peer has said so many bytes.
    fn hear(&mut self, bytes: usize) {
        self.missing = self.missing.saturating_sub(bytes);
        self.renew();
    }

    /// Something has moved.
    fn renew(&mut self) {
        self.has_moved |= self.missing == 0;
    }

    /// Waits on, and fails when it is at an end.
    fn poll<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if self.is_endless {
            return Poll::Pending;
        }
        while self.wait.as_mut().poll(cx).is_ready() {
            let now = clock::now();
            if std::mem::take(&mut self.has_moved) {
                self.ends = now + SILENCE;
            }
            if now >= self.ends || self.is_head_late(now) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.wait = Box::pin(clock::sleep_until(self.ends.min(now + BEAT)));
        }
        Poll::Pending
    }

    /// Whether no request has come for so long that none will.
    fn is_head_late(&mut self, now: Time) -> bool {
        let Some((turns, ends)) = &mut self.turns else { return false };
        if turns.has_gone_on() {
            *ends = now + HEAD;
        }
        now >= *ends
    }
}

// === impl Turns ===

impl Turns {
    /// A request has come.
    pub(super) fn begin(&self) -> Answering<'_> {
        self.is_answering.store(true, Ordering::Relaxed);
        self.has_come.store(true, Ordering::Relaxed);
        Answering(self)
    }

    /// Whether any has come since that was asked last, or is being answered.
    fn has_gone_on(&self) -> bool {
        self.has_come.swap(false, Ordering::Relaxed) || self.is_answering.load(Ordering::Relaxed)
    }
}

// === impl Answering ===

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.is_answering.store(false, Ordering::Relaxed);
        // The time of the next head begins with the answer.
        self.0.has_come.store(true, Ordering::Relaxed);
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
            DoorBytes::Tls(stream) => Pin::new(stream),
            DoorBytes::Unix(stream) => Pin::new(stream),
        }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

// === impl DoorConnection ===

impl DoorConnection {
    /// A connection whose peer has so long to say so many bytes.
    pub(super) fn new(
        bytes: DoorBytes,
        (greeting, missing): (Duration, usize),
        peer: ConnectedPeer,
        place: ConnectionPlace,
    ) -> DoorConnection {
        DoorConnection { bytes, patience: Patience::new(greeting, missing), peer, _place: place }
    }

    pub(super) fn peer(&self) -> &ConnectedPeer {
        &self.peer
    }

    /// Bears any silence from here on, or no longer than others'.
    pub(super) fn bear(&mut self, is_endless: bool) {
        if self.patience.is_endless && !is_endless {
            self.patience.renew();
        }
        self.patience.is_endless = is_endless;
    }

    /// Waits for the head of each request no longer than proxies keep a connection, by the turns that are returned.
    pub(super) fn in_turns(&mut self) -> Arc<Turns> {
        let turns = Arc::new(Turns::default());
        self.patience.turns = Some((Arc::clone(&turns), clock::now() + HEAD));
        turns
    }

    /// Has the kernel ask a silent peer now and then whether it is there still.
    pub(super) fn keep_alive(&self) {
        let stream = match &self.bytes {
            DoorBytes::Tcp(stream) => Some(stream),
            DoorBytes::Tls(stream) => Some(stream.get_ref().0),
            DoorBytes::Unix(_) => None,
        };
        if let Some(stream) = stream {
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
    type ConnectInfo = ConnectedPeer;

    fn connect_info(&self) -> ConnectedPeer {
        self.peer.clone()
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
            DoorBytes::Tls(stream) => stream.is_write_vectored(),
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
    use super::*;

    #[tokio::test]
    async fn the_head_of_a_request_is_waited_for_from_the_answer_before_it_on() {
        let (turns, begins) = (Arc::new(Turns::default()), clock::now());
        let mut patience = Patience::new(SILENCE, 0);
        let after = |seconds: u64| begins + Duration::from_secs(seconds);
        assert!(!patience.is_head_late(after(1_000)), "who looks after heads otherwise has them late");
        patience.turns = Some((Arc::clone(&turns), begins + HEAD));
        assert!(!patience.is_head_late(after(74)));
        let answering = turns.begin();
        assert!(
            !patience.is_head_late(after(100)) && !patience.is_head_late(after(300)),
            "it is being answered"
        );
        drop(answering);
        assert!(!patience.is_head_late(after(310)) && !patience.is_head_late(after(384)));
        assert!(patience.is_head_late(after(385)), "another has not come");
    }
}
