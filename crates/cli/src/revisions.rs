//! The commands of operators about the templates in etcd: what is pushed, what was, and how it is taken back.

mod change;
mod delta;
mod files;
mod history;
mod proposal;
mod push;
mod upkeep;

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use lessor_client::internals::clock;
use lessor_server::revision::{Revision, RevisionAuthor, RevisionKeys};
use lessor_server::shell::etcd::{RevisionStore, StoredHead};

pub(crate) use self::change::{Rollback, Set};
pub(crate) use self::delta::Diff;
pub(crate) use self::history::{Export, History, ShowRevision};
pub(crate) use self::push::Push;
pub(crate) use self::upkeep::{Prune, PushFreezing};
use crate::serve::tasks::SecretFiles;

/// The etcd that holds the templates, and where in it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Etcd")]
pub(crate) struct StoreFlags {
    /// Where the templates stand in it, as servers are told
    #[arg(long, env = "LESSOR_CONFIG", value_name = "etcd:PREFIX", value_parser = prefix)]
    config: RevisionKeys,
    /// The members of the etcd that holds the templates
    #[arg(long, env = "LESSOR_ETCD", value_name = "URL,...", value_delimiter = ',', required = true)]
    etcd: Vec<String>,
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

fn prefix(text: &str) -> Result<RevisionKeys, String> {
    let prefix = text.strip_prefix("etcd:").ok_or("wanted etcd:PREFIX, as servers are told")?;
    RevisionKeys::new(prefix).map_err(|fault| fault.to_string())
}

// === impl StoreFlags ===

impl StoreFlags {
    fn open(&self) -> anyhow::Result<RevisionStore> {
        let files = SecretFiles {
            ca: self.etcd_ca.clone(),
            identity: self.etcd_cert.clone().zip(self.etcd_key.clone()),
            user: self.etcd_user.clone().zip(self.etcd_password_file.clone()),
        };
        Ok(RevisionStore::new(files.options(&self.etcd)?, self.config.clone())?)
    }

    /// The author, as far as can be told: nobody looks whether it is so.
    fn author(&self) -> RevisionAuthor {
        let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let (name, host) = (name.as_deref().unwrap_or("unknown"), host.trim());
        let how = match &self.etcd_user {
            Some(user) => format!("straight to etcd, as its user {user}"),
            None => "straight to etcd".to_owned(),
        };
        RevisionAuthor { name: format!("{name}@{host}"), verified: false, how }
    }
}

/// The date, as it is written down.
fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + clock::wall().since_epoch).to_string()
}

/// The revision of that number.
async fn revision(store: &RevisionStore, number: u64) -> anyhow::Result<Revision> {
    let found = store.revision(number).await?;
    let (found, _) = found.with_context(|| {
        format!("revision {number} is not there: wanted one that `lessor history` lists; older ones may have been pruned")
    })?;
    Ok(found)
}

/// The head, and the revision that it names.
async fn newest(store: &RevisionStore) -> anyhow::Result<(StoredHead, Option<Revision>)> {
    let stored = store.head().await?;
    let Some(head) = stored.head else { return Ok((stored, None)) };
    let found = store.revision(head.number).await?;
    let found =
        found.with_context(|| format!("revision {} is not there, which the head names", head.number))?;
    Ok((stored, Some(found.0)))
}

/// The first line of a message.
fn headline(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
