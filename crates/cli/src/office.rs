//! The place at which operators write down what servers are to go by: the etcd of the templates, reached straight or through the
//! admin port of a task that follows it; or the leader behind such a port, where the templates are in a file.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use lessor_server::revision::{RevisionAuthor, RevisionKeys};
use lessor_server::shell::etcd::{EtcdOptions, RevisionStore};

use crate::admin::AdminPort;
use crate::serve::tasks::SecretFiles;
use crate::tls::ClientTlsFlags;

/// The way there.
#[derive(Clone, Debug, Args)]
pub(crate) struct OfficeFlags {
    /// The admin port of a server: it looks who calls and what that may do, and writes it down; without it, straight to etcd
    #[arg(long, env = "LESSOR_ADMIN", value_name = "HOST:PORT|unix:PATH")]
    admin: Option<String>,
    #[command(flatten)]
    tls: ClientTlsFlags,
    #[command(flatten)]
    store: StoreFlags,
}

/// The etcd that holds the templates, and where in it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Etcd")]
pub(crate) struct StoreFlags {
    /// Where the templates stand in it, as servers are told
    #[arg(long, env = "LESSOR_CONFIG", value_name = "etcd:PREFIX")]
    config: Option<String>,
    /// The members of the etcd that holds the templates
    #[arg(long, env = "LESSOR_ETCD", value_name = "URL,...", value_delimiter = ',')]
    etcd: Vec<String>,
    #[command(flatten)]
    secrets: EtcdSecretFlags,
}

/// The secrets that are shown to etcd, and by which it is known.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Etcd")]
pub(crate) struct EtcdSecretFlags {
    /// A file with the certificates of the authorities that members at https:// are known by, PEM
    #[arg(long, env = "LESSOR_ETCD_CA", value_name = "FILE")]
    etcd_ca: Option<PathBuf>,
    /// A file with the certificate that is shown to etcd, PEM
    #[arg(long, env = "LESSOR_ETCD_CERT", value_name = "FILE", requires_all = ["etcd_ca", "etcd_key"])]
    etcd_cert: Option<PathBuf>,
    /// A file with its private key, PEM
    #[arg(long, env = "LESSOR_ETCD_KEY", value_name = "FILE", requires = "etcd_cert")]
    etcd_key: Option<PathBuf>,
    /// As whom etcd is spoken to, where it asks for passwords
    #[arg(long, env = "LESSOR_ETCD_USER", value_name = "NAME", requires = "etcd_password_file")]
    etcd_user: Option<String>,
    /// A file with that user's password, and nothing else in it
    #[arg(long, env = "LESSOR_ETCD_PASSWORD_FILE", value_name = "FILE", requires = "etcd_user")]
    etcd_password_file: Option<PathBuf>,
}

/// The place.
pub(crate) enum Office {
    /// Behind this port.
    Admin(Box<AdminPort>),
    /// At this etcd.
    Etcd(RevisionStore),
}

// === impl OfficeFlags ===

impl OfficeFlags {
    pub(crate) fn open(&self) -> anyhow::Result<Office> {
        match &self.admin {
            Some(admin) => Ok(Office::Admin(Box::new(AdminPort::new(admin, &self.tls)?))),
            None => self.store.open().map(Office::Etcd),
        }
    }

    /// The settings by which servers are spoken to.
    pub(crate) fn tls(&self) -> &ClientTlsFlags {
        &self.tls
    }

    /// The author where nobody looks whether it is so.
    pub(crate) fn author(&self) -> RevisionAuthor {
        self.store.author()
    }
}

// === impl EtcdSecretFlags ===

impl EtcdSecretFlags {
    /// The members at these URLs, with the secrets.
    pub(crate) fn options(&self, members: &[String]) -> anyhow::Result<EtcdOptions> {
        let files = SecretFiles {
            ca: self.etcd_ca.clone(),
            identity: self.etcd_cert.clone().zip(self.etcd_key.clone()),
            user: self.etcd_user.clone().zip(self.etcd_password_file.clone()),
        };
        files.options(members)
    }

    /// Whether etcd is shown who asks.
    pub(crate) fn show_somebody(&self) -> bool {
        self.etcd_user.is_some() || self.etcd_cert.is_some()
    }
}

// === impl StoreFlags ===

impl StoreFlags {
    pub(crate) fn open(&self) -> anyhow::Result<RevisionStore> {
        let wanted = "wanted --admin HOST:PORT|unix:PATH, or --config etcd:PREFIX and --etcd URL,...";
        let config = self.config.as_deref().context(wanted)?;
        let prefix = config.strip_prefix("etcd:");
        let prefix =
            prefix.with_context(|| format!("--config {config}: wanted etcd:PREFIX, as servers are told"))?;
        let keys = RevisionKeys::new(prefix).with_context(|| format!("--config {config}"))?;
        if self.etcd.is_empty() {
            anyhow::bail!("--config {config}: at which etcd? wanted --etcd URL,...");
        }
        Ok(RevisionStore::new(self.secrets.options(&self.etcd)?, keys)?)
    }

    /// The author, as far as can be told: nobody looks whether it is so.
    pub(crate) fn author(&self) -> RevisionAuthor {
        let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let (name, host) = (name.as_deref().unwrap_or("unknown"), host.trim());
        let how = match &self.secrets.etcd_user {
            Some(user) => format!("straight to etcd, as its user {user}"),
            None => "straight to etcd".to_owned(),
        };
        RevisionAuthor { name: format!("{name}@{host}"), verified: false, how }
    }
}
