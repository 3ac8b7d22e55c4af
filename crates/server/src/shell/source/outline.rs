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
    let YamlValue::Map(entries) = &template.value else { return None };
    let is_name = |key: &YamlNode| matches!(&key.value, YamlValue::Scalar { text, .. } if text == NAME);
    let (_, name) = entries.iter().find(|(key, _)| is_name(key))?;
    match &name.value {
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
