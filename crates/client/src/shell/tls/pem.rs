//! PEM: where certificates and keys come from, and what is said when they cannot be used.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::pem::{PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// The most bytes that a file of certificates may have.
const MOST_BYTES: u64 = 4 << 20;

/// A text in PEM, and its name in faults.
#[derive(Clone)]
pub struct PemSource {
    /// A flag, or the name of an argument.
    name: String,
    place: PemOrigin,
}

#[derive(Clone)]
enum PemOrigin {
    Bytes(Arc<[u8]>),
    File(PathBuf),
}

/// Why certificates and keys cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TlsFault {
    /// A file cannot be read.
    #[error("{source}: cannot be read: {fault}", source = .from)]
    Unreadable {
        /// Which.
        from: String,
        /// Why not.
        fault: String,
    },
    /// A text does not hold what it should.
    #[error("{source}: found {found}; wanted {wanted}", source = .from)]
    Other {
        /// Which.
        from: String,
        /// The thing that is there.
        found: String,
        /// The thing that should be.
        wanted: &'static str,
    },
    /// A key is that of another certificate.
    #[error(
        "{key}: is not the key of the certificate in {certificate}; wanted the one that it was made with"
    )]
    AnothersKey {
        /// Where the key came from.
        key: String,
        /// Where the certificate came from.
        certificate: String,
    },
    /// The pattern of a server's identity is none.
    #[error("{from}: {glob:?}: {fault}; wanted a pattern as `spiffe://acme/ns/lessor/sa/*`")]
    Glob {
        /// Where it came from.
        from: String,
        /// The pattern.
        glob: String,
        /// The fault in it.
        fault: lessor_proto::glob::BadGlob,
    },
    /// An address does not fit the settings.
    #[error("{0}")]
    Address(String),
}

// === impl PemSource ===

impl PemSource {
    /// The text itself.
    pub fn bytes(name: impl Into<String>, pem: impl Into<Arc<[u8]>>) -> PemSource {
        PemSource { name: name.into(), place: PemOrigin::Bytes(pem.into()) }
    }

    /// The file that holds it, and may hold another one tomorrow.
    pub fn file(name: impl Into<String>, path: impl Into<PathBuf>) -> PemSource {
        PemSource { name: name.into(), place: PemOrigin::File(path.into()) }
    }

    /// The same under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> PemSource {
        PemSource { name: name.into(), ..self }
    }

    /// The file, if it is in one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            PemOrigin::Bytes(_) => None,
            PemOrigin::File(path) => Some(path),
        }
    }

    /// The text.
    ///
    /// # Errors
    /// When its file cannot be read, or is none of certificates by its size.
    pub fn read(&self) -> Result<Arc<[u8]>, TlsFault> {
        let path = match &self.place {
            PemOrigin::Bytes(bytes) => return Ok(Arc::clone(bytes)),
            PemOrigin::File(path) => path,
        };
        let unreadable =
            |fault: io::Error| TlsFault::Unreadable { from: self.to_string(), fault: fault.to_string() };
        // Whoever opens a pipe may wait for ever.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(self.fault("no regular file", PEM));
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        match file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)? {
            length if length as u64 > MOST_BYTES => {
                Err(self.fault(format!("more than {MOST_BYTES} bytes"), PEM))
            }
            _ => Ok(bytes.into()),
        }
    }

    /// All certificates in `pem`, which was [read](PemSource::read) from here.
    ///
    /// # Errors
    /// When there is none.
    pub fn certificates(&self, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let all = all.map_err(|fault| self.fault(format!("faulty PEM: {fault}"), CERTIFICATE))?;
        if all.is_empty() {
            return Err(self.fault(contents(pem), CERTIFICATE));
        }
        Ok(all)
    }

    /// The private key in `pem`.
    ///
    /// # Errors
    /// When there is none.
    pub fn key(&self, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsFault> {
        PrivateKeyDer::from_pem_slice(pem).map_err(|fault| match fault {
            rustls_pki_types::pem::Error::NoItemsFound => self.fault(contents(pem), KEY),
            fault => self.fault(format!("faulty PEM: {fault}"), KEY),
        })
    }

    /// All lists of revoked certificates in `pem`.
    ///
    /// # Errors
    /// When there is none.
    pub fn revoked(&self, pem: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsFault> {
        let all: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(pem).collect();
        let all = all.map_err(|fault| self.fault(format!("faulty PEM: {fault}"), REVOKED))?;
        if all.is_empty() {
            return Err(self.fault(contents(pem), REVOKED));
        }
        Ok(all)
    }

    /// A fault of what is in it.
    #[must_use]
    pub fn fault(&self, found: impl Into<String>, wanted: &'static str) -> TlsFault {
        TlsFault::Other { from: self.to_string(), found: found.into(), wanted }
    }
}

const PEM: &str = "certificates or a key in PEM";
const CERTIFICATE: &str = "PEM with BEGIN CERTIFICATE";
const KEY: &str = "PEM with BEGIN PRIVATE KEY, without a password";
const REVOKED: &str = "PEM with BEGIN X509 CRL";

/// The name, and the file if it is one.
impl fmt::Display for PemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            PemOrigin::Bytes(_) => f.write_str(&self.name),
            PemOrigin::File(path) => write!(f, "{} {}", self.name, path.display()),
        }
    }
}

/// Without the text, which may be a key.
impl fmt::Debug for PemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The things that are in `pem` instead of what was looked for.
fn contents(pem: &[u8]) -> String {
    if pem.iter().all(u8::is_ascii_whitespace) {
        return "nothing".to_owned();
    }
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).filter_map(Result::ok);
    match sections.map(|(kind, _)| kind).next() {
        Some(SectionKind::Certificate) => "a certificate".to_owned(),
        Some(SectionKind::RsaPrivateKey | SectionKind::PrivateKey | SectionKind::EcPrivateKey) => {
            "a private key".to_owned()
        }
        Some(SectionKind::PublicKey) => "a public key".to_owned(),
        Some(SectionKind::Csr) => "a request for a certificate".to_owned(),
        Some(SectionKind::Crl) => "a list of revoked certificates".to_owned(),
        _ => match begins(pem) {
            Some(label) => format!("BEGIN {label}"),
            None => "no PEM".to_owned(),
        },
    }
}

/// The label of the first section, whatever it is.
fn begins(pem: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(pem);
    let after = text.split_once("-----BEGIN ")?.1;
    Some(after.split_once("-----")?.0.chars().take(64).collect())
}
