//! The acceptor of a port: takes so many connections at a time and lets the rest wait outside, in the kernel's queue.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::serve::Listener;
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// A listener with a bounded number of connections. Acceptors with the same permits share the bound.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

/// A connection, and the permit that it takes until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
}

// === impl Acceptor ===

impl Acceptor {
    pub(super) fn new(listener: TcpListener, permits: &Arc<Semaphore>) -> Acceptor {
        Acceptor { listener, permits: Arc::clone(permits) }
    }

    /// All connections to come.
    pub(super) fn connections(self) -> impl Stream<Item = io::Result<Connection>> {
        futures_util::stream::unfold(self, |mut acceptor| async {
            let (connection, _) = acceptor.accept().await;
            Some((Ok(connection), acceptor))
        })
    }
}

impl Listener for Acceptor {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("nobody closes the semaphore");
        // Goes on after errors, with a pause when the system has nothing left for another connection.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // A connection that cannot be told so is slower, and serves all the same.
        let _ = stream.set_nodelay(true);
        (Connection { stream, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

// === impl Connection ===

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_finds_no_place_waits_until_somebody_leaves() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut acceptor = Acceptor::new(listener, &Arc::new(Semaphore::new(1)));
        let _first = TcpStream::connect(address).await.unwrap();
        let _second = TcpStream::connect(address).await.unwrap();
        let (inside, _) = acceptor.accept().await;
        // Nobody is let in while the only permit is taken: polled once, and again after it is free.
        let mut next = Box::pin(acceptor.accept());
        assert!(futures_util::poll!(&mut next).is_pending());
        drop(inside);
        next.await;
    }
}
