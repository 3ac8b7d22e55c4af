//! The TLS of a server: what it shows, whom it believes, and how long a connection lives.
//!
//! Certificates, key, authorities and revocations are files that are replaced while the server runs. A set of them is in
//! force as a whole, and only if all of it can be used; each handshake takes the set that is in force then, and no session is
//! resumed from an earlier one.

pub(super) mod certificates;
pub(super) mod handshake;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::TlsFault;
use lessor_client::internals::tls::{PemSource, Renewed, ShownCertificate, Texts, shown_sources};
use rustls::ServerConfig;

use super::port_name::Port;

/// The settings of TLS on the ports of a server.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The file with the certificate that is shown, and what leads from it to its authority, PEM.
    pub certificate: PathBuf,
    /// The file with its private key, PEM.
    pub key: PathBuf,
    /// Whose clients are believed; absent: nobody is asked for a certificate.
    pub clients: Option<TlsClients>,
    /// The age that no connection reaches: a client that stays sees a certificate that was replaced by then, and is looked at
    /// again itself.
    pub max_age: Duration,
}

/// The clients that are believed.
#[derive(Clone, Debug)]
pub struct TlsClients {
    /// The file with the authorities that have issued their certificates, PEM.
    pub ca: PathBuf,
    /// The file with what these have revoked, PEM; absent: nothing.
    pub revoked: Option<PathBuf>,
    /// Whether they must show one. On the port for HTTP they need not: probes have none, and are served nothing else.
    pub required: bool,
}

/// The TLS of a server, in force.
#[derive(Debug)]
pub(super) struct ServerTls {
    renewed: Renewed<Shown>,
    pub(super) max_age: Duration,
    /// Whether clients must show a certificate.
    pub(super) requires_clients: bool,
}

/// The settings of one generation of files.
#[derive(Debug)]
struct Shown {
    main: Arc<ServerConfig>,
    pages: Arc<ServerConfig>,
    admin: Arc<ServerConfig>,
    /// The end of the own certificate, since the beginning of 1970.
    ends: Duration,
    /// The earliest end of an authority.
    authorities_end: Option<Duration>,
}

// === impl TlsOptions ===

impl TlsOptions {
    /// The certificate and key in two files, for clients that are not asked who they are.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> TlsOptions {
        let (certificate, key) = (certificate.into(), key.into());
        TlsOptions { certificate, key, clients: None, max_age: Duration::from_secs(12 * 3_600) }
    }

    fn sources(&self) -> Vec<PemSource> {
        let clients = self.clients.as_ref().map(|clients| (&*clients.ca, clients.revoked.as_ref()));
        shown_sources(&self.certificate, &self.key, clients)
    }
}

// === impl ServerTls ===

impl ServerTls {
    /// Reads all files.
    pub(super) fn load(options: &TlsOptions) -> Result<ServerTls, TlsFault> {
        let requires_clients = options.clients.as_ref().is_some_and(|clients| clients.required);
        let make = move |sources: &[PemSource], texts: &Texts| Shown::make(sources, texts, requires_clients);
        let renewed = Renewed::load(options.sources(), make)?;
        Ok(ServerTls { renewed, max_age: options.max_age, requires_clients })
    }

    /// The settings for a handshake that begins.
    fn config(&self, port: Port) -> Arc<ServerConfig> {
        let shown = self.renewed.current();
        Arc::clone(match port {
            Port::Main => &shown.main,
            Port::Http => &shown.pages,
            Port::Admin => &shown.admin,
        })
    }
}

// === impl Shown ===

impl Shown {
    fn make(sources: &[PemSource], texts: &Texts, requires_clients: bool) -> Result<Shown, TlsFault> {
        let shown = ShownCertificate::read(sources, texts)?;
        Ok(Shown {
            main: shown.config(requires_clients, &[b"h2", b"http/1.1"])?,
            pages: shown.config(false, &[b"http/1.1"])?,
            admin: shown.config(requires_clients, &[b"http/1.1"])?,
            ends: shown.ends,
            authorities_end: shown.authorities_end(),
        })
    }
}
