//! The TLS of a client: which servers it believes, and who it proves to be.

pub(crate) mod certificate;
mod client_verifier;
pub(crate) mod pem;
pub(crate) mod renewed;
pub(crate) mod showing;
mod verifier;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Glob;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tracing::warn;

use self::pem::{PemSource, TlsFault};
use self::renewed::{Renewed, Texts};
use self::verifier::ServerVerifier;
use super::clock;

/// The settings of TLS, for [`Builder::tls`](super::Builder::tls).
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use lessor_client::{Client, Tls};
///
/// let tls = Tls::ca_file("/etc/lessor/ca.pem")
///     .identity_files("/etc/lessor/web.pem", "/etc/lessor/web.key")
///     .server("spiffe://acme/ns/lessor/sa/*");
/// let client = Client::builder("https://lessor.example:15000").tls(tls).connect().await?;
/// # Ok(())
/// # }
/// ```
///
/// Files are looked at again before each connection is made: what has been put in their place is used from then on, and what
/// cannot be used is said in the log and left alone.
#[derive(Clone)]
#[must_use = "a client is secured by `Builder::tls`"]
pub struct Tls {
    ca: PemSource,
    identity: Option<(PemSource, PemSource)>,
    server: Option<String>,
    /// The text before the names of arguments in faults, and the name of the last.
    flags: [&'static str; 2],
}

/// The TLS of a client, in force.
#[derive(Debug)]
pub struct ClientTls {
    renewed: Renewed<Credentials>,
}

/// The settings of one generation of files.
#[derive(Debug)]
pub struct Credentials {
    config: Arc<ClientConfig>,
    /// The date on which the own certificate ends, since the beginning of 1970.
    pub ends: Option<Duration>,
}

/// Looks at files of which some cannot be used with the others: they may be being replaced.
const PATIENCE: usize = 5;
const SETTLE: Duration = Duration::from_millis(50);

// === impl Tls ===

impl Tls {
    /// Servers are believed whose certificate one of the authorities in `pem` has issued, to the name that they are called by.
    pub fn ca(pem: impl Into<Vec<u8>>) -> Tls {
        Tls::of(PemSource::bytes("", pem.into()))
    }

    /// The same, with the authorities in a file.
    pub fn ca_file(path: impl Into<PathBuf>) -> Tls {
        Tls::of(PemSource::file("", path))
    }

    fn of(ca: PemSource) -> Tls {
        Tls { ca, identity: None, server: None, flags: ["", "server"] }
    }

    /// The client shows `certificate`, with what leads from it to its authority, and proves with `key` that it is its own.
    pub fn identity(self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        let identity = (PemSource::bytes("", certificate.into()), PemSource::bytes("", key.into()));
        Tls { identity: Some(identity), ..self }
    }

    /// The same, with both in files.
    pub fn identity_files(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Tls {
        let identity = (PemSource::file("", certificate), PemSource::file("", key));
        Tls { identity: Some(identity), ..self }
    }

    /// Servers are believed whose identity `glob` matches, in place of the name that they are called by: the only URI among
    /// the alternative names of their certificate, or else the first DNS name. A redirect is followed to no other server.
    pub fn server(self, glob: impl Into<String>) -> Tls {
        Tls { server: Some(glob.into()), ..self }
    }

    /// Faults are said of `{flags}ca`, `{flags}cert` and `{flags}key`, and of `{flags}{server}`.
    #[doc(hidden)]
    pub fn named(self, flags: &'static str, server: &'static str) -> Tls {
        Tls { flags: [flags, server], ..self }
    }

    fn sources(&self) -> Vec<PemSource> {
        let name = |source: &PemSource, name: &str| source.clone().named(format!("{}{name}", self.flags[0]));
        let mut sources = vec![name(&self.ca, "ca")];
        if let Some((certificate, key)) = &self.identity {
            sources.extend([name(certificate, "cert"), name(key, "key")]);
        }
        sources
    }

    /// The pattern that the identity of a server must match, if there is one.
    fn glob(&self) -> Result<Option<Glob>, TlsFault> {
        let Some(text) = &self.server else { return Ok(None) };
        let glob = Glob::new(text).map_err(|fault| TlsFault::Glob {
            from: self.flags.concat(),
            glob: text.clone(),
            fault,
        })?;
        Ok(Some(glob))
    }
}

/// Without texts that may be keys.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tls { ca, identity, server, .. } = self;
        f.debug_struct("Tls")
            .field("ca", ca)
            .field("identity", identity)
            .field("server", server)
            .finish_non_exhaustive()
    }
}

