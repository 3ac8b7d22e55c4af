//! A certificate, as far as it is looked at besides being verified: whose it is, and until when.

use std::time::Duration;

use lessor_proto::identity::{BadIdentity, Identity};
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;
use x509_cert::der::Decode;

use super::pem::{PemSource, TlsFault};
use crate::shell::clock;

/// Why a certificate does not say whose it is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadCertificate {
    /// It cannot be read.
    #[error("no certificate that can be read: {0}")]
    Unreadable(String),
    /// Its names are no identity.
    #[error(transparent)]
    Identity(#[from] BadIdentity),
}

/// The identity that a certificate proves, once it is verified.
///
/// # Errors
/// When its names are none.
pub fn identity(certificate: &CertificateDer<'_>) -> Result<Identity, BadCertificate> {
    let read = EndEntityCert::try_from(certificate);
    let read = read.map_err(|fault| BadCertificate::Unreadable(fault.to_string()))?;
    Ok(Identity::certified(read.valid_uri_names(), read.valid_dns_names())?)
}

/// The date on which a certificate ends, since the beginning of 1970; nothing if it cannot be read.
#[must_use]
pub fn end_of(certificate: &CertificateDer<'_>) -> Option<Duration> {
    let read = x509_cert::Certificate::from_der(certificate).ok()?;
    Some(read.tbs_certificate.validity.not_after.to_unix_duration())
}

/// The date on which the first certificate of a chain ends, since the beginning of 1970.
///
/// # Errors
/// When it cannot be read, or that date is past.
pub fn end_of_chain(from: &PemSource, chain: &[CertificateDer<'_>]) -> Result<Duration, TlsFault> {
    const WANTED: &str = "a certificate that is valid";
    let Some(first) = chain.first() else { return Err(from.fault("nothing", WANTED)) };
    let read = x509_cert::Certificate::from_der(first);
    let read =
        read.map_err(|fault| from.fault(format!("no certificate that can be read: {fault}"), WANTED))?;
    let end = read.tbs_certificate.validity.not_after;
    let since_epoch = end.to_unix_duration();
    if since_epoch < clock::wall().since_epoch {
        return Err(from.fault(format!("a certificate that ended on {}", end.to_date_time()), WANTED));
    }
    Ok(since_epoch)
}
