//! `lessor history`, `show` and `export`: the revisions that there are, and what they say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use comfy_table::Table;
use lessor_server::revision::{Digest, Revision, TaskReport};
use lessor_server::shell::etcd::RevisionStore;
use serde_json::json;

use super::files::write_new;
use super::{StoreFlags, headline, revision};

/// Lists the revisions of the templates, the newest first, and how many tasks have each in force
#[derive(Debug, Args)]
pub(crate) struct History {
    /// The number of revisions to list
    #[arg(short, value_name = "N", default_value_t = 20)]
    number: usize,
    /// As they stand there, in JSON
    #[arg(long)]
    json: bool,
    /// Check that each names the digest of the one before it, and that all documents are what they were. Exit 1: that is not so
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    store: StoreFlags,
}

/// Prints the documents of a revision as they were
#[derive(Debug, Args)]
pub(crate) struct ShowRevision {
    /// The number
    number: u64,
    /// The one that this node follows, and nothing else
    #[arg(long = "for", value_name = "NODE")]
    node: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
}

/// Writes the documents of a revision into files, and manifest.json with the record of the revision
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The number
    number: u64,
    /// The directory, which is made if it is not there; no file in it is overwritten
    directory: PathBuf,
    #[command(flatten)]
    store: StoreFlags,
}

type Found = (Revision, Digest);

// === impl History ===

impl History {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store = self.store.open()?;
        let all = store.revisions(if self.verify { usize::MAX } else { self.number }).await?;
        let (revisions, faults): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        let revisions: Vec<Found> = revisions.into_iter().filter_map(Result::ok).collect();
        if self.verify {
            if let Some(fault) = faults.into_iter().find_map(Result::err) {
                return Err(fault.into());
            }
            return verify(&store, &revisions).await;
        }
        faults.into_iter().filter_map(Result::err).for_each(|fault| eprintln!("note: {fault}"));
        let (tasks, unreadable) = store.tasks().await?;
        unreadable.iter().for_each(|fault| eprintln!("note: {fault}"));
        if self.json {
            println!("{}", as_json(&revisions, &tasks));
            return Ok(());
        }
        match revisions.is_empty() {
            true => println!("nothing has been pushed yet"),
            false => println!("{}", table(&revisions, &tasks)),
        }
        Ok(())
    }
}

fn in_force(tasks: &[TaskReport], number: u64) -> usize {
    tasks.iter().filter(|task| task.in_force == number).count()
}

fn as_json(revisions: &[Found], tasks: &[TaskReport]) -> serde_json::Value {
    let revision = |(revision, digest): &Found| json!({"revision": revision, "digest": digest, "in_force": in_force(tasks, revision.number), "tasks": tasks.len()});
    revisions.iter().map(revision).collect()
}

fn table(revisions: &[Found], tasks: &[TaskReport]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["revision", "at", "by", "in force at", "message"]);
    for (revision, _) in revisions {
        let unverified = if revision.by.verified { "" } else { " (unverified)" };
        let there = match in_force(tasks, revision.number) {
            0 => String::new(),
            there => format!("{there} of {} tasks", tasks.len()),
        };
        let ticket = revision.ticket.as_ref().map(|ticket| format!(" [{ticket}]")).unwrap_or_default();
        table.add_row([
            revision.number.to_string(),
            revision.at.clone(),
            format!("{}{unverified}", revision.by.name),
            there,
            format!("{}{ticket}", headline(&revision.message)),
        ]);
    }
    table
}

/// Goes from the head down the chain, and through all documents.
async fn verify(store: &RevisionStore, revisions: &[Found]) -> anyhow::Result<()> {
    let (stored, _) = store.newest().await?;
    let Some(head) = stored.head else { bail!("nothing has been pushed yet") };
    let by_number: BTreeMap<u64, &Found> = revisions.iter().map(|found| (found.0.number, found)).collect();
    let (mut next, mut count) = (Some((head.number, head.digest)), 0);
    while let Some((number, digest)) = next {
        // The oldest ones may have been pruned.
        let Some((revision, found)) = by_number.get(&number) else { break };
        if *found != digest {
            bail!(
                "revision {number} has {found}; wanted {digest}, as what came after it says: it was changed"
            );
        }
        for document in &revision.documents {
            store.document(document).await.with_context(|| format!("revision {number}"))?;
        }
        count += 1;
        next = revision.parent_digest.map(|digest| (revision.parent, digest));
    }
    println!("{count} revisions are as they were made, from {} down", head.number);
    Ok(())
}

// === impl ShowRevision ===

impl ShowRevision {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store = self.store.open()?;
        let revision = revision(&store, self.number).await?;
        if let Some(node) = &self.node {
            let document = revision.document_for(node);
            let document = document
                .with_context(|| format!("revision {} has no document for node {node:?}", self.number))?;
            print!("{}", store.document(document).await?);
            return Ok(());
        }
        for document in &revision.documents {
            println!("# for {}: {}", document.nodes, document.name);
            print!("{}", store.document(document).await?);
        }
        Ok(())
    }
}

// === impl Export ===

impl Export {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store = self.store.open()?;
        let revision = revision(&store, self.number).await?;
        let directory = &self.directory;
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let mut names = BTreeMap::<String, usize>::new();
        let mut files = Vec::new();
        for document in &revision.documents {
            // The name is that of somebody else's file.
            let name: String = document
                .name
                .chars()
                .map(|letter| if letter == '/' || letter.is_control() { '_' } else { letter })
                .collect();
            let name = if name.is_empty() || name.starts_with('.') { format!("_{name}") } else { name };
            let count = names.entry(name.clone()).or_default();
            *count += 1;
            let name = if *count > 1 { format!("{count}-{name}") } else { name };
            write_new(&directory.join(&name), &store.document(document).await?)?;
            println!("{}", directory.join(&name).display());
            files.push(json!({"for": document.nodes, "file": name}));
        }
        let manifest = json!({"revision": revision, "files": files});
        write_new(&directory.join("manifest.json"), &format!("{manifest:#}\n"))
    }
}
