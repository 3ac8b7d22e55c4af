//! Reads one rule of a set.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use lessor_yaml::{Fields, Notes, Place, Reading, YamlNode, YamlValue, scalar};

use super::policy::Attributing;
use crate::name;
use crate::rules::fields::{self, schema};
use crate::rules::table::TableRow;
use crate::rules::{Cost, LimitKind, Rule, Window};

const RULE: &[&str] = &[
    "name",
    "match",
    "key",
    "limit",
    "resource",
    "cost",
    "most",
    "charge",
    "kind",
    "capacity",
    "hard_limit",
    "tiers",
    "shadow",
    "fail",
    "stop",
    "ask",
];
const LIMIT: &str = "hits and a window, as in 100/1m, or a list of them";

/// Reads the rules of one set.
pub(super) struct RuleReader<'a> {
    pub(super) set: &'a str,
    pub(super) index: usize,
    /// The resources that there are, and the lines of their rules.
    pub(super) resources: &'a mut BTreeMap<String, usize>,
    pub(super) attributing: &'a mut Attributing,
}

// === impl RuleReader ===

impl RuleReader<'_> {
    pub(super) fn rule(&mut self, notes: &mut Notes, node: &Rc<YamlNode>) -> Option<(Rule, TableRow)> {
        let at = Fields::read(notes, node, &schema("a rule", " in a rule", RULE))?;
        let resource = self.resource(notes, &at, node.place);
        let mut rule = Rule::new(&format!("{}/{}", self.set, self.index), &resource);
        rule.policy = notes.read(&at, "name", policy_name).is();
        let limits = fields::limits(notes, &at, "limit");
        if at.get("limit").is_none() {
            notes.add(at.place("limit"), format!("limit is missing; wanted {LIMIT}"));
        }
        rule.fail = fields::fail(notes, &at);
        rule.charge = fields::charge(notes, &at);
        rule.shadow = fields::read_flag(notes, &at, "shadow");
        rule.stop = fields::read_flag(notes, &at, "stop");
        rule.ask = fields::read_flag(notes, &at, "ask");
        rule.cost = self.cost(notes, &at).unwrap_or(Cost::Each(1));
        let conditions = self.attributing.conditions(notes, &at);
        let key = self.attributing.key(notes, &at);
        for (units, window, kind) in kinds(notes, &at, &limits, key.is_empty()) {
            rule.limit(units, window, kind);
        }
        fields::settle_concurrency(notes, &at, &mut rule);
        let stop = rule.stop;
        Some((rule, TableRow { conditions, key, stop }))
    }

    fn resource(&mut self, notes: &mut Notes, at: &Fields<'_>, place: Place) -> String {
        let given = notes.read(at, "resource", |node| {
            let text = scalar::text("resource", node)?;
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/-_.:@".contains(letter);
            let fits = !text.is_empty() && text.len() <= 100 && text.chars().all(is_plain);
            fits.then(|| text.to_owned()).ok_or_else(|| {
                let shown = scalar::written(node);
                format!("resource {shown} is none; wanted 1 to 100 letters, digits and any of / - _ . : @")
            })
        });
        let own = || {
            let mut resource = String::new();
            name::encode_part(self.set.as_bytes(), &mut resource);
            format!("{resource}/{}", self.index)
        };
        let resource = match given {
            Reading::Is(resource) => resource,
            Reading::Absent | Reading::Bad => own(),
        };
        if let Some(line) = self.resources.insert(resource.clone(), place.line) {
            let found = format!("resource {resource} is that of the rule on line {line} already");
            notes.add(at.place("resource"), found);
        }
        resource
    }

    fn cost(&mut self, notes: &mut Notes, at: &Fields<'_>) -> Option<Cost> {
        const WANTED: &str =
            "a whole number, an attribute such as content_length, or a mapping of methods to numbers";
        let node = at.get("cost")?;
        let most = notes.read(at, "most", |node| fields::hits("most", node)).or(u32::MAX);
        match &node.value {
            YamlValue::Scalar { text, .. } => match fields::hits("cost", node) {
                Ok(each) => Some(Cost::Each(each)),
                Err(_) if text.starts_with(|letter: char| letter.is_ascii_alphabetic()) => {
                    let slot =
                        self.attributing.slot(text).map_err(|message| notes.add(node.place, message)).ok()?;
                    Some(Cost::Attribute { slot, most })
                }
                Err(_) => {
                    notes.add(node.place, format!("cost {} is none; wanted {WANTED}", scalar::written(node)));
                    None
                }
            },
            YamlValue::Map(pairs) => {
                let mut costs = Vec::new();
                for (key, value) in pairs {
                    match scalar::text("a method", key)
                        .and_then(|method| Ok((method.into(), fields::hits("cost", value)?)))
                    {
                        Ok(cost) => costs.push(cost),
                        Err(message) => notes.add(value.place, message),
                    }
                }
                let slot = self.attributing.slot("method").ok()?;
                Some(Cost::By { slot, costs })
            }
            YamlValue::List(_) => {
                notes.add(node.place, format!("cost is a list; wanted {WANTED}"));
                None
            }
        }
    }
}

