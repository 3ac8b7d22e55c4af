//! The commands of operators about the templates in etcd: what is pushed, what was, and how it is taken back.

mod change;
mod delta;
pub(crate) mod files;
mod history;
mod proposal;
mod push;
mod upkeep;

use std::time::SystemTime;

use anyhow::Context;
use lessor_client::internals::clock;
use lessor_server::revision::Revision;
use lessor_server::shell::etcd::{RevisionStore, StoredHead};

pub(crate) use self::change::{Rollback, Set};
pub(crate) use self::delta::Diff;
pub(crate) use self::history::{Export, History, ShowRevision};
pub(crate) use self::push::Push;
pub(crate) use self::upkeep::{Prune, PushFreezing};
use crate::office::StoreFlags;

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
