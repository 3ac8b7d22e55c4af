//! The differences of documents by template and field: of two sides, and of two sides from what both began with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::outline::{OutlinedField, outline};
use crate::revision::RevisionDocument;

/// A document, and its text.
pub type DocumentText = (RevisionDocument, String);

/// The differences of some documents, by the nodes that they are for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Delta {
    documents: Vec<DocumentDelta<FieldChange>>,
}

/// The ways in which two sides differ from what both began with: theirs, which came first, and mine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ThreeWay {
    documents: Vec<DocumentDelta<ContestedField>>,
    /// The fields that both sides have changed, each to something else.
    conflicts: usize,
}

/// The differences of a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct DocumentDelta<T> {
    #[serde(rename = "for")]
    nodes: String,
    fields: Vec<T>,
}

/// A field that two sides have different; without a name of its own a template as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct FieldChange {
    template: String,
    field: String,
    before: Option<String>,
    after: Option<String>,
}

/// A field that one side or both have changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct ContestedField {
    template: String,
    field: String,
    changed_by: ChangedBy,
    base: Option<String>,
    theirs: Option<String>,
    mine: Option<String>,
}

/// The sides that have changed a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ChangedBy {
    Theirs,
    Mine,
    /// Both, to the same.
    Both,
    /// Both, each to something else.
    Conflict,
}

/// A template and a field of it.
type FieldPlace = (String, String);

/// A field as one side has it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FieldValue {
    shown: String,
    /// Everything that belongs to it, where it is a template as a whole.
    content: Vec<(String, String)>,
}

/// The fields of one document, each as all sides have it.
type SideBySide<const N: usize> = BTreeMap<FieldPlace, [Option<FieldValue>; N]>;

// === impl Delta ===

impl Delta {
    /// The differences of `after` from `before`.
    #[must_use]
    pub fn of(before: &[DocumentText], after: &[DocumentText]) -> Delta {
        let change = |((template, field), [before, after]): (FieldPlace, [Option<FieldValue>; 2])| {
            let [before, after] = [before, after].map(shown);
            (before != after).then_some(FieldChange { template, field, before, after })
        };
        Delta { documents: documents([before, after], change) }
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.documents.is_empty() {
            return writeln!(f, "no field differs");
        }
        for document in &self.documents {
            writeln!(f, "for {}", document.nodes)?;
            for FieldChange { template, field, before, after } in &document.fields {
                writeln!(f, "  {}", line(&place(template, field), before.as_deref(), after.as_deref()))?;
            }
        }
        Ok(())
    }
}

// === impl ThreeWay ===

impl ThreeWay {
    /// The differences of two sides from `base`.
    #[must_use]
    pub fn of(base: &[DocumentText], theirs: &[DocumentText], mine: &[DocumentText]) -> ThreeWay {
        let mut conflicts = 0;
        let documents = documents([base, theirs, mine], |((template, field), [base, theirs, mine])| {
            let changed_by = match (theirs != base, mine != base) {
                (false, false) => return None,
                (true, false) => ChangedBy::Theirs,
                (false, true) => ChangedBy::Mine,
                (true, true) if theirs == mine => ChangedBy::Both,
                (true, true) => ChangedBy::Conflict,
            };
            conflicts += usize::from(changed_by == ChangedBy::Conflict);
            let [base, theirs, mine] = [base, theirs, mine].map(shown);
            Some(ContestedField { template, field, changed_by, base, theirs, mine })
        });
        ThreeWay { documents, conflicts }
    }

    /// The number of fields that both sides have changed, each to something else.
    #[must_use]
    pub fn conflicts(&self) -> usize {
        self.conflicts
    }
}

impl fmt::Display for ThreeWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.documents.is_empty() {
            return writeln!(f, "no field differs");
        }
        for document in &self.documents {
            writeln!(f, "for {}", document.nodes)?;
            for it in &document.fields {
                let (place, base) = (place(&it.template, &it.field), it.base.as_deref());
                let (theirs, mine) = (it.theirs.as_deref(), it.mine.as_deref());
                match it.changed_by {
                    ChangedBy::Theirs => writeln!(f, "  theirs    {}", line(&place, base, theirs))?,
                    ChangedBy::Mine => writeln!(f, "  mine      {}", line(&place, base, mine))?,
                    ChangedBy::Both => writeln!(f, "  both      {}", line(&place, base, mine))?,
                    ChangedBy::Conflict => {
                        let [base, theirs, mine] = [base, theirs, mine].map(|side| side.unwrap_or("none"));
                        writeln!(f, "  CONFLICT  {place}: {base} -> theirs {theirs}, mine {mine}")?;
                    }
                }
            }
        }
        match self.conflicts {
            0 => writeln!(f, "no field was changed by both to something else"),
            1 => writeln!(f, "1 field was changed by both, each to something else"),
            count => writeln!(f, "{count} fields were changed by both, each to something else"),
        }
    }
}

fn place(template: &str, field: &str) -> String {
    format!("{template} {field}").trim().to_owned()
}

fn line(place: &str, before: Option<&str>, after: Option<&str>) -> String {
    match (before, after) {
        (Some(before), Some(after)) if before == after => format!("~ {place}: {after}, other fields"),
        (Some(before), Some(after)) => format!("~ {place}: {before} -> {after}"),
        (None, Some(after)) => format!("+ {place}: {after}"),
        (Some(before), None) => format!("- {place}: {before}"),
        (None, None) => place.to_owned(),
    }
}