/// The limits of a rule with the ways in which they are kept.
fn kinds(
    notes: &mut Notes,
    at: &Fields<'_>,
    limits: &[(u32, Window)],
    is_keyless: bool,
) -> Vec<(u32, Window, LimitKind)> {
    let kind = notes.read(at, "kind", |node| scalar::one_of("kind", node, &KINDS)).or(0);
    kinds_of(notes, at, limits, (kind, is_keyless))
}

/// The kinds of limits by their words, numbered as the following wants them.
pub(in crate::rules) const KINDS: [(&str, u8); 4] =
    [("exact", 0), ("flow", 1), ("shared", 2), ("concurrency", 3)];

/// The same of a rule of the kind with that number.
pub(in crate::rules) fn kinds_of(
    notes: &mut Notes,
    at: &Fields<'_>,
    limits: &[(u32, Window)],
    (kind, is_keyless): (u8, bool),
) -> Vec<(u32, Window, LimitKind)> {
    let with =
        |kind: LimitKind| limits.iter().map(|&(units, window)| (units, window, kind.clone())).collect();
    if kind != 2 {
        for field in ["capacity", "hard_limit", "tiers"].into_iter().filter(|field| at.get(field).is_some()) {
            notes.add(
                at.place(field),
                format!("{field} is of limits that doors tell each other of; wanted kind: shared"),
            );
        }
    }
    match kind {
        0 => with(LimitKind::Exact),
        1 => {
            if !is_keyless {
                notes.add(
                    at.place("kind"),
                    "kind flow has no keys; wanted exact or shared, or a rule without open values",
                );
            }
            if limits.len() > 1 || limits.iter().any(|(_, window)| window.length() != Duration::from_secs(1))
            {
                notes.add(at.place("kind"), "kind flow is a rate; wanted one limit with a window of 1s");
            }
            with(LimitKind::Flow)
        }
        3 => {
            if limits.len() > 1 {
                notes.add(
                    at.place("kind"),
                    "kind concurrency is one limit; wanted as many at a time as there may be, and the longest that one takes, as in \
                     10/5m",
                );
            }
            with(LimitKind::Concurrency)
        }
        _ => match (fields::shared(notes, at, limits), limits.first()) {
            (Some(shared), Some(&(units, window))) => vec![(units, window, LimitKind::Shared(shared))],
            _ => Vec::new(),
        },
    }
}

/// A name of a policy, which goes into fields of answers.
pub(in crate::rules) fn policy_name(node: &YamlNode) -> Result<Box<str>, String> {
    let text = scalar::text("name", node)?;
    let fits = !text.is_empty()
        && text.len() <= 100
        && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    fits.then(|| text.into()).ok_or_else(|| {
        format!("name {} is none; wanted 1 to 100 printable characters of ASCII", scalar::written(node))
    })
}
