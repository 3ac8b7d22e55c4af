//! The difference of documents, line by line, with a few lines around each change.

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// A document that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct DocumentChange {
    document: String,
    lines: Vec<DiffLine>,
}

/// A line of a difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct DiffLine {
    /// `same`, `gone`, `new`, or `skipped` for lines that are the same and not told.
    what: &'static str,
    /// Its number before, and after.
    before: Option<usize>,
    after: Option<usize>,
    text: String,
}

/// Lines that are told around a change.
const AROUND: usize = 3;
/// Lines of one document that are told.
const MOST_LINES: usize = 2_000;

/// A document of a revision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadDocument<'a> {
    /// The nodes that it is for.
    pub(crate) nodes: &'a str,
    /// The name of the file that it was.
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

/// The documents that differ, by the nodes that they are for: the file may have another name each time.
pub(crate) fn changes(before: &[ReadDocument<'_>], after: &[ReadDocument<'_>]) -> Vec<DocumentChange> {
    let of = |documents: &[ReadDocument<'_>], nodes: &str| {
        let document = documents.iter().find(|document| document.nodes == nodes);
        document.map(|document| (document.name.to_owned(), document.text.to_owned()))
    };
    let mut nodes: Vec<&str> = before.iter().chain(after).map(|document| document.nodes).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let changes = nodes.into_iter().filter_map(|nodes| {
        let (old, new) = (of(before, nodes), of(after, nodes));
        let name = new.as_ref().or(old.as_ref()).map(|(name, _)| name.clone()).unwrap_or_default();
        let [old, new] = [old, new].map(|document| document.map(|(_, text)| text).unwrap_or_default());
        let lines = lines(&old, &new);
        (!lines.is_empty()).then(|| DocumentChange { document: format!("{name} for {nodes}"), lines })
    });
    changes.collect()
}

fn lines(before: &str, after: &str) -> Vec<DiffLine> {
    let difference = TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for group in difference.grouped_ops(AROUND) {
        if !lines.is_empty() {
            lines.push(DiffLine { what: "skipped", before: None, after: None, text: String::new() });
        }
        for change in group.iter().flat_map(|operation| difference.iter_changes(operation)) {
            if lines.len() >= MOST_LINES {
                return lines;
            }
            lines.push(DiffLine {
                what: match change.tag() {
                    ChangeTag::Equal => "same",
                    ChangeTag::Delete => "gone",
                    ChangeTag::Insert => "new",
                },
                before: change.old_index().map(|index| index + 1),
                after: change.new_index().map(|index| index + 1),
                text: change.value().trim_end_matches(['\r', '\n']).to_owned(),
            });
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_changed_is_told_with_a_few_lines_around() {
        let old: String = (1..=40).map(|line| format!("line {line}\n")).collect();
        let new = old.replace("line 10\n", "LINE 10\n").replace("line 30\n", "");
        let same = ReadDocument { nodes: "leaf", name: "b", text: "same\n" };
        let before = [ReadDocument { nodes: "*", name: "a", text: &old }, same];
        let after = [same, ReadDocument { nodes: "*", name: "newer", text: &new }];
        let changes = changes(&before, &after);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].document, "newer for *");
        let told: Vec<(&str, &str)> =
            changes[0].lines.iter().map(|line| (line.what, line.text.as_str())).collect();
        assert_eq!(told[2..5], [("same", "line 9"), ("gone", "line 10"), ("new", "LINE 10")]);
        assert_eq!(told.iter().filter(|(what, _)| *what == "skipped").count(), 1);
        assert!(told.contains(&("gone", "line 30")) && told.len() == 16, "{told:?}");
    }
}
