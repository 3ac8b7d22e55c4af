//! The fields of one mapping: known ones by name; of the others, and of those that stand twice, notes are taken.

use std::rc::Rc;

use crate::node::{Place, YamlNode, YamlValue};
use crate::notes::Notes;
use crate::scalar;

/// The name of what holds everything else in messages.
pub const FILE: &str = "the file";

/// The known fields of a mapping.
pub struct Fields<'n> {
    place: Place,
    found: Vec<Found<'n>>,
}

struct Found<'n> {
    name: &'n str,
    key: Place,
    value: &'n Rc<YamlNode>,
}

/// The fields that may stand in a mapping, and the words for messages about it.
pub struct Schema {
    /// The name of the mapping.
    pub subject: String,
    /// Behind the name of an unknown field: ` in algorithm`.
    pub within: &'static str,
    /// The fields.
    pub known: &'static [&'static str],
    /// The hint about a field that belongs elsewhere.
    pub hint: fn(&str) -> Option<&'static str>,
}

type Pairs = [(Rc<YamlNode>, Rc<YamlNode>)];

// === impl Fields ===

impl<'n> Fields<'n> {
    /// The fields of `node`, if it is a mapping.
    pub fn read(notes: &mut Notes, node: &'n YamlNode, schema: &Schema) -> Option<Fields<'n>> {
        let YamlValue::Map(pairs) = &node.value else {
            let (subject, shape) = (&schema.subject, scalar::shape(node));
            let known = scalar::listed(schema.known, "and");
            notes.add(node.place, format!("{subject} is {shape}; wanted a mapping with {known}"));
            return None;
        };
        let mut fields = Fields { place: node.place, found: Vec::new() };
        fields.take(notes, pairs, schema, FieldRank::Own);
        Some(fields)
    }

    /// The value of a field, unless there is none or it is null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'n YamlNode> {
        self.get_shared(name).map(|node| &**node)
    }

    /// The same, as it lies in the tree.
    #[must_use]
    pub fn get_shared(&self, name: &str) -> Option<&'n Rc<YamlNode>> {
        self.entry(name).map(|found| found.value).filter(|value| !value.is_null())
    }

    /// Where the value of a field stands, or should.
    #[must_use]
    pub fn place(&self, name: &str) -> Place {
        match self.entry(name) {
            Some(found) if found.value.is_null() => found.key,
            Some(found) => found.value.place,
            None => self.place,
        }
    }

    fn entry(&self, name: &str) -> Option<&Found<'n>> {
        self.found.iter().find(|found| found.name == name)
    }

    fn take(&mut self, notes: &mut Notes, pairs: &'n Pairs, schema: &Schema, rank: FieldRank) {
        let before = self.found.len();
        for (key, value) in pairs {
            let YamlValue::Scalar { text: name, .. } = &key.value else {
                notes.add(key.place, format!("the name of a field is {}; wanted text", scalar::shape(key)));
                continue;
            };
            if is_merge(key) {
                continue;
            }
            if !schema.known.contains(&name.as_str()) {
                if !schema.is_apart(name) {
                    notes.add(key.place, schema.unknown(name));
                }
                continue;
            }
            let earlier = self.found.iter().position(|found| found.name == name);
            match earlier {
                None => self.found.push(Found { name, key: key.place, value }),
                Some(index) if rank == FieldRank::Own || index >= before => {
                    let line = self.found[index].key.line;
                    notes.add(key.place, format!("{name} stands twice; first on line {line}"));
                }
                Some(_) => {}
            }
        }
        for (_, value) in pairs.iter().filter(|(key, _)| is_merge(key)) {
            self.merge(notes, value, schema);
        }
    }

    /// `<<: *defaults` or `<<: [*these, *those]`: fields that count where the mapping has none of its own.
    fn merge(&mut self, notes: &mut Notes, value: &'n YamlNode, schema: &Schema) {
        match &value.value {
            YamlValue::Map(pairs) => self.take(notes, pairs, schema, FieldRank::Merged),
            YamlValue::List(items) if items.iter().all(|item| matches!(item.value, YamlValue::Map(_))) => {
                for item in items {
                    self.merge(notes, item, schema);
                }
            }
            _ => {
                let shape = scalar::shape(value);
                notes.add(value.place, format!("<< is {shape}; wanted a mapping or a list of them"));
            }
        }
    }
}

/// Whose fields are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldRank {
    Own,
    Merged,
}

fn is_merge(key: &YamlNode) -> bool {
    matches!(&key.value, YamlValue::Scalar { text, plain: true } if text == "<<")
}

// === impl Schema ===

impl Schema {
    /// Whether a field is there for its anchor only. Such fields begin with `x-` and stand at the top.
    fn is_apart(&self, name: &str) -> bool {
        self.subject == FILE && name.starts_with("x-")
    }

    fn unknown(&self, name: &str) -> String {
        if let Some(hint) = (self.hint)(name) {
            return format!("{name} {hint}");
        }
        let (shown, within) = (scalar::shown(name), self.within);
        format!("unknown field {shown:?}{within}; {}", scalar::wanted(name, self.known))
    }
}
