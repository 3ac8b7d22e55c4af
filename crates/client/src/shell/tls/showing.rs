//! The side of TLS that is called: a certificate that is shown at ports, and whose clients are believed there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::certificate::{end_of, end_of_chain};
use super::client_verifier::ClientVerifier;
use super::pem::{PemSource, TlsFault};
use super::renewed::Texts;
use super::{certified, roots};

/// A certificate with its key, and the authorities of clients, if there are any.
#[derive(Debug)]
pub struct ShownCertificate {
    chain: Vec<CertificateDer<'static>>,
    private: PrivateKeyDer<'static>,
    key: PemSource,
    believed: Option<Believed>,
    /// The end of the certificate, since the beginning of 1970.
    pub ends: Duration,
}

/// The clients that are believed.
#[derive(Debug)]
struct Believed {
    /// The check where each must show a certificate, and where it may.
    verifiers: [Arc<dyn ClientCertVerifier>; 2],
    /// The earliest end of an authority.
    end: Option<Duration>,
}

/// The sources of a certificate, in the order in which they are read: the certificate, its key, and, where there are any, the
/// authorities of clients and what these have revoked.
#[must_use]
pub fn shown_sources(
    certificate: &Path,
    key: &Path,
    clients: Option<(&Path, Option<&PathBuf>)>,
) -> Vec<PemSource> {
    let mut sources = vec![PemSource::file("--tls-cert", certificate), PemSource::file("--tls-key", key)];
    if let Some((ca, revoked)) = clients {
        sources.push(PemSource::file("--tls-client-ca", ca));
        sources.extend(revoked.map(|file| PemSource::file("--tls-crl", file)));
    }
    sources
}

// === impl ShownCertificate ===

impl ShownCertificate {
    /// Reads the texts of [`shown_sources`].
    ///
    /// # Errors
    /// When one of them cannot be used, or the key is another's.
    pub fn read(sources: &[PemSource], texts: &Texts) -> Result<ShownCertificate, TlsFault> {
        let provider = ring::default_provider();
        let (certificate, key) = (&sources[0], &sources[1]);
        let (chain, private) = certified((certificate, &texts[0]), (key, &texts[1]), &provider)?;
        let ends = end_of_chain(certificate, &chain)?;
        let believed = match (sources.get(2), texts.get(2)) {
            (Some(ca), Some(text)) => {
                let revoked = sources.get(3).zip(texts.get(3)).map(|(source, text)| (source, &**text));
                Some(Believed::read((ca, text), revoked)?)
            }
            _ => None,
        };
        Ok(ShownCertificate { chain, private, key: key.clone(), believed, ends })
    }

    /// The settings of a port with these protocols, where clients must show a certificate, or may.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn config(&self, requires_clients: bool, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>, TlsFault> {
        let verifier = match &self.believed {
            Some(believed) => Arc::clone(&believed.verifiers[usize::from(!requires_clients)]),
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has ciphers for both versions")
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.chain.clone(), self.private.clone_key())
            .map_err(|fault| self.key.fault(fault.to_string(), "a key that can sign"))?;
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        // Connections stay for hours. Whoever resumed one would not be looked at again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// The earliest end of an authority of clients, since the beginning of 1970.
    #[must_use]
    pub fn authorities_end(&self) -> Option<Duration> {
        self.believed.as_ref()?.end
    }
}

// === impl Believed ===

impl Believed {
    fn read(ca: (&PemSource, &[u8]), revoked: Option<(&PemSource, &[u8])>) -> Result<Believed, TlsFault> {
        let authorities = ca.0.certificates(ca.1)?;
        let verifiers = [verifier(ca, revoked, true)?, verifier(ca, revoked, false)?];
        Ok(Believed { verifiers, end: authorities.iter().filter_map(end_of).min() })
    }
}

/// The check of what clients show, or may.
fn verifier(
    (ca, pem): (&PemSource, &[u8]),
    revoked: Option<(&PemSource, &[u8])>,
    is_required: bool,
) -> Result<Arc<dyn ClientCertVerifier>, TlsFault> {
    let roots = Arc::new(roots(ca, pem)?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::new(ring::default_provider()));
    if let Some((source, pem)) = revoked {
        builder = builder.with_crls(source.revoked(pem)?);
    }
    if !is_required {
        builder = builder.allow_unauthenticated();
    }
    let chain = builder.build().map_err(|fault| {
        let source = revoked.map_or(ca, |(source, _)| source);
        source.fault(fault.to_string(), "what an authority has issued")
    })?;
    Ok(Arc::new(ClientVerifier { chain }))
}
