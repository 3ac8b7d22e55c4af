//! Certificates towards etcd, looked at when they are given rather than when they are first needed.

use std::fmt;

use etcd_client::{Certificate, Identity, TlsOptions};
use tonic::transport::Endpoint;

use crate::shell::causes::causes;

/// Certificates: whom to believe, and who calls. All of it in PEM.
#[derive(Clone)]
pub struct EtcdTls {
    options: TlsOptions,
    has_identity: bool,
    /// All that it was made of.
    texts: Vec<Vec<u8>>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTls {
    /// Nobody would be believed.
    #[error("no certificate in it, wanted PEM with BEGIN CERTIFICATE")]
    NoCertificate,
    /// Nothing would be proved.
    #[error("no private key in it, wanted PEM with BEGIN PRIVATE KEY")]
    NoKey,
    /// They cannot be read, or the key is not that of the certificate.
    #[error("certificate and key cannot be used together: {0}")]
    Identity(String),
}

// === impl EtcdTls ===

impl EtcdTls {
    /// Members of etcd are believed that one of the authorities in `ca` has certified.
    ///
    /// # Errors
    /// When there is none in it.
    pub fn new(ca: &[u8]) -> Result<EtcdTls, BadTls> {
        certificate(ca)?;
        let options = TlsOptions::new().ca_certificate(Certificate::from_pem(ca));
        Ok(EtcdTls { options, has_identity: false, texts: vec![ca.to_vec()] })
    }

    /// This task shows `certificate`, and proves with `key` that it is its own.
    ///
    /// # Errors
    /// When one of them is missing or cannot be read, or they do not belong together.
    pub fn with_identity(self, certificate_pem: &[u8], key_pem: &[u8]) -> Result<EtcdTls, BadTls> {
        certificate(certificate_pem)?;
        if !holds(key_pem, "PRIVATE KEY-----") {
            return Err(BadTls::NoKey);
        }
        let options = self.options.identity(Identity::from_pem(certificate_pem, key_pem));
        // Here they are read; who is at the other end does not matter yet.
        let read = Endpoint::from_static("https://etcd.invalid").tls_config(options.clone());
        match read {
            Ok(_) => {
                let texts = [self.texts, vec![certificate_pem.to_vec(), key_pem.to_vec()]].concat();
                Ok(EtcdTls { options, has_identity: true, texts })
            }
            Err(error) => Err(BadTls::Identity(causes(&error))),
        }
    }

    pub(super) fn options(&self) -> TlsOptions {
        self.options.clone()
    }
}

/// Made of the same texts.
impl PartialEq for EtcdTls {
    fn eq(&self, other: &EtcdTls) -> bool {
        self.texts == other.texts
    }
}

impl Eq for EtcdTls {}

/// Without the key.
impl fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdTls").field("has_identity", &self.has_identity).finish_non_exhaustive()
    }
}

fn certificate(pem: &[u8]) -> Result<(), BadTls> {
    if holds(pem, "-----BEGIN CERTIFICATE-----") { Ok(()) } else { Err(BadTls::NoCertificate) }
}

fn holds(pem: &[u8], text: &str) -> bool {
    pem.windows(text.len()).any(|bytes| bytes == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

    #[test]
    fn what_is_missing_is_told() {
        let told = |result: Result<EtcdTls, BadTls>| result.unwrap_err().to_string();
        assert_eq!(told(EtcdTls::new(b"")), "no certificate in it, wanted PEM with BEGIN CERTIFICATE");
        let tls = EtcdTls::new(CERTIFICATE).unwrap();
        assert_eq!(
            told(tls.clone().with_identity(CERTIFICATE, CERTIFICATE)),
            "no private key in it, wanted PEM with BEGIN PRIVATE KEY"
        );
        let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert!(
            told(tls.with_identity(CERTIFICATE, key))
                .starts_with("certificate and key cannot be used together: ")
        );
    }
}
