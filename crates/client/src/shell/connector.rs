//! The connector to a server: a connection over TCP, and over TLS where the address says so.

mod wire;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, Error, InvalidMessage};
use tokio_rustls::TlsConnector;
use tower_service::Service;

pub(super) use self::wire::Wire;
use super::tls::ClientTls;

/// The time for a connection over TCP, and then the one for the handshake of TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The protocol that is spoken on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// HTTP/2, which gRPC needs.
    Http2,
    /// HTTP/1.1.
    Http1,
}

/// Makes connections to servers.
#[derive(Clone, Debug)]
pub struct Connector {
    tcp: HttpConnector,
    tls: Option<Arc<ClientTls>>,
    protocol: Protocol,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFault {
    /// Nobody takes it, or the name has no address.
    #[error("no connection")]
    Tcp(#[source] <HttpConnector as Service<Uri>>::Error),
    /// The address says that TLS is to be spoken, and nothing says whom to believe.
    #[error("{0}: nobody is believed; wanted a CA for https://")]
    NoAuthority(Uri),
    /// The name cannot stand in a certificate.
    #[error("{0:?} can stand in no certificate; wanted a DNS name or an IP address")]
    Name(String),
    /// The handshake took too long.
    #[error("no TLS handshake in {CONNECT_TIMEOUT:?}")]
    Slow,
    /// The handshake failed.
    #[error("TLS: {0}")]
    Handshake(String),
}

// === impl Connector ===

impl Connector {
    /// A connector for one protocol. With `tls` everything goes over TLS, without it nothing does.
    #[must_use]
    pub fn new(tls: Option<Arc<ClientTls>>, protocol: Protocol) -> Connector {
        let mut tcp = HttpConnector::new();
        // That it is https is our affair.
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        Connector { tcp, tls, protocol }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = ConnectFault;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Wire>, ConnectFault>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectFault>> {
        self.tcp.poll_ready(cx).map_err(ConnectFault::Tcp)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let is_secure = to.scheme() == Some(&http::uri::Scheme::HTTPS);
        let tls = match (is_secure, &self.tls) {
            (false, _) => None,
            (true, Some(tls)) => Some(Arc::clone(tls)),
            (true, None) => return Box::pin(async { Err(ConnectFault::NoAuthority(to)) }),
        };
        let (connecting, protocol) = (self.tcp.call(to.clone()), self.protocol);
        Box::pin(async move {
            let stream = connecting.await.map_err(ConnectFault::Tcp)?.into_inner();
            let Some(tls) = tls else { return Ok(TokioIo::new(Wire::plain(stream))) };
            let host = to.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
            let name =
                ServerName::try_from(host.to_owned()).map_err(|_| ConnectFault::Name(host.to_owned()))?;
            let config = protocol.offered(&tls.config().await);
            let handshake = TlsConnector::from(config).connect(name, stream);
            match tokio::time::timeout(CONNECT_TIMEOUT, handshake).await {
                Err(_) => Err(ConnectFault::Slow),
                Ok(Err(fault)) => Err(ConnectFault::Handshake(explain(&fault))),
                Ok(Ok(stream)) => Ok(TokioIo::new(Wire::tls(stream))),
            }
        })
    }
}

// === impl Protocol ===

impl Protocol {
    fn offered(self, config: &Arc<ClientConfig>) -> Arc<ClientConfig> {
        let name: &[u8] = match self {
            Protocol::Http2 => b"h2",
            Protocol::Http1 => b"http/1.1",
        };
        let mut config = ClientConfig::clone(config);
        config.alpn_protocols = vec![name.to_vec()];
        Arc::new(config)
    }
}

/// The cause of a failed handshake, in words of those who set it up.
fn explain(fault: &io::Error) -> String {
    let cause = fault.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "the server does not speak TLS; wanted http:// for it, or its TLS port".to_owned()
        }
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the server's certificate is of an authority that is not believed; wanted one of the CA"
                .to_owned()
        }
        Some(Error::InvalidCertificate(CertificateError::BadSignature)) => {
            "the server's certificate is of an authority that has the name of the CA and another key"
                .to_owned()
        }
        Some(Error::InvalidCertificate(CertificateError::Other(other))) => other.to_string(),
        Some(Error::InvalidCertificate(fault)) => format!("the server's certificate: {fault}"),
        Some(Error::AlertReceived(alert)) => wire::refusal(*alert),
        _ => fault.to_string(),
    }
}
