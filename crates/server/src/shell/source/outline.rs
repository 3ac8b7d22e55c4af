//! The outline of a document of templates: every scalar with the template and the field that it belongs to, and where it stands.

use std::ops::Range;

use lessor_yaml::node::{self, YamlNode, YamlValue};

/// A scalar of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutlinedField {
    /// The glob of its template; absent: it belongs to none.
    pub template: Option<String>,
    /// The field, as `algorithm.lease_length` or `domains.default.tiers[0].limit`.
    pub field: String,
    /// The value, without quotes.
    pub value: String,
    /// Where it stands, in bytes.
    pub range: Range<usize>,
}

/// The field by whose value a template is named.
const NAME: &str = "identifier_glob";
const TEMPLATES: &str = "resources";

/// The scalars of a document, in their order; none, if it cannot be read.
#[must_use]
pub fn outline(text: &str) -> Vec<OutlinedField> {
    let mut fields = Vec::new();
    if let Ok(Some(root)) = node::read(text) {
        walk(&root, None, String::new(), &mut fields);
    }
    fields
}

/// The text without a field of a template, which stands there once, with the comments that belong to it; nothing, if it cannot be
/// taken out and leave all else as it is.
#[must_use]
pub fn without(text: &str, template: &str, field: &str) -> Option<String> {
    let root = node::read(text).ok()??;
    let YamlValue::List(templates) = &entry(&root, TEMPLATES)?.1.value else { return None };
    let template_node = templates.iter().find(|item| name_of(item) == Some(template))?;
    let (key, value) = entry(template_node, field)?;
    let mut left = text.to_owned();
    left.replace_range(extent(text, key.place.start, end_of(value).max(key.place.end))?, "");
    let below = format!("{field}.");
    let is_it = |it: &OutlinedField| {
        it.template.as_deref() == Some(template) && (it.field == field || it.field.starts_with(&below))
    };
    let seen = |it: OutlinedField| (it.template, it.field, it.value);
    let wanted = outline(text).into_iter().filter(|it| !is_it(it)).map(seen);
    wanted.eq(outline(&left).into_iter().map(seen)).then_some(left)
}

/// The end of the last scalar: a mapping in a block itself ends where the next thing begins.
fn end_of(value: &YamlNode) -> usize {
    match &value.value {
        YamlValue::Map(entries) => entries.last().map_or(value.place.end, |(_, last)| end_of(last)),
        YamlValue::List(items) => items.last().map_or(value.place.end, |last| end_of(last)),
        YamlValue::Scalar { .. } => value.place.end,
    }
}

/// The bytes that go with an entry of a mapping, from its key to the end of its last scalar: its lines where it has them for
/// itself, or else it and a comma.
fn extent(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let is_own = text[line..start].bytes().all(|byte| byte == b' ');
    let tail = text[end..].trim_start_matches(' ');
    let is_closed = tail.starts_with('}') && text[start..end].contains('{');
    let last = if is_closed { text.len() - tail.len() + 1 } else { end };
    if is_own {
        let rest = text[last..].find('\n').map_or(text.len(), |at| last + at + 1);
        let comment = text[last..rest].trim();
        return (comment.is_empty() || comment.starts_with('#')).then_some(line..rest);
    }
    // In braces.
    let behind = text[last..].trim_start();
    if let Some(rest) = behind.strip_prefix(',') {
        return Some(start..text.len() - rest.trim_start().len());
    }
    let before = text[..start].trim_end().strip_suffix(',')?;
    Some(before.len()..last)
}

fn entry<'n>(map: &'n YamlNode, name: &str) -> Option<(&'n YamlNode, &'n YamlNode)> {
    let YamlValue::Map(entries) = &map.value else { return None };
    let is_it = |key: &YamlNode| matches!(&key.value, YamlValue::Scalar { text, .. } if text == name);
    entries.iter().find(|(key, _)| is_it(key)).map(|(key, value)| (&**key, &**value))
}

fn walk(at: &YamlNode, template: Option<&str>, field: String, fields: &mut Vec<OutlinedField>) {
    match &at.value {
        YamlValue::Scalar { text, .. } => fields.push(OutlinedField {
            template: template.map(str::to_owned),
            field,
            value: text.clone(),
            range: at.place.start..at.place.end,
        }),
        YamlValue::List(items) if template.is_none() && field == TEMPLATES => {
            for item in items {
                walk(item, Some(name_of(item).unwrap_or_default()), String::new(), fields);
            }
        }
        YamlValue::List(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, template, format!("{field}[{index}]"), fields);
            }
        }
        YamlValue::Map(entries) => {
            for (key, value) in entries {
                let YamlValue::Scalar { text: key, .. } = &key.value else { continue };
                let below = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                walk(value, template, below, fields);
            }
        }
    }
}

fn name_of(template: &YamlNode) -> Option<&str> {
    match &entry(template, NAME)?.1.value {
        YamlValue::Scalar { text, .. } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scalar_has_its_template_its_field_and_its_place() {
        let text = "x-a: 1\nresources: # all\n- identifier_glob: 'db-*'\n  capacity: 5 # of ours\n  algorithm: {kind: FAIR_SHARE}\n  domains:\n    default: [{tiers: [{limit: 3}]}]\n";
        let outlined = outline(text);
        let seen: Vec<(Option<&str>, &str, &str)> = outlined
            .iter()
            .map(|field| (field.template.as_deref(), field.field.as_str(), &text[field.range.clone()]))
            .collect();
        let db = Some("db-*");
        let wanted = [
            (None, "x-a", "1"),
            (db, "identifier_glob", "'db-*'"),
            (db, "capacity", "5"),
            (db, "algorithm.kind", "FAIR_SHARE"),
            (db, "domains.default[0].tiers[0].limit", "3"),
        ];
        assert_eq!(seen, wanted);
        assert!(outline("{").is_empty() && outline("").is_empty());
    }
}
