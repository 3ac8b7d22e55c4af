//! The bytes of a connection, plain or over TLS, and what is said when the other end expects the other kind.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper_util::client::legacy::connect::{Connected, Connection};
use rustls::{AlertDescription, Error};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a server.
#[derive(Debug)]
pub struct Wire {
    bytes: Bytes,
    /// Whether something has been heard.
    has_heard: bool,
    /// The fault of a write before anything was heard: what the other end said before it left is to be read first.
    lost: Option<io::Error>,
}

#[derive(Debug)]
enum Bytes {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The first byte of an alert of TLS. Neither version of HTTP begins an answer with it.
const ALERT: u8 = 0x15;

// === impl Wire ===

impl Wire {
    pub(super) fn plain(stream: TcpStream) -> Wire {
        Wire { bytes: Bytes::Plain(stream), has_heard: false, lost: None }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Wire {
        Wire { bytes: Bytes::Tls(Box::new(stream)), has_heard: false, lost: None }
    }

    /// The outcome of a write, or all of it if the other end has left and it is still to be heard why.
    fn written(&mut self, outcome: io::Result<usize>, all: usize) -> io::Result<usize> {
        outcome.or_else(|fault| match self.has_heard {
            true => Err(fault),
            false => {
                self.lost = Some(fault);
                Ok(all)
            }
        })
    }

    fn inner(&mut self) -> Pin<&mut (dyn Duplex + Send)> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream),
            Bytes::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.inner().poll_read(cx, buffer)).map_err(refused)?;
        if self.has_heard {
            return Poll::Ready(Ok(()));
        }
        let first = buffer.filled().get(before);
        if let (Bytes::Plain(_), Some(&ALERT)) = (&self.bytes, first) {
            let fault = "the server speaks TLS; wanted https:// for it, and a CA";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault)));
        }
        self.has_heard = first.is_some();
        Poll::Ready(match self.lost.take() {
            Some(fault) if first.is_none() => Err(fault),
            _ => Ok(()),
        })
    }
}

/// A server says after its handshake what it thinks of a client's certificate.
fn refused(fault: io::Error) -> io::Error {
    match fault.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::AlertReceived(alert)) => io::Error::new(fault.kind(), refusal(*alert)),
        _ => fault,
    }
}

/// The meaning of an alert that a server ends a connection with.
pub(super) fn refusal(alert: AlertDescription) -> String {
    let meaning = match alert {
        AlertDescription::CertificateRequired => "the server wants a certificate, and none is shown",
        AlertDescription::UnknownCA => "the server does not believe the authority of the own certificate",
        AlertDescription::CertificateExpired => "the own certificate has ended",
        AlertDescription::CertificateRevoked => "the own certificate is revoked",
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied => "the server refuses the own certificate; its log says why",
        AlertDescription::NoApplicationProtocol => "the server does not speak this protocol on this port",
        AlertDescription::ProtocolVersion => "the server speaks no version of TLS that is spoken here",
        _ => return format!("the server ended it with the alert {alert:?}"),
    };
    format!("{meaning} (alert {alert:?})")
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(self.inner().poll_write(cx, bytes));
        Poll::Ready(self.written(written, bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.inner().poll_write_vectored(cx, slices));
        Poll::Ready(self.written(written, slices.iter().map(|slice| slice.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(cx)
    }
}
