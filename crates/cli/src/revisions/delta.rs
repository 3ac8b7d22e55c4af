//! `lessor diff`: what two revisions, or a revision and a file, have different, by template and field or by line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use lessor_server::revision::Revision;
use lessor_server::shell::etcd::RevisionStore;
use lessor_server::shell::source::{self, OutlinedField};

use super::files::{ForNodes, Text};
use super::{StoreFlags, newest, revision};
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

/// The differences of some documents, by the nodes that they are for.
pub(super) struct Delta {
    documents: Vec<(String, Vec<Change>)>,
}

/// A template and a field of it.
type Place = (String, String);

/// A difference.
struct Change {
    place: String,
    before: Option<String>,
    after: Option<String>,
}

// === impl Diff ===

impl Diff {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store = self.store.open()?;
        let from = texts_of(&store, &revision(&store, self.from).await?).await?;
        let to = match &self.to {
            None => {
                let (_, newest) = newest(&store).await?;
                texts_of(&store, &newest.context("nothing has been pushed yet")?).await?
            }
            Some(to) => match to.parse() {
                Ok(number) => texts_of(&store, &revision(&store, number).await?).await?,
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

/// The texts of a revision.
pub(super) async fn texts_of(store: &RevisionStore, revision: &Revision) -> anyhow::Result<Vec<Text>> {
    let mut texts = Vec::with_capacity(revision.documents.len());
    for document in &revision.documents {
        texts.push((document.clone(), store.document(document).await?));
    }
    Ok(texts)
}

/// The differences of `texts` from a revision, or from nothing.
pub(super) async fn between(
    store: &RevisionStore,
    before: Option<&Revision>,
    texts: &[Text],
) -> anyhow::Result<Delta> {
    let before = match before {
        Some(before) => texts_of(store, before).await?,
        None => Vec::new(),
    };
    Ok(Delta::of(&before, texts))
}

// === impl Delta ===

impl Delta {
    fn of(before: &[Text], after: &[Text]) -> Delta {
        let documents = pairs(before, after).into_iter().map(|(nodes, before, after)| {
            let (mut before, mut after) = (fields(before), fields(after));
            let (had, has) = (templates(&before), templates(&after));
            before.retain(|(template, field), _| field.is_empty() != has.contains(template));
            after.retain(|(template, field), _| field.is_empty() != had.contains(template));
            let places: BTreeSet<&Place> = before.keys().chain(after.keys()).collect();
            let changes = places.into_iter().filter(|place| before.get(*place) != after.get(*place));
            let change = |place: &Place| Change {
                place: format!("{} {}", place.0, place.1).trim().to_owned(),
                before: before.get(place).cloned(),
                after: after.get(place).cloned(),
            };
            (nodes.to_owned(), changes.map(change).collect::<Vec<_>>())
        });
        Delta { documents: documents.filter(|(_, changes)| !changes.is_empty()).collect() }
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.documents.is_empty() {
            return writeln!(f, "no field differs");
        }
        for (nodes, changes) in &self.documents {
            writeln!(f, "for {nodes}")?;
            for Change { place, before, after } in changes {
                match (before, after) {
                    (Some(before), Some(after)) => writeln!(f, "  ~ {place}: {before} -> {after}")?,
                    (None, Some(after)) => writeln!(f, "  + {place}: {after}")?,
                    (Some(before), None) => writeln!(f, "  - {place}: {before}")?,
                    (None, None) => {}
                }
            }
        }
        Ok(())
    }
}

/// The documents of both sides, by the nodes that they are for.
fn pairs<'a>(before: &'a [Text], after: &'a [Text]) -> Vec<(&'a str, &'a str, &'a str)> {
    let nodes: BTreeSet<&str> =
        before.iter().chain(after).map(|(document, _)| document.nodes.as_str()).collect();
    let text = |texts: &'a [Text], nodes: &str| {
        let found = texts.iter().find(|(document, _)| document.nodes == nodes);
        found.map_or("", |(_, text)| text.as_str())
    };
    nodes.into_iter().map(|nodes| (nodes, text(before, nodes), text(after, nodes))).collect()
}

/// The fields of a document by template, and without a field each template as a whole.
fn fields(text: &str) -> BTreeMap<Place, String> {
    let mut fields = BTreeMap::new();
    for OutlinedField { template, field, value, .. } in source::outline(text) {
        if let Some(template) = &template {
            let whole = fields.entry((template.clone(), String::new()));
            let whole = whole.or_insert_with(|| "a template".to_owned());
            if field == "capacity" {
                *whole = format!("a template of {value}");
            }
        }
        fields.insert((template.unwrap_or_default(), field), value);
    }
    fields
}

/// The templates of which there are fields; those that belong to none always are.
fn templates(fields: &BTreeMap<Place, String>) -> BTreeSet<String> {
    let named = fields.keys().map(|(template, _)| template.clone());
    named.chain([String::new()]).collect()
}

/// The lines that differ, with those that do not between them left out.
fn by_line(before: &[Text], after: &[Text]) -> String {
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

    fn text(nodes: &str, text: &str) -> Text {
        (RevisionDocument::new(nodes, "x.yaml", text), text.to_owned())
    }

    #[test]
    fn differences_are_named_by_nodes_template_and_field() {
        let before = [text(
            "*",
            "resources:\n- {identifier_glob: a, capacity: 1}\n- {identifier_glob: b, capacity: 2}\n",
        )];
        let after = [
            text(
                "*",
                "# ours\nresources:\n- {identifier_glob: b, capacity: 3}\n- {identifier_glob: a, capacity: 1}\n",
            ),
            text("paris", "resources:\n- {identifier_glob: c}\n"),
        ];
        let shown = Delta::of(&before, &after).to_string();
        assert_eq!(shown, "for *\n  ~ b capacity: 2 -> 3\nfor paris\n  + c: a template\n");
        assert_eq!(Delta::of(&before, &before).to_string(), "no field differs\n");
        let lines = by_line(&before, &after[..1]);
        assert!(
            lines.contains("\n+# ours\n") && lines.contains("\n-- {identifier_glob: b, capacity: 2}\n"),
            "{lines}"
        );
    }
}
