//! The flags by which a command that is a client of a server speaks TLS, and what those of ports have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lessor_client::{BearerToken, Tls};

/// The authorities that a command believes, and the certificate that it shows.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct ClientTlsFlags {
    /// A file with the authorities that the server's certificate may be of, PEM; with it everything goes over TLS
    #[arg(long, env = "LESSOR_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A file with the certificate that this client shows, PEM
    #[arg(long, env = "LESSOR_CERT", value_name = "FILE", requires_all = ["ca", "key"])]
    cert: Option<PathBuf>,
    /// A file with its private key, PEM
    #[arg(long, env = "LESSOR_KEY", value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The identity that the server must have, in place of the name that it is called by: the URI in its certificate, or else
    /// the first DNS name
    #[arg(long, env = "LESSOR_SERVER_IDENTITY", value_name = "GLOB", requires = "ca")]
    server_identity: Option<String>,
    /// A file with the token by which the server knows who this is, as `lessor token new` prints it
    #[arg(long, env = "LESSOR_TOKEN_FILE", value_name = "FILE", help_heading = None)]
    token_file: Option<PathBuf>,
}

// === impl ClientTlsFlags ===

impl ClientTlsFlags {
    /// The token, if there is one.
    pub(crate) fn token(&self) -> Option<BearerToken> {
        self.token_file.as_ref().map(BearerToken::file)
    }

    /// The settings, if there are any.
    pub(crate) fn settings(&self) -> Option<Tls> {
        let mut tls = Tls::ca_file(self.ca.as_ref()?).named("--", "server-identity");
        if let (Some(certificate), Some(key)) = (&self.cert, &self.key) {
            tls = tls.identity_files(certificate, key);
        }
        Some(match &self.server_identity {
            Some(glob) => tls.server(glob),
            None => tls,
        })
    }
}

/// The age that a connection may have. Below a second nothing would ever be answered.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let age = humantime::parse_duration(text).map_err(|fault| fault.to_string())?;
    match age >= Duration::from_secs(1) {
        true => Ok(age),
        false => Err("wanted at least 1s".to_owned()),
    }
}
