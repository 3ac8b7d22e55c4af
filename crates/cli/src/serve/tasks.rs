//! The options of a server that is one of several tasks: how they find their leader, and what the next one believes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use lessor_server::node::Claims;
use lessor_server::shell::ElectionOptions;
use lessor_server::shell::etcd::{EtcdOptions, EtcdSecrets, EtcdTls, SecretSource};
use lessor_server::shell::source;
use lessor_server::token::TokenKeys;
use tracing::warn;

/// The flags by which several tasks of one node find their leader.
#[derive(Debug, Args)]
#[command(next_help_heading = "Several tasks of a node")]
pub(super) struct Tasks {
    /// The members of the etcd that elects one of the tasks of this node; without it this task is the only one
    #[arg(long, env = "LESSOR_ETCD", value_name = "URL,...", value_delimiter = ',')]
    pub(super) etcd: Vec<String>,
    /// With what the keys in etcd begin
    #[arg(
        long,
        env = "LESSOR_ETCD_PREFIX",
        value_name = "PREFIX",
        default_value = "lessor",
        requires = "etcd"
    )]
    pub(super) etcd_prefix: String,
    /// A file with the certificates of the authorities that members at https:// are known by, PEM
    #[arg(long, env = "LESSOR_ETCD_CA", value_name = "FILE", requires = "etcd")]
    etcd_ca: Option<PathBuf>,
    /// A file with the certificate that this task shows to etcd, PEM
    #[arg(long, env = "LESSOR_ETCD_CERT", value_name = "FILE", requires_all = ["etcd_ca", "etcd_key"])]
    etcd_cert: Option<PathBuf>,
    /// A file with its private key, PEM
    #[arg(long, env = "LESSOR_ETCD_KEY", value_name = "FILE", requires = "etcd_cert")]
    etcd_key: Option<PathBuf>,
    /// As whom this task speaks to an etcd that asks for passwords
    #[arg(long, env = "LESSOR_ETCD_USER", value_name = "NAME", requires_all = ["etcd", "etcd_password_file"])]
    etcd_user: Option<String>,
    /// A file with that user's password, and nothing else in it
    #[arg(long, env = "LESSOR_ETCD_PASSWORD_FILE", value_name = "FILE", requires = "etcd_user")]
    etcd_password_file: Option<PathBuf>,
    /// The time for which a leader that has vanished is waited for
    #[arg(long, env = "LESSOR_TTL", value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration, requires = "etcd")]
    ttl: Duration,
    /// The time for which a leader that is cut off from etcd goes on; less than the former, as clocks differ
    #[arg(long, env = "LESSOR_AUTHORITY", value_name = "DURATION", default_value = "4s", value_parser = humantime::parse_duration, requires = "etcd")]
    authority: Duration,
    /// The interval at which a leader tells etcd that it lives
    #[arg(long, env = "LESSOR_KEEP_ALIVE", value_name = "DURATION", default_value = "1s", value_parser = humantime::parse_duration, requires = "etcd")]
    keep_alive: Duration,
    /// A file with the secret of all tasks of this node, 64 hexadecimal digits; the one before it, if it was changed, on
    /// the next line. Holders prove with it to a new leader what they have. With --state-dir the secret of that server
    #[arg(long, env = "LESSOR_TOKEN_KEY", value_name = "FILE", requires = "record")]
    pub(super) token_key: Option<PathBuf>,
    /// When others get what holders give up of what they show to a new leader
    #[arg(long, env = "LESSOR_CLAIMS", value_name = "WHEN", default_value = "at-once", requires = "record")]
    claims: WhenClaimed,
}

/// The files with what is shown to etcd, and by whom it is known. They are read again while the server runs.
#[derive(Debug)]
pub(crate) struct SecretFiles {
    pub(crate) ca: Option<PathBuf>,
    /// The certificate and the key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// The name of a user, and the file with the password.
    pub(crate) user: Option<(String, PathBuf)>,
}

