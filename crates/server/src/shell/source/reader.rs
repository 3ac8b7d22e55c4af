//! Reads a tree as a repository, noting everything that is wrong on the way.
//!
//! Where a value is wrong, a harmless one takes its place, so that reading goes on and the rules that need several
//! values are not broken by it once more.

use lessor_yaml::{FILE, Fields, Notes, Place, Schema, YamlNode, YamlValue};

use super::access;
use super::draft::{Draft, draft};
use super::scalar;
use crate::repository::{Field, Problem, Repository};

/// The fields of a repository.
const TOP: &[&str] = &["resources", "version"];

const VERSION: &str = "a whole number that grows with each edition, as in 7";

/// The repository in `root`, or all that is wrong with it.
pub(super) fn repository(root: &YamlNode) -> Result<Repository, Vec<(Place, String)>> {
    let mut notes = Notes::default();
    let (drafts, version) = contents(&mut notes, root);
    let result = Repository::new(drafts.iter().map(|draft| draft.template.clone()).collect());
    for bad in result.as_ref().err().into_iter().flatten() {
        let draft = &drafts[bad.template];
        notes.subject.clone_from(&draft.subject);
        let place = draft.place(bad.problem.field());
        match bad.problem {
            Problem::Duplicate { first } if !(draft.has_glob && drafts[first].has_glob) => {}
            Problem::Duplicate { first } => {
                let line = drafts[first].place(Field::IdentifierGlob).line;
                notes.add(place, format!("identifier_glob is that of the template on line {line} already"));
            }
            ref problem => notes.add(place, problem.to_string()),
        }
    }
    match result {
        Ok(repository) if notes.faults.is_empty() => Ok(repository.at_version(version)),
        _ => Err(notes.faults),
    }
}

/// The templates, and which edition they are.
fn contents(notes: &mut Notes, root: &YamlNode) -> (Vec<Draft>, u64) {
    let schema = Schema { subject: FILE.into(), within: "", known: TOP, hint: hint_at_top };
    let Some(top) = Fields::read(notes, root, &schema) else { return (Vec::new(), 0) };
    let version = notes.read(&top, "version", |node| {
        let value = scalar::number("version", node, VERSION)?;
        let whole = (0.0..=scalar::LAST).contains(&value) && value.fract() == 0.0;
        whole.then_some(value as u64).ok_or_else(|| format!("version {value} is none; wanted {VERSION}"))
    });
    (drafts(notes, &top), version.or(0))
}

fn drafts(notes: &mut Notes, top: &Fields<'_>) -> Vec<Draft> {
    match top.get("resources").map(|node| (&node.value, scalar::shape(node))) {
        Some((YamlValue::List(items), _)) if !items.is_empty() => {
            items.iter().enumerate().filter_map(|(index, item)| draft(notes, index, item)).collect()
        }
        Some((YamlValue::Scalar { .. } | YamlValue::Map(_), shape)) => {
            notes.add(top.place("resources"), format!("resources is {shape}; wanted a list of templates"));
            Vec::new()
        }
        _ => {
            notes.add(top.place("resources"), "no resources; wanted resources: and a list of templates");
            Vec::new()
        }
    }
}

/// A file of the other kind.
fn hint_at_top(name: &str) -> Option<&'static str> {
    let is_of_rules = access::TOP.contains(&name) && !TOP.contains(&name);
    is_of_rules.then_some("belongs into rules of access, a file of its own: it is given by --access FILE")
}
