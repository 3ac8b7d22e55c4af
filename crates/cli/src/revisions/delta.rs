//! `lessor diff`: what two revisions, or a revision and a file, have different, by template and field or by line.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use lessor_server::shell::source::{Delta, DocumentText};

use super::files::ForNodes;
use super::{StoreFlags, revision};
use crate::exit::{self, Exit};

/// Shows what a revision has different from another one, from the newest, or from a file. Exit 0, also where there are changes
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The number of a revision
    from: u64,
    /// The number of another one, or a file with templates of all nodes [default: the newest revision]
    to: Option<String>,
    /// Line by line
    #[arg(long)]
    text: bool,
    /// Exit 2 where there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    #[command(flatten)]
    store: StoreFlags,
}

// === impl Diff ===

impl Diff {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store = self.store.open()?;
        let from = store.texts_of(&revision(&store, self.from).await?).await?;
        let to = match &self.to {
            None => {
                let (_, newest) = store.newest().await?;
                store.texts_of(&newest.context("nothing has been pushed yet")?).await?
            }
            Some(to) => match to.parse() {
                Ok(number) => store.texts_of(&revision(&store, number).await?).await?,
                Err(_) => vec![ForNodes::all(PathBuf::from(to)).read()?],
            },
        };
        if self.text {
            print!("{}", by_line(&from, &to));
        } else {
            print!("{}", Delta::of(&from, &to));
        }
        match self.detailed_exitcode && from != to {
            true => Err(Exit::silent(exit::CHANGES)),
            false => Ok(()),
        }
    }
}

/// The documents of both sides, by the nodes that they are for.
fn pairs<'a>(before: &'a [DocumentText], after: &'a [DocumentText]) -> Vec<(&'a str, &'a str, &'a str)> {
    let nodes: BTreeSet<&str> =
        before.iter().chain(after).map(|(document, _)| document.nodes.as_str()).collect();
    let text = |texts: &'a [DocumentText], nodes: &str| {
        let found = texts.iter().find(|(document, _)| document.nodes == nodes);
        found.map_or("", |(_, text)| text.as_str())
    };
    nodes.into_iter().map(|nodes| (nodes, text(before, nodes), text(after, nodes))).collect()
}

/// The lines that differ, with those that do not between them left out.
fn by_line(before: &[DocumentText], after: &[DocumentText]) -> String {
    let mut shown = String::new();
    for (nodes, before, after) in pairs(before, after) {
        if before != after {
            let diff = similar::TextDiff::from_lines(before, after);
            let mut unified = diff.unified_diff();
            let header = format!("for {nodes}");
            shown.push_str(&unified.header(&header, &header).to_string());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use lessor_server::revision::RevisionDocument;

    use super::*;

    #[test]
    fn lines_that_differ_are_shown_with_those_around() {
        let text = |text: &str| vec![(RevisionDocument::new("*", "x.yaml", text), text.to_owned())];
        let before = "resources:\n- {identifier_glob: b, capacity: 2}\n";
        let lines = by_line(&text(before), &text(&format!("# ours\n{before}")));
        assert!(lines.contains("\n+# ours\n resources:\n"), "{lines}");
    }
}