/// When others get what holders give up of what they show to a new leader.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum WhenClaimed {
    /// At once. Who shows an old token again makes what others hold look free, for a lease length at most
    AtOnce,
    /// When the last lease of earlier leaders has ended: whatever holders say, nobody honest is ever above the capacity
    Deferred,
}

// === impl Tasks ===

impl Tasks {
    /// Whether an etcd elects one of several tasks.
    pub(super) fn are_elected(&self) -> bool {
        !self.etcd.is_empty()
    }

    /// The options of the election of the leader; none where this task is the only one.
    pub(super) fn election(&self) -> anyhow::Result<Option<ElectionOptions>> {
        let Some(etcd) = self.etcd_options()? else { return Ok(None) };
        Ok(Some(ElectionOptions {
            prefix: self.etcd_prefix.clone(),
            ttl: self.ttl,
            authority: self.authority,
            keep_alive: self.keep_alive,
            ..ElectionOptions::new(etcd)
        }))
    }

    /// The etcd that elects, if one does.
    pub(super) fn etcd_options(&self) -> anyhow::Result<Option<EtcdOptions>> {
        if self.etcd.is_empty() {
            return Ok(None);
        }
        let files = SecretFiles {
            ca: self.etcd_ca.clone(),
            identity: self.etcd_cert.clone().zip(self.etcd_key.clone()),
            user: self.etcd_user.clone().zip(self.etcd_password_file.clone()),
        };
        files.options(&self.etcd).map(Some)
    }

    /// With what tokens are sealed, if with anything.
    pub(super) fn keys(&self) -> anyhow::Result<Option<TokenKeys>> {
        let Some(path) = &self.token_key else {
            if !self.etcd.is_empty() {
                warn!(
                    "without --token-key a new leader believes holders what they say they have, up to what was out"
                );
            }
            return Ok(None);
        };
        Ok(Some(source::load_document(path)?))
    }

    /// The rule for capacity that claimants give up.
    pub(super) fn claims(&self) -> Claims {
        match self.claims {
            WhenClaimed::AtOnce => Claims::Freed,
            WhenClaimed::Deferred => Claims::Deferred,
        }
    }
}

// === impl SecretFiles ===

impl SecretFiles {
    /// Those members, with what the files hold and will hold.
    pub(crate) fn options(self, members: &[String]) -> anyhow::Result<EtcdOptions> {
        let secrets = self.read()?;
        let source = SecretSource::new(move || self.read().map_err(|error| format!("{error:#}")));
        Ok(EtcdOptions { secrets, source: Some(source), ..EtcdOptions::new(members.iter().cloned()) })
    }

    fn read(&self) -> anyhow::Result<EtcdSecrets> {
        Ok(EtcdSecrets { user: self.user()?, tls: self.tls()? })
    }

    fn user(&self) -> anyhow::Result<Option<(String, String)>> {
        let Some((name, path)) = &self.user else { return Ok(None) };
        let text = read(path)?;
        // As editors and `echo` leave it.
        let password = text.strip_suffix('\n').map_or(text.as_str(), |text| text.trim_end_matches('\r'));
        match password.lines().count() {
            0 => bail!("{}: no password in it", path.display()),
            1 => Ok(Some((name.clone(), password.to_owned()))),
            lines => bail!("{}: {lines} lines, wanted a password and nothing else", path.display()),
        }
    }

    fn tls(&self) -> anyhow::Result<Option<EtcdTls>> {
        let Some(ca) = &self.ca else { return Ok(None) };
        let tls = EtcdTls::new(read(ca)?.as_bytes()).with_context(|| ca.display().to_string())?;
        let Some((certificate, key)) = &self.identity else { return Ok(Some(tls)) };
        let tls = tls.with_identity(read(certificate)?.as_bytes(), read(key)?.as_bytes());
        Ok(Some(tls.with_context(|| format!("{} and {}", certificate.display(), key.display()))?))
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
