//! A connection of a port, which must say what it speaks, and keeps its place until it ends.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use lessor_client::internals::clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::places::TakenPlace;
use super::read_turn::ReadTurn;
use crate::shell::caller::Caller;
use crate::shell::connections::{ListedConnection, OpenConnection};

/// A connection, and the place that it takes until it is dropped.
#[derive(Debug)]
pub(in crate::shell) struct Connection {
    stream: Bytes,
    turn: ReadTurn,
    caller: Caller,
    /// Absent once it has said what it speaks.
    pub(super) greeting: Option<Greeting>,
    /// Dropped with the connection, if somebody waits for that.
    end: Option<oneshot::Sender<()>>,
    place: TakenPlace,
    _listed: ListedConnection,
}

/// The bytes of a connection.
#[derive(Debug)]
pub(super) enum Bytes {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// The first words of a connection, which are awaited.
pub(super) struct Greeting {
    /// The wait for the time by which they must have come.
    until: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Bytes that are missing.
    missing: usize,
}

/// Bytes by which it is known what a connection speaks: as many as HTTP/2 begins with.
pub(super) const PREFACE: usize = 24;

// === impl Greeting ===

impl fmt::Debug for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Greeting").field("missing", &self.missing).finish_non_exhaustive()
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
    pub(super) fn new(
        stream: Bytes,
        mut caller: Caller,
        place: TakenPlace,
        greeting: Duration,
    ) -> Connection {
        let open = OpenConnection::new(place.places.port, caller.clone());
        let listed = ListedConnection::new(&place.places.driver.traffic().table, open);
        caller.connection = listed.number();
        let greeting =
            Greeting { until: Box::pin(clock::sleep_until(clock::now() + greeting)), missing: PREFACE };
        let turn = ReadTurn::default();
        Connection { stream, turn, caller, greeting: Some(greeting), end: None, place, _listed: listed }
    }

    /// Ends when the connection has been dropped.
    pub(in crate::shell) fn ended(&mut self) -> impl Future<Output = ()> + Send + use<> {
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
            let Connection { stream, turn, .. } = &mut *self;
            let before = buffer.filled().len();
            return turn.poll(cx, |cx| {
                let read = stream.inner().poll_read(cx, buffer);
                read.map(|read| (read, buffer.filled().len() - before))
            });
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
