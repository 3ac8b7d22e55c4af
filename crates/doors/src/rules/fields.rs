//! Fields that several files have: what becomes of a request without a lease, when a rule is charged, what answers say.

use std::rc::Rc;
use std::time::Duration;

use lessor_yaml::{Fields, Notes, Schema, YamlNode, YamlValue, scalar};

use super::limits::{self, Window};
use super::{Charge, Fail, FieldKind, LimitKind, Rule, SharedLimit, SharedTier};

const TIER: &[&str] = &["limit", "window", "active", "cooldown"];
/// The kinds of fields by name, the one last that only a denial has.
const FIELD_KINDS: [(&str, FieldKind); 5] = [
    ("ietf", FieldKind::Ietf),
    ("ietf03", FieldKind::Ietf03),
    ("x-ratelimit", FieldKind::XRateLimit),
    ("kong", FieldKind::Kong),
    ("retry-after", FieldKind::RetryAfter),
];
const HITS: &str = "a whole number of hits, as in 100";

/// The fields of a mapping, and how it is called in messages.
pub(super) fn schema(subject: &str, within: &'static str, known: &'static [&'static str]) -> Schema {
    Schema { subject: subject.to_owned(), within, known, hint: |_| None }
}

/// A flag.
pub(super) fn flag(name: &str, node: &YamlNode) -> Result<bool, String> {
    scalar::one_of(name, node, &[("true", true), ("false", false)])
}

/// Reads a flag, which is false where it is absent.
pub(super) fn read_flag(notes: &mut Notes, at: &Fields<'_>, name: &'static str) -> bool {
    notes.read(at, name, |node| flag(name, node)).or(false)
}

/// The items of a list; a single value is a list of itself.
pub(super) fn items<'n>(
    notes: &mut Notes,
    field: &str,
    node: &'n Rc<YamlNode>,
    wanted: &str,
) -> &'n [Rc<YamlNode>] {
    match &node.value {
        YamlValue::List(items) if !items.is_empty() => items,
        YamlValue::Scalar { .. } => std::slice::from_ref(node),
        YamlValue::List(_) | YamlValue::Map(_) => {
            let shape = if matches!(node.value, YamlValue::List(_)) { "empty" } else { scalar::shape(node) };
            notes.add(node.place, format!("{field} is {shape}; wanted {wanted}"));
            &[]
        }
    }
}

/// The items of a list.
pub(super) fn list<'n>(
    notes: &mut Notes,
    field: &str,
    node: &'n YamlNode,
    wanted: &str,
) -> &'n [Rc<YamlNode>] {
    match &node.value {
        YamlValue::List(items) => items,
        _ => {
            notes.add(node.place, format!("{field} is {}; wanted {wanted}", scalar::shape(node)));
            &[]
        }
    }
}

/// The fields that a set and a file of the rate limit service both have.
pub(super) fn fail(notes: &mut Notes, at: &Fields<'_>) -> Option<Fail> {
    let known = [("error", Fail::Error), ("open", Fail::Open), ("closed", Fail::Closed)];
    notes.read(at, "fail", |node| scalar::one_of("fail", node, &known)).is()
}

/// The time at which a rule is charged.
pub(super) fn charge(notes: &mut Notes, at: &Fields<'_>) -> Charge {
    let known = [("before", Charge::Before), ("after", Charge::After), ("settle", Charge::Settle)];
    notes.read(at, "charge", |node| scalar::one_of("charge", node, &known)).or_default()
}

/// Has what is counted while it is under way be settled when it ends: who takes for it says how.
pub(super) fn settle_concurrency(notes: &mut Notes, at: &Fields<'_>, rule: &mut Rule) {
    if rule.limits.iter().all(|limit| limit.kind != LimitKind::Concurrency) {
        return;
    }
    if rule.charge == Charge::After {
        notes.add(
            at.place("charge"),
            "charge after takes when all is over; wanted before or settle with kind concurrency",
        );
    }
    if at.get("charge").is_none() {
        rule.charge = Charge::Settle;
    }
}

/// The fields that answers get.
pub(super) fn headers(notes: &mut Notes, at: &Fields<'_>) -> Option<Vec<FieldKind>> {
    let node = at.get("headers")?;
    let wanted = "a list of ietf, ietf03, x-ratelimit, kong and retry-after";
    Some(field_kinds(notes, ("headers", node), wanted, &FIELD_KINDS))
}

