//! The flags of TLS at doors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use lessor_doors::shell::{DoorTls, DoorTlsOptions, Doors};
use tracing::{error, info};

use super::peer::PeerTls;
use crate::tls::age;

/// The certificate that doors show, and whom they believe.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct DoorTlsFlags {
    /// A file with the certificate that doors show, and what leads from it to its authority, PEM: --rls and --http speak TLS at
    /// ports. --pool and sockets of the file system are plain
    #[arg(long, env = "LESSOR_DOORS_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// A file with its private key, PEM
    #[arg(long, env = "LESSOR_DOORS_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A file with the authorities that certificates of proxies may be of, PEM: without one of those nothing is answered but
    /// /healthz, /readyz and /healthcheck, and with it a proxy is trusted wherever it is
    #[arg(long, env = "LESSOR_DOORS_TLS_CLIENT_CA", value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// A file with the certificates that those authorities have revoked, PEM; then there must be a list of each of them
    #[arg(long, env = "LESSOR_DOORS_TLS_CRL", value_name = "FILE", requires = "tls_client_ca")]
    tls_crl: Option<PathBuf>,
    /// The age after which a connection is ended in order, so that certificates that were replaced reach everybody
    #[arg(long, env = "LESSOR_DOORS_TLS_MAX_AGE", value_name = "DURATION", default_value = "12h", value_parser = age, requires = "tls_cert")]
    tls_max_age: Duration,
    /// The ports for HTTP are plain all the same.
    #[arg(skip)]
    is_http_plain: bool,
}

// === impl DoorTlsFlags ===

impl DoorTlsFlags {
    /// Takes what a service for gRPC was told, as far as flags do not say otherwise.
    pub(super) fn take(&mut self, taken: &PeerTls) {
        if self.tls_cert.is_none() {
            (self.tls_cert, self.tls_key) = (Some(taken.certificate.clone()), Some(taken.key.clone()));
            self.tls_client_ca.clone_from(&taken.client_ca);
            self.is_http_plain = true;
        }
    }

    /// Whether ports for gRPC speak TLS, and those for HTTP.
    pub(super) fn are_there(&self) -> [bool; 2] {
        let is_there = self.tls_cert.is_some();
        [is_there, is_there && !self.is_http_plain]
    }

    /// Reads the files, if there are any.
    pub(super) fn load(&self) -> anyhow::Result<Option<Arc<DoorTls>>> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let options = DoorTlsOptions {
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: self.tls_client_ca.clone(),
            revoked: self.tls_crl.clone(),
            max_age: self.tls_max_age,
        };
        let tls = DoorTls::load(&options).context("TLS of doors")?;
        Ok(Some(Arc::new(tls)))
    }
}

/// Reads the files again, and puts in force what has changed and can be used.
pub(super) fn refresh(tls: &DoorTls, doors: &Doors) {
    match tls.refresh(doors) {
        Ok(false) => {}
        Ok(true) => info!("certificates in force"),
        Err(fault) => error!(%fault, "certificates cannot be used: the earlier ones stay in force"),
    }
}
