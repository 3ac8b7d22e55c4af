//! Reads `doors.yaml`: sets of rules on what a request has, and which files of the rate limit service there are besides.
//!
//! ```yaml
//! version: 3
//! wait: 100ms                       # the longest wait for units that lie elsewhere, or for a first lease
//! sets:
//!   edge:                           # /check/edge, and Envoy's domain "edge"
//!     fail: error                   # error, open or closed, where nothing is leased
//!     deny_status: 429
//!     headers: [ietf, retry-after]  # also ietf03, x-ratelimit, kong
//!     body: problem                 # or none
//!     shadow: false
//!     overrides: [1000/1m]          # the limits that Envoy's requests may bring with them
//!     rules:
//!       - match: {path: "/api/*", method: [GET, POST]}
//!         key: [header.x-tenant, remote_address]
//!         limit: [100/1m, 1000/1h]  # both hold
//!         cost: 1
//! ratelimit:
//!   files: ["/etc/ratelimit/*.yaml"]
//! ```

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use lessor_yaml::{FILE, Faults, Fields, Notes, Place, Reading, Schema, YamlNode, YamlValue, scalar};

use super::fields::{self, schema};
use super::table::Table;
use super::{Cost, FieldKind, Limit, LimitKind, Matcher, Rule, RuleBook, RuleSet, SetManner, WAIT};
use crate::name;

mod policy;

use self::policy::Attributing;

/// `doors.yaml` as it stands: without the files that it names.
#[derive(Clone, Debug)]
pub struct DoorsFile {
    pub(super) version: u64,
    pub(super) wait: Duration,
    pub(super) sets: Vec<RuleSet>,
    pub(super) service: ServiceFiles,
}

/// The files of the rate limit service, and how requests for them are answered.
#[derive(Clone, Debug)]
pub struct ServiceFiles {
    /// The files, by name or with a star for any part of one.
    pub files: Vec<String>,
    /// Whether several files may have rules of one domain.
    pub merge_domains: bool,
    /// The answers of them.
    pub manner: SetManner,
    /// The limits that requests may bring with them.
    pub overrides: Vec<(u32, super::Window)>,
}

const TOP: &[&str] = &["version", "wait", "sets", "ratelimit"];
const SET: &[&str] = &["fail", "deny_status", "headers", "body", "shadow", "overrides", "rules"];
const SERVICE: &[&str] = &["files", "merge_domains", "fail", "headers", "body", "shadow", "overrides"];
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
const VERSION: &str = "a whole number that grows with each edition, as in 3";
const STATUS: &str = "a status from 400 to 599, as in 429";
const LIMIT: &str = "hits and a window, as in 100/1m, or a list of them";

// === impl DoorsFile ===

impl DoorsFile {
    /// Reads `text`, which is called `name` in faults.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<DoorsFile, Faults> {
        lessor_yaml::document(name, text, "wanted sets: with rules, or ratelimit: with files", |root| {
            let mut notes = Notes::default();
            let file = contents(&mut notes, root);
            file.filter(|_| notes.faults.is_empty()).ok_or(notes.faults)
        })
    }

    /// The files of the rate limit service that it names.
    #[must_use]
    pub fn service(&self) -> &ServiceFiles {
        &self.service
    }

    /// The rules of it alone.
    #[must_use]
    pub fn into_rules(self) -> RuleBook {
        RuleBook::new(self.version, self.wait, self.sets)
    }
}

impl Default for DoorsFile {
    fn default() -> DoorsFile {
        DoorsFile { version: 0, wait: WAIT, sets: Vec::new(), service: ServiceFiles::default() }
    }
}

impl Default for ServiceFiles {
    fn default() -> ServiceFiles {
        let manner =
            SetManner { headers: vec![FieldKind::RetryAfter], has_problem: false, ..SetManner::default() };
        ServiceFiles { files: Vec::new(), merge_domains: false, manner, overrides: Vec::new() }
    }
}

fn contents(notes: &mut Notes, root: &YamlNode) -> Option<DoorsFile> {
    let top = Fields::read(notes, root, &Schema { hint: hint_at_top, ..schema(FILE, "", TOP) })?;
    let version = notes.read(&top, "version", |node| scalar::whole("version", node, 0.0, VERSION)).or(0.0);
    let wait = notes.read(&top, "wait", |node| scalar::time("wait", node)).or(WAIT);
    let mut sets = Vec::new();
    if let Some(node) = top.get("sets") {
        let YamlValue::Map(pairs) = &node.value else {
            notes.add(
                node.place,
                format!("sets is {}; wanted a mapping of names to sets", scalar::shape(node)),
            );
            return None;
        };
        let mut names = BTreeMap::new();
        let mut resources = BTreeMap::new();
        for (key, value) in pairs {
            let name = match scalar::text("the name of a set", key) {
                Ok(name) if !name.is_empty() && !name.contains('/') => name,
                Ok(name) => {
                    notes.add(
                        key.place,
                        format!("the name of a set is {name:?}; wanted text without a slash"),
                    );
                    continue;
                }
                Err(message) => {
                    notes.add(key.place, message);
                    continue;
                }
            };
            if let Some(line) = names.insert(name.to_owned(), key.place.line) {
                notes.add(key.place, format!("set {name:?} stands twice; first on line {line}"));
            }
            sets.extend(set(notes, name, value, &mut resources));
            notes.subject.clear();
        }
    }
    let service = top.get("ratelimit").map(|node| service(notes, node)).unwrap_or_default();
    if sets.is_empty() && service.files.is_empty() && notes.faults.is_empty() {
        notes.add(Place::START, "no rules; wanted sets: with rules, or ratelimit: with files");
    }
    Some(DoorsFile { version: version as u64, wait, sets, service })
}

