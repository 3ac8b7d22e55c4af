//! The commands of operators about the templates in etcd: what is pushed, what was, and how it is taken back.

mod change;
mod delta;
pub(crate) mod files;
mod history;
mod place;
mod promote;
mod proposal;
mod push;
mod upkeep;

use anyhow::Context;
use lessor_server::revision::Revision;
use lessor_server::shell::etcd::RevisionStore;

pub(crate) use self::change::{Rollback, Set};
pub(crate) use self::delta::Diff;
pub(crate) use self::history::{Export, History, ShowRevision};
pub(crate) use self::promote::Promote;
pub(crate) use self::push::Push;
pub(crate) use self::upkeep::{Prune, PushFreezing};
use crate::office::StoreFlags;

/// The revision of that number.
async fn revision(store: &RevisionStore, number: u64) -> anyhow::Result<Revision> {
    let found = store.revision(number).await?;
    let (found, _) = found.with_context(|| {
        format!("revision {number} is not there: wanted one that `lessor history` lists; older ones may have been pruned")
    })?;
    Ok(found)
}

/// The first line of a message.
fn headline(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
