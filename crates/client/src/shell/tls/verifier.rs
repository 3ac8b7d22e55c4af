//! The check of a server's certificate: a chain to an authority that is believed, and then either the name that was called
//! or the identity that is expected.
//!
//! The identity is looked at in place of the name, not besides: a certificate of SPIFFE has no DNS name.

use std::fmt;
use std::sync::Arc;

use lessor_proto::{Glob, Identity};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

use super::certificate::{BadCertificate, identity};

/// The servers that are believed.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    pub(super) roots: RootCertStore,
    pub(super) provider: Arc<CryptoProvider>,
    /// The identity that every server must have; absent: the name that it is called by.
    pub(super) server: Option<Glob>,
}

/// Why a server is not believed, whose chain is in order.
#[derive(Debug)]
enum Stranger {
    Nameless(BadCertificate),
    Another { found: Identity, wanted: Glob },
}

// === impl Stranger ===

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stranger::Nameless(fault) => write!(f, "the server's certificate: {fault}"),
            Stranger::Another { found, wanted } => {
                write!(f, "the server's certificate is that of {found}, wanted {wanted}")
            }
        }
    }
}

impl std::error::Error for Stranger {}

// === impl ServerVerifier ===

impl ServerVerifier {
    fn verify_identity(&self, certificate: &CertificateDer<'_>, wanted: &Glob) -> Result<(), Stranger> {
        let found = identity(certificate).map_err(Stranger::Nameless)?;
        match wanted.matches(found.as_str()) {
            true => Ok(()),
            false => Err(Stranger::Another { found, wanted: wanted.clone() }),
        }
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
        match &self.server {
            None => verify_server_name(&certificate, server_name)?,
            Some(wanted) => self.verify_identity(end_entity, wanted).map_err(|stranger| {
                Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(stranger))))
            })?,
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