fn hint_at_top(name: &str) -> Option<&'static str> {
    match name {
        "domain" | "descriptors" => Some(
            "is of a file of the rate limit service: it is named under ratelimit: files, or given to --ratelimit",
        ),
        "resources" => Some("belongs into a configuration of servers; this is read as rules of doors"),
        _ => None,
    }
}

fn service(notes: &mut Notes, node: &YamlNode) -> ServiceFiles {
    let mut read = ServiceFiles::default();
    let mut names = |notes: &mut Notes, node: &YamlNode| {
        for item in fields::list(notes, "files", node, "a list of files") {
            match scalar::text("a file", item) {
                Ok(name) => read.files.push(name.to_owned()),
                Err(message) => notes.add(item.place, message),
            }
        }
    };
    if matches!(node.value, YamlValue::List(_)) {
        names(notes, node);
        return read;
    }
    let Some(at) = Fields::read(notes, node, &schema("ratelimit", " in ratelimit", SERVICE)) else {
        return read;
    };
    match at.get("files") {
        Some(files) => names(notes, files),
        None => notes.add(at.place("files"), "files is missing; wanted a list of files"),
    }
    read.merge_domains = fields::read_flag(notes, &at, "merge_domains");
    manner(notes, &at, &mut read.manner);
    read.overrides = fields::limits(notes, &at, "overrides");
    read
}

fn manner(notes: &mut Notes, at: &Fields<'_>, manner: &mut SetManner) {
    manner.fail = fields::fail(notes, at).unwrap_or(manner.fail);
    if let Some(headers) = fields::headers(notes, at) {
        manner.headers = headers;
    }
    let bodies = [("problem", true), ("none", false)];
    manner.has_problem =
        notes.read(at, "body", |node| scalar::one_of("body", node, &bodies)).or(manner.has_problem);
    manner.shadow = fields::read_flag(notes, at, "shadow");
}

fn set(
    notes: &mut Notes,
    name: &str,
    node: &YamlNode,
    resources: &mut BTreeMap<String, usize>,
) -> Option<RuleSet> {
    notes.subject = format!("set {name:?}: ");
    let at = Fields::read(notes, node, &schema("the set", " in a set", SET))?;
    let mut answers = SetManner::default();
    manner(notes, &at, &mut answers);
    let status = notes.read(&at, "deny_status", |node| {
        let value = scalar::whole("deny_status", node, 400.0, STATUS)?;
        let fits = value <= 599.0;
        fits.then_some(value as u16).ok_or_else(|| format!("deny_status {value} is none; wanted {STATUS}"))
    });
    answers.deny_status = status.or(answers.deny_status);
    let overrides = fields::limits(notes, &at, "overrides");
    let overrides =
        overrides.into_iter().map(|(units, window)| Limit::brought(name, units, window)).collect();
    let Some(list) = at.get("rules") else {
        notes.add(at.place("rules"), "rules is missing; wanted a list of rules");
        return None;
    };
    let mut attributing = Attributing::default();
    let (mut rules, mut rows) = (Vec::new(), Vec::new());
    for (index, item) in fields::list(notes, "rules", list, "a list of rules").iter().enumerate() {
        notes.subject = format!("set {name:?}: rules[{index}]: ");
        let mut reader = RuleReader { set: name, index, resources, attributing: &mut attributing };
        if let Some((rule, row)) = reader.rule(notes, item) {
            rules.push(rule);
            rows.push(row);
        }
    }
    let matcher = Matcher::Table(Table::new(attributing.attributes, rows));
    Some(RuleSet { name: name.into(), manner: answers, rules, matcher, overrides })
}

/// Reads the rules of one set.
struct RuleReader<'a> {
    set: &'a str,
    index: usize,
    /// The resources that there are, and the lines of their rules.
    resources: &'a mut BTreeMap<String, usize>,
    attributing: &'a mut Attributing,
}

// === impl RuleReader ===

impl RuleReader<'_> {
    fn rule(&mut self, notes: &mut Notes, node: &Rc<YamlNode>) -> Option<(Rule, super::table::TableRow)> {
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
        let stop = rule.stop;
        Some((rule, super::table::TableRow { conditions, key, stop }))
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
    limits: &[(u32, super::Window)],
    is_keyless: bool,
) -> Vec<(u32, super::Window, LimitKind)> {
    let known = [("exact", 0), ("flow", 1), ("shared", 2)];
    let kind = notes.read(at, "kind", |node| scalar::one_of("kind", node, &known)).or(0);
    kinds_of(notes, at, limits, (kind, is_keyless))
}

/// The same of a rule whose kind is 0 for `exact`, 1 for `flow`, 2 for `shared`.
pub(super) fn kinds_of(
    notes: &mut Notes,
    at: &Fields<'_>,
    limits: &[(u32, super::Window)],
    (kind, is_keyless): (u8, bool),
) -> Vec<(u32, super::Window, LimitKind)> {
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
        _ => match (fields::shared(notes, at, limits), limits.first()) {
            (Some(shared), Some(&(units, window))) => vec![(units, window, LimitKind::Shared(shared))],
            _ => Vec::new(),
        },
    }
}

/// A name of a policy, which goes into fields of answers.
pub(super) fn policy_name(node: &YamlNode) -> Result<Box<str>, String> {
    let text = scalar::text("name", node)?;
    let fits = !text.is_empty()
        && text.len() <= 100
        && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    fits.then(|| text.into()).ok_or_else(|| {
        format!("name {} is none; wanted 1 to 100 printable characters of ASCII", scalar::written(node))
    })
}

#[cfg(test)]
mod tests;