// === impl ClientTls ===

impl ClientTls {
    /// Reads certificates and key.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn load(tls: &Tls) -> Result<ClientTls, TlsFault> {
        let glob = tls.glob()?;
        let make = move |sources: &[PemSource], texts: &Texts| credentials(sources, texts, glob.clone());
        Ok(ClientTls { renewed: Renewed::load(tls.sources(), make)? })
    }

    /// The files, to be looked at again when they change.
    #[must_use]
    pub fn renewed(&self) -> &Renewed<Credentials> {
        &self.renewed
    }

    /// The settings for a connection that is about to be made, after a look at the files.
    pub(super) async fn config(self: &Arc<ClientTls>) -> Arc<ClientConfig> {
        if self.renewed.paths().next().is_some() {
            self.look().await;
        }
        Arc::clone(&self.renewed.current().config)
    }

    /// Takes what has been put in place of the files, and waits a little if only a part of it is there.
    async fn look(self: &Arc<ClientTls>) {
        let mut is_said = true;
        for look in 0..PATIENCE {
            if look > 0 {
                clock::sleep_until(clock::now() + SETTLE).await;
            }
            let this = Arc::clone(self);
            let looked = tokio::task::spawn_blocking(move || this.renewed.refresh()).await;
            is_said &= !matches!(looked, Ok(Err(_)));
            // What could not be used the last time either is not waited for again.
            if is_said || self.renewed.fault().is_none() {
                return;
            }
        }
        if let Some(fault) = self.renewed.fault() {
            warn!(%fault, "certificates cannot be used: the earlier ones stay in force");
        }
    }
}

/// The settings that come of the authorities, and of certificate and key if they are there as well.
fn credentials(sources: &[PemSource], texts: &Texts, server: Option<Glob>) -> Result<Credentials, TlsFault> {
    let provider = Arc::new(ring::default_provider());
    let roots = roots(&sources[0], &texts[0])?;
    let verifier = Arc::new(ServerVerifier { roots, provider: Arc::clone(&provider), server });
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring has ciphers for both versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let (mut config, ends) = match (sources, texts) {
        ([_, certificate, key], [_, chain_pem, key_pem]) => {
            let (chain, key_der) = certified((certificate, chain_pem), (key, key_pem), &provider)?;
            let ends = certificate::end_of_chain(certificate, &chain)?;
            let config = builder.with_client_auth_cert(chain, key_der);
            (config.map_err(|fault| key.fault(fault.to_string(), "a key that can sign"))?, Some(ends))
        }
        _ => (builder.with_no_client_auth(), None),
    };
    // Connections stay for hours. One that is resumed would not be checked against what is in force.
    config.resumption = Resumption::disabled();
    Ok(Credentials { config: Arc::new(config), ends })
}

/// The authorities in `pem`.
///
/// # Errors
/// When there is none, or one of them cannot be read.
pub fn roots(from: &PemSource, pem: &[u8]) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in from.certificates(pem)? {
        roots.add(certificate).map_err(|fault| {
            from.fault(format!("a certificate that cannot be read: {fault}"), "certificates of authorities")
        })?;
    }
    Ok(roots)
}

/// A chain and its private key, which fit each other. Each comes with its source.
///
/// # Errors
/// When one of them cannot be read, or the key is another's.
pub fn certified(
    (certificate, chain_pem): (&PemSource, &[u8]),
    (key, key_pem): (&PemSource, &[u8]),
    provider: &CryptoProvider,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsFault> {
    let chain = certificate.certificates(chain_pem)?;
    let private = key.key(key_pem)?;
    match CertifiedKey::from_der(chain.clone(), private.clone_key(), provider) {
        Ok(_) => Ok((chain, private)),
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(TlsFault::AnothersKey { key: key.to_string(), certificate: certificate.to_string() })
        }
        Err(rustls::Error::InvalidCertificate(fault)) => {
            Err(certificate.fault(format!("{fault:?}"), "a certificate that can be read"))
        }
        Err(fault) => Err(key.fault(fault.to_string(), "an RSA, ECDSA or Ed25519 key")),
    }
}
