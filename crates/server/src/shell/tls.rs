//! The TLS of a server: what it shows, whom it believes, and how long a connection lives.
//!
//! Certificates, key, authorities and revocations are files that are replaced while the server runs. A set of them is in
//! force as a whole, and only if all of it can be used; each handshake takes the set that is in force then, and no session is
//! resumed from an earlier one.

pub(super) mod certificates;
mod client_verifier;
pub(super) mod handshake;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::TlsFault;
use lessor_client::internals::tls::{PemSource, Renewed, Texts, certified, end_of, end_of_chain, roots};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};

use self::client_verifier::ClientVerifier;
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
        let mut sources =
            vec![PemSource::file("--tls-cert", &self.certificate), PemSource::file("--tls-key", &self.key)];
        if let Some(clients) = &self.clients {
            sources.push(PemSource::file("--tls-client-ca", &clients.ca));
            sources.extend(clients.revoked.iter().map(|file| PemSource::file("--tls-crl", file)));
        }
        sources
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
        let provider = Arc::new(ring::default_provider());
        let (certificate, key) = (&sources[0], &sources[1]);
        let (chain, private) = certified((certificate, &texts[0]), (key, &texts[1]), &provider)?;
        let ends = end_of_chain(certificate, &chain)?;
        let authorities = Authorities::read(&sources[2..], &texts[2..])?;
        let config = |required: bool, protocols: &[&[u8]]| {
            let verifier = match &authorities {
                Some(authorities) => authorities.verifier(required)?,
                None => WebPkiClientVerifier::no_client_auth(),
            };
            let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .expect("ring has ciphers for both versions")
                .with_client_cert_verifier(verifier)
                .with_single_cert(chain.clone(), private.clone_key())
                .map_err(|fault| key.fault(fault.to_string(), "a key that can sign"))?;
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            // Connections stay for hours. Whoever resumed one would not be looked at again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
            Ok(Arc::new(config))
        };
        Ok(Shown {
            main: config(requires_clients, &[b"h2", b"http/1.1"])?,
            pages: config(false, &[b"http/1.1"])?,
            admin: config(requires_clients, &[b"http/1.1"])?,
            ends,
            authorities_end: authorities.as_ref().and_then(Authorities::end),
        })
    }
}

/// The authorities of clients, and what they have revoked.
struct Authorities<'a> {
    ca: &'a PemSource,
    ca_pem: &'a [u8],
    revoked: Option<(&'a PemSource, &'a [u8])>,
}

// === impl Authorities ===

impl<'a> Authorities<'a> {
    fn read(sources: &'a [PemSource], texts: &'a Texts) -> Result<Option<Authorities<'a>>, TlsFault> {
        let (Some(ca), Some(ca_pem)) = (sources.first(), texts.first()) else { return Ok(None) };
        let revoked = sources.get(1).zip(texts.get(1)).map(|(source, text)| (source, &**text));
        Ok(Some(Authorities { ca, ca_pem, revoked }))
    }

    /// The check of what clients show.
    fn verifier(&self, required: bool) -> Result<Arc<dyn ClientCertVerifier>, TlsFault> {
        let roots = Arc::new(roots(self.ca, self.ca_pem)?);
        let mut builder =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::new(ring::default_provider()));
        if let Some((source, pem)) = self.revoked {
            builder = builder.with_crls(source.revoked(pem)?);
        }
        if !required {
            builder = builder.allow_unauthenticated();
        }
        let chain = builder.build().map_err(|fault| {
            let source = self.revoked.map_or(self.ca, |(source, _)| source);
            source.fault(fault.to_string(), "what an authority has issued")
        })?;
        Ok(Arc::new(ClientVerifier { chain }))
    }

    fn end(&self) -> Option<Duration> {
        let authorities = self.ca.certificates(self.ca_pem).ok()?;
        authorities.iter().filter_map(end_of).min()
    }
}