/// The fields that a request gets which passes, of which there is no time to come again.
pub(super) fn request_headers(notes: &mut Notes, at: &Fields<'_>) -> Vec<FieldKind> {
    let Some(node) = at.get("request_headers") else { return Vec::new() };
    let known = &FIELD_KINDS[..FIELD_KINDS.len() - 1];
    let wanted = "a list of ietf, ietf03, x-ratelimit and kong";
    field_kinds(notes, ("request_headers", node), wanted, known)
}

/// Kinds of fields, each of which is named once.
fn field_kinds(
    notes: &mut Notes,
    (field, node): (&str, &YamlNode),
    wanted: &str,
    known: &[(&str, FieldKind)],
) -> Vec<FieldKind> {
    let mut kinds = Vec::new();
    for item in list(notes, field, node, wanted) {
        match scalar::one_of(field, item, known) {
            Ok(kind) if !kinds.contains(&kind) => kinds.push(kind),
            Ok(_) => {
                let twice = scalar::written(item);
                notes.add(item.place, format!("{field} says {twice} twice; wanted {wanted}, each once"));
            }
            Err(message) => notes.add(item.place, message),
        }
    }
    kinds
}

/// Limits as they are written, one or several.
pub(super) fn limits(notes: &mut Notes, at: &Fields<'_>, field: &'static str) -> Vec<(u32, Window)> {
    let Some(node) = at.get_shared(field) else { return Vec::new() };
    let mut found = Vec::new();
    for item in items(notes, field, node, "hits and a window, as in 100/1m, or a list of them") {
        let read =
            scalar::text(field, item).and_then(|text| limits::parse(text).map_err(|bad| bad.to_string()));
        match read {
            Ok(limit) => found.push(limit),
            Err(message) => notes.add(item.place, message),
        }
    }
    found
}

/// A number of hits.
pub(super) fn hits(name: &str, node: &YamlNode) -> Result<u32, String> {
    let text = scalar::text(name, node)?;
    limits::amount(text)
        .map_err(|_| format!("{name} {} is no number of hits; wanted {HITS}", scalar::written(node)))
}

/// The tiers and the capacity of a rule whose kind is `shared`.
pub(super) fn shared(notes: &mut Notes, at: &Fields<'_>, limits: &[(u32, Window)]) -> Option<SharedLimit> {
    let capacity = notes.read(at, "capacity", |node| hits("capacity", node));
    let wanted = "the hits of all keys in a second, as in 5000";
    let capacity = notes.required(at, "capacity", wanted, capacity);
    let hard_limit = notes.read(at, "hard_limit", |node| hits("hard_limit", node)).is();
    let mut tiers: Vec<SharedTier> = match at.get("tiers") {
        Some(node) => {
            let items = list(notes, "tiers", node, "a list of {limit, window, active, cooldown}");
            items.iter().filter_map(|item| tier(notes, item)).collect()
        }
        None => Vec::new(),
    };
    if tiers.is_empty() {
        tiers.extend(limits.iter().map(|&(limit, window)| {
            let window = window.length();
            SharedTier { limit, window, active: window, cooldown: Duration::ZERO }
        }));
    }
    Some(SharedLimit { capacity: capacity?, hard_limit, tiers })
}

fn tier(notes: &mut Notes, node: &YamlNode) -> Option<SharedTier> {
    let at = Fields::read(notes, node, &schema("a tier", " in a tier", TIER))?;
    let limit = notes.read(&at, "limit", |node| hits("limit", node));
    let limit = notes.required(&at, "limit", HITS, limit);
    let [window, active] = ["window", "active"].map(|field| {
        let time = notes.read(&at, field, |node| scalar::time(field, node));
        notes.required(&at, field, "a time with its unit, as in 10s", time)
    });
    let cooldown = notes.read(&at, "cooldown", |node| scalar::time("cooldown", node)).or_default();
    Some(SharedTier { limit: limit?, window: window?, active: active?, cooldown })
}

/// The most workers that requests of PoolCounter may name.
pub(super) fn pool(notes: &mut Notes, node: &YamlNode) -> Option<u32> {
    const NUMBER: &str = "a whole number from 1 to 1000000, as in 500";
    let at = Fields::read(notes, node, &schema("pool", " in pool", &["workers"]))?;
    let workers = notes.read(&at, "workers", |node| {
        let number = scalar::whole("workers", node, 1.0, NUMBER)?;
        let fits = number <= 1e6;
        fits.then_some(number as u32).ok_or_else(|| format!("workers {number} is too large; wanted {NUMBER}"))
    });
    notes.required(&at, "workers", NUMBER, workers)
}
