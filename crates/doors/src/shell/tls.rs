//! TLS at the ports of doors: what is shown there, and whose proxies are believed.
//!
//! Certificate, key, authorities and revocations are files that are replaced while doors are open. A set of them is in force as a
//! whole, and only if all of it can be used; each handshake takes the set that is in force then.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::TlsFault;
use lessor_client::internals::tls::{PemSource, Renewed, ShownCertificate, Texts, shown_sources};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use super::Doors;

/// The settings of TLS at doors.
#[derive(Clone, Debug)]
pub struct DoorTlsOptions {
    /// The file with the certificate that is shown, and what leads from it to its authority, PEM.
    pub certificate: PathBuf,
    /// The file with its private key, PEM.
    pub key: PathBuf,
    /// The file with the authorities that have issued the certificates of proxies, PEM; absent: nobody is asked for one.
    pub client_ca: Option<PathBuf>,
    /// The file with what these have revoked, PEM; absent: nothing.
    pub revoked: Option<PathBuf>,
    /// The age that no connection reaches by much: a proxy that stays sees a certificate that was replaced by then.
    pub max_age: Duration,
}

/// The TLS of doors, in force.
#[derive(Debug)]
pub struct DoorTls {
    renewed: Renewed<DoorCertificate>,
    pub(super) max_age: Duration,
    /// Whether proxies must show a certificate.
    pub(super) requires_clients: bool,
}

/// The settings of one generation of files.
#[derive(Debug)]
struct DoorCertificate {
    rls: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
    /// The end of the certificate, since the beginning of 1970.
    ends: Duration,
}

/// The TLS of one port.
#[derive(Clone, Debug)]
pub(super) enum PortTls {
    /// A door for gRPC.
    Rls(Arc<DoorTls>),
    /// A door over HTTP, where probes come that show no certificate.
    Http(Arc<DoorTls>),
}

// === impl DoorTls ===

impl DoorTls {
    /// Reads all files.
    ///
    /// # Errors
    /// When one of them cannot be read or used, or the key is another's.
    pub fn load(options: &DoorTlsOptions) -> Result<DoorTls, TlsFault> {
        let requires_clients = options.client_ca.is_some();
        let clients = options.client_ca.as_deref().map(|ca| (ca, options.revoked.as_ref()));
        let make = move |sources: &[PemSource], texts: &Texts| {
            let shown = ShownCertificate::read(sources, texts)?;
            let rls = shown.config(requires_clients, &[b"h2"])?;
            let http = shown.config(false, &[b"http/1.1"])?;
            Ok(DoorCertificate { rls, http, ends: shown.ends })
        };
        let renewed = Renewed::load(shown_sources(&options.certificate, &options.key, clients), make)?;
        Ok(DoorTls { renewed, max_age: options.max_age, requires_clients })
    }

    /// Reads all files again, and counts it in the figures of doors. Returns whether they have changed since they were looked at
    /// last; then the new ones are in force.
    ///
    /// # Errors
    /// When they have changed, and cannot be used: the earlier ones stay in force.
    pub fn refresh(&self, doors: &Doors) -> Result<bool, TlsFault> {
        let outcome = self.renewed.refresh();
        match outcome {
            Ok(false) => {}
            Ok(true) => {
                doors.figures.tls.loaded(true);
                doors.figures.tls.ends(self.ends());
            }
            Err(_) => doors.figures.tls.loaded(false),
        }
        outcome
    }

    /// The end of the certificate in force, since the beginning of 1970.
    pub(super) fn ends(&self) -> Duration {
        self.renewed.current().ends
    }
}

// === impl PortTls ===

impl PortTls {
    /// Shakes hands. If the peer has shown a certificate, it is one that is believed.
    pub(super) async fn shake(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = match self {
            PortTls::Rls(tls) => Arc::clone(&tls.renewed.current().rls),
            PortTls::Http(tls) => Arc::clone(&tls.renewed.current().http),
        };
        TlsAcceptor::from(config).accept(stream).await
    }
}
