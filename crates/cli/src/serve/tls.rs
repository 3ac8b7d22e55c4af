//! The flags of TLS: on the ports of a server, and towards the node above.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use lessor_client::Tls;
use lessor_server::shell::{TlsClients, TlsOptions};
use tracing::warn;

use super::address::address;
use crate::tls::age;

/// The certificates of a server, and whom it believes.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(super) struct TlsFlags {
    /// A file with the certificate that this server shows, and what leads from it to its authority, PEM: --listen and --http
    /// speak TLS
    #[arg(long, env = "LESSOR_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// A file with its private key, PEM
    #[arg(long, env = "LESSOR_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A file with the authorities that certificates of clients may be of, PEM; without it nobody is asked for one
    #[arg(long, env = "LESSOR_TLS_CLIENT_CA", value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Whether clients must show a certificate. At --http they need not: without one there are only /healthz and /readyz
    #[arg(
        long,
        env = "LESSOR_TLS_CLIENTS",
        value_name = "WHICH",
        default_value = "require",
        requires = "tls_client_ca"
    )]
    tls_clients: WhichClients,
    /// A file with the certificates that those authorities have revoked, PEM; then there must be a list of each of them
    #[arg(long, env = "LESSOR_TLS_CRL", value_name = "FILE", requires = "tls_client_ca")]
    tls_crl: Option<PathBuf>,
    /// The age that no connection reaches, so that certificates and authorities that were replaced reach everybody
    #[arg(long, env = "LESSOR_TLS_MAX_AGE", value_name = "DURATION", default_value = "12h", value_parser = age, requires = "tls_cert")]
    tls_max_age: Duration,
    /// Where to serve the same as at --listen in plain besides, for clients that speak no TLS, such as Doorman's. An address
    /// of this machine, unless --insecure
    #[arg(long, env = "LESSOR_LISTEN_PLAIN", value_name = "HOST:PORT", value_parser = address, requires = "tls_cert")]
    listen_plain: Option<SocketAddr>,
    /// Plain ports at addresses that other machines reach are meant: whoever is on the way reads and changes what is said
    #[arg(long, env = "LESSOR_INSECURE")]
    insecure: bool,
    /// A file with the authorities that the certificates of --parent may be of, PEM; with it the node above is spoken to over
    /// TLS
    #[arg(long, env = "LESSOR_PARENT_CA", value_name = "FILE", requires = "parent")]
    parent_ca: Option<PathBuf>,
    /// A file with the certificate that this node shows to the one above, PEM
    #[arg(long, env = "LESSOR_PARENT_CERT", value_name = "FILE", requires_all = ["parent_ca", "parent_key"])]
    parent_cert: Option<PathBuf>,
    /// A file with its private key, PEM
    #[arg(long, env = "LESSOR_PARENT_KEY", value_name = "FILE", requires = "parent_cert")]
    parent_key: Option<PathBuf>,
    /// The identity that servers of the node above must have, in place of the names that they are called by
    #[arg(long, env = "LESSOR_PARENT_IDENTITY", value_name = "GLOB", requires = "parent_ca")]
    parent_identity: Option<String>,
    /// A file with the authorities that certificates of the other tasks of this node may be of, PEM: with it a task that does not
    /// lead shows the pages of the one that does, and asks what its clock shows, and shows it --tls-cert. Without TLS it is not
    /// needed
    #[arg(long, env = "LESSOR_PEER_CA", value_name = "FILE", requires = "tls_cert")]
    peer_ca: Option<PathBuf>,
    /// The identity that other tasks of this node must have, in place of the names that they are called by
    #[arg(long, env = "LESSOR_PEER_IDENTITY", value_name = "GLOB", requires = "peer_ca")]
    peer_identity: Option<String>,
}

/// Clients that are let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WhichClients {
    /// Only those that show a certificate
    Require,
    /// Also those that show none, as `anonymous`
    Ask,
}

// === impl TlsFlags ===

impl TlsFlags {
    /// The TLS of the own ports.
    pub(super) fn options(&self) -> Option<TlsOptions> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return None };
        let clients = self.tls_client_ca.as_ref().map(|ca| TlsClients {
            ca: ca.clone(),
            revoked: self.tls_crl.clone(),
            required: self.tls_clients == WhichClients::Require,
        });
        Some(TlsOptions { clients, max_age: self.tls_max_age, ..TlsOptions::new(certificate, key) })
    }

    /// The address to serve in plain at besides.
    pub(super) fn plain(&self) -> anyhow::Result<Option<SocketAddr>> {
        match self.listen_plain {
            Some(address) if !address.ip().is_loopback() && !self.insecure => {
                bail!(
                    "--listen-plain {address}: other machines reach it; wanted an address of this machine, or --insecure"
                )
            }
            address => Ok(address),
        }
    }

    /// Whether plain ports that other machines reach are meant.
    pub(super) fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// The TLS towards the node above.
    pub(super) fn parent(&self) -> Option<Tls> {
        let mut tls = Tls::ca_file(self.parent_ca.as_ref()?).named("--parent-", "identity");
        if let (Some(certificate), Some(key)) = (&self.parent_cert, &self.parent_key) {
            tls = tls.identity_files(certificate, key);
        }
        Some(match &self.parent_identity {
            Some(glob) => tls.server(glob),
            None => tls,
        })
    }

    /// The TLS towards the other tasks of the node.
    pub(super) fn peers(&self) -> Option<Tls> {
        let mut tls = Tls::ca_file(self.peer_ca.as_ref()?).named("--peer-", "identity");
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            tls = tls.identity_files(certificate, key);
        }
        Some(match &self.peer_identity {
            Some(glob) => tls.server(glob),
            None => tls,
        })
    }

    /// Says where others can hear and speak as they like.
    pub(super) fn warn(&self, listen: SocketAddr) {
        if self.tls_cert.is_none() && !self.insecure && !listen.ip().is_loopback() {
            warn!(%listen, "plain, and other machines reach it: whoever is on the way reads and changes what is said; wanted \
                   --tls-cert and --tls-key, or --insecure if that is meant");
        }
    }
}