fn shown(value: Option<FieldValue>) -> Option<String> {
    value.map(|value| value.shown)
}

/// The words of `told` on the fields of all sides, by the nodes that the documents are for.
fn documents<T, const N: usize>(
    sides: [&[DocumentText]; N],
    mut told: impl FnMut((FieldPlace, [Option<FieldValue>; N])) -> Option<T>,
) -> Vec<DocumentDelta<T>> {
    let nodes = sides.iter().flat_map(|side| side.iter()).map(|(document, _)| document.nodes.as_str());
    let nodes: BTreeSet<&str> = nodes.collect();
    let mut documents = Vec::new();
    for nodes in nodes {
        let text = |side: &[DocumentText]| {
            let found = side.iter().find(|(document, _)| document.nodes == nodes);
            found.map(|(_, text)| outline(text)).unwrap_or_default()
        };
        let fields: Vec<T> = side_by_side(sides.map(text)).into_iter().filter_map(&mut told).collect();
        if !fields.is_empty() {
            documents.push(DocumentDelta { nodes: nodes.to_owned(), fields });
        }
    }
    documents
}

/// The fields of those templates that all sides have, and the others each as a whole; what belongs to no template is field by
/// field.
fn side_by_side<const N: usize>(sides: [Vec<OutlinedField>; N]) -> SideBySide<N> {
    let named = |side: &Vec<OutlinedField>| -> BTreeSet<String> {
        side.iter().filter_map(|field| field.template.clone()).collect()
    };
    let known: Vec<BTreeSet<String>> = sides.iter().map(named).collect();
    let mut rows = SideBySide::new();
    for (at, side) in sides.into_iter().enumerate() {
        for OutlinedField { template, field, value, .. } in side {
            let is_whole =
                template.as_ref().is_some_and(|template| known.iter().any(|side| !side.contains(template)));
            let template = template.unwrap_or_default();
            let place = (template, if is_whole { String::new() } else { field.clone() });
            let row = &mut rows.entry(place).or_insert_with(|| [const { None }; N])[at];
            if !is_whole {
                *row = Some(FieldValue { shown: value, content: Vec::new() });
                continue;
            }
            let whole =
                row.get_or_insert_with(|| FieldValue { shown: "a template".to_owned(), content: Vec::new() });
            if field == "capacity" {
                whole.shown = format!("a template of {value}");
            }
            whole.content.push((field, value));
            whole.content.sort_unstable();
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(nodes: &str, text: &str) -> DocumentText {
        (RevisionDocument::new(nodes, "x.yaml", text), text.to_owned())
    }

    fn templates(lines: &[&str]) -> Vec<DocumentText> {
        vec![text("*", &format!("resources:\n- {}\n", lines.join("\n- ")))]
    }

    #[test]
    fn differences_are_named_by_nodes_template_and_field() {
        let before = templates(&["{identifier_glob: a, capacity: 1}", "{identifier_glob: b, capacity: 2}"]);
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
    }

    #[test]
    fn of_two_sides_it_is_said_who_has_changed_what() {
        let base = templates(&[
            "{identifier_glob: a, capacity: 1}",
            "{identifier_glob: b, capacity: 2, safe_capacity: 1}",
            "{identifier_glob: c, capacity: 3}",
            "{identifier_glob: gone, capacity: 4}",
        ]);
        let theirs = templates(&[
            "{identifier_glob: a, capacity: 10}",
            "{identifier_glob: b, capacity: 20, safe_capacity: 1}",
            "{identifier_glob: c, capacity: 30}",
        ]);
        let mine = templates(&[
            "{identifier_glob: a, capacity: 11}",
            "{identifier_glob: b, capacity: 2, safe_capacity: 2}",
            "{identifier_glob: c, capacity: 30}",
            "{identifier_glob: gone, capacity: 4, description: kept}",
            "{identifier_glob: d, capacity: 5}",
        ]);
        let sides = ThreeWay::of(&base, &theirs, &mine);
        assert_eq!(
            sides.to_string(),
            "for *\n  CONFLICT  a capacity: 1 -> theirs 10, mine 11\n  theirs    ~ b capacity: 2 -> 20\n  \
             mine      ~ b safe_capacity: 1 -> 2\n  both      ~ c capacity: 3 -> 30\n  \
             mine      + d: a template of 5\n  \
             CONFLICT  gone: a template of 4 -> theirs none, mine a template of 4\n\
             2 fields were changed by both, each to something else\n"
        );
        let json = serde_json::to_value(&sides).unwrap();
        assert_eq!((&json["conflicts"], &json["documents"][0]["for"]), (&2.into(), &"*".into()));
        let first = serde_json::json!({
            "template": "a", "field": "capacity", "changed_by": "conflict", "base": "1", "theirs": "10", "mine": "11",
        });
        assert_eq!(json["documents"][0]["fields"][0], first);
        // From the other side it is the same, but for whose it is.
        let turned = ThreeWay::of(&base, &mine, &theirs).to_string();
        assert!(turned.contains("theirs    + d: a template of 5"), "{turned}");
        assert_eq!(ThreeWay::of(&base, &base, &base).to_string(), "no field differs\n");
    }
}
