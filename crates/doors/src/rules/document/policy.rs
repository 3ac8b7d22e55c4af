//! Conditions and keys of rules, over attributes that the set names each once.

use lessor_yaml::{Fields, Notes, YamlNode, YamlValue, scalar};

use crate::attribute::Attribute;
use crate::pattern::Pattern;
use crate::rules::fields::{self, schema};
use crate::rules::table::{Condition, Test};

const TEST: &[&str] = &["not", "below", "at_most"];
const VALUE: &str =
    "a value, a pattern with *, a list of them, present, absent, or {not: ...}, {below: N}, {at_most: N}";

/// The attributes that the rules of a set have named so far.
#[derive(Default)]
pub(super) struct Attributing {
    pub(super) attributes: Vec<Attribute>,
}

// === impl Attributing ===

impl Attributing {
    /// The place of an attribute, by its name.
    pub(super) fn slot(&mut self, name: &str) -> Result<usize, String> {
        let attribute = Attribute::new(name)?;
        let known = self.attributes.iter().position(|known| *known == attribute);
        Ok(known.unwrap_or_else(|| {
            self.attributes.push(attribute);
            self.attributes.len() - 1
        }))
    }

    /// The attributes of a key.
    pub(super) fn key(&mut self, notes: &mut Notes, at: &Fields<'_>) -> Vec<usize> {
        let Some(node) = at.get_shared("key") else { return Vec::new() };
        let mut slots = Vec::new();
        for item in
            fields::items(notes, "key", node, "an attribute or a list of them, as in [header.x-tenant]")
        {
            match scalar::text("key", item).and_then(|name| self.slot(name)) {
                Ok(slot) => slots.push(slot),
                Err(message) => notes.add(item.place, format!("key: {message}")),
            }
        }
        slots
    }

    /// The conditions of a rule.
    pub(super) fn conditions(&mut self, notes: &mut Notes, at: &Fields<'_>) -> Vec<Condition> {
        let Some(node) = at.get("match") else { return Vec::new() };
        let YamlValue::Map(pairs) = &node.value else {
            let shape = scalar::shape(node);
            notes.add(node.place, format!("match is {shape}; wanted a mapping of attributes to values"));
            return Vec::new();
        };
        let mut conditions: Vec<Condition> = Vec::new();
        for (key, value) in pairs {
            let slot = match scalar::text("match", key).and_then(|name| self.slot(name)) {
                Ok(slot) => slot,
                Err(message) => {
                    notes.add(key.place, format!("match: {message}"));
                    continue;
                }
            };
            if conditions.iter().any(|known| known.slot == slot) {
                notes.add(key.place, format!("match: {} stands twice", self.attributes[slot]));
            }
            conditions.extend(tests(notes, value).into_iter().map(|test| Condition { slot, test }));
        }
        conditions
    }
}

fn tests(notes: &mut Notes, node: &YamlNode) -> Vec<Test> {
    match &node.value {
        YamlValue::Scalar { text, plain: true } if text == "present" => vec![Test::Present],
        YamlValue::Scalar { text, plain: true } if text == "absent" => vec![Test::Absent],
        YamlValue::Map(_) => {
            let Some(at) = Fields::read(notes, node, &schema("a condition", " in a condition", TEST)) else {
                return Vec::new();
            };
            let mut tests = Vec::new();
            if let Some(not) = at.get("not") {
                tests.push(Test::NoneOf(patterns(notes, not)));
            }
            let number = |field: &'static str| {
                move |node: &YamlNode| scalar::number(field, node, "a number, as in 1000")
            };
            tests.extend(notes.read(&at, "below", number("below")).is().map(Test::Below));
            tests.extend(notes.read(&at, "at_most", number("at_most")).is().map(Test::AtMost));
            if tests.is_empty() && notes.faults.is_empty() {
                notes.add(node.place, format!("a condition is empty; wanted {VALUE}"));
            }
            tests
        }
        _ => vec![Test::AnyOf(patterns(notes, node))],
    }
}

fn patterns(notes: &mut Notes, node: &YamlNode) -> Vec<Pattern> {
    let items = match &node.value {
        YamlValue::List(items) if !items.is_empty() => &items[..],
        YamlValue::Scalar { text, .. } => return vec![Pattern::new(text)],
        _ => {
            let shape = if matches!(node.value, YamlValue::List(_)) { "empty" } else { scalar::shape(node) };
            notes.add(node.place, format!("a condition is {shape}; wanted {VALUE}"));
            return Vec::new();
        }
    };
    let mut read = Vec::new();
    for item in items {
        match scalar::text("a value", item) {
            Ok(text) => read.push(Pattern::new(text)),
            Err(message) => notes.add(item.place, message),
        }
    }
    read
}
