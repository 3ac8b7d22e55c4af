//! Reads files of the rate limit service (envoyproxy/ratelimit) as they are, and tells their faults in its words.
//!
//! Beside `rate_limit` there may be a block of our own, which that service would refuse:
//!
//! ```yaml
//! domain: mongo_cps
//! descriptors:
//!   - key: database
//!     value: users
//!     rate_limit: {unit: second, requests_per_unit: 500}
//!     x-lessor:
//!       kind: exact          # or flow, shared
//!       window: 30s          # any window, in place of the unit
//!       also: [10000/1h]     # more limits, all of which hold
//!       fail: open
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_yaml::{FILE, Faults, Fields, Notes, Place, YamlNode, YamlValue, scalar};

use super::document::{DoorsFile, KINDS, ServiceFiles, kinds_of, policy_name};
use super::fields::{self, schema};
use super::limits::{self, TimeUnit, Window};
use super::matcher::{MOST_LEVELS, Tree, TreePlace, ValueMatch};
use super::{Limit, LimitKind, Matcher, Rule, RuleBook, RuleSet};
use crate::name;
use crate::pattern::Pattern;

/// The rules of any number of files.
#[derive(Clone, Debug)]
pub struct ServiceRules {
    as_said: ServiceFiles,
    domains: Vec<DomainDraft>,
}

/// The rules of one domain so far.
#[derive(Clone, Debug)]
struct DomainDraft {
    name: Box<str>,
    tree: Tree,
    rules: Vec<Rule>,
}

/// A descriptor that is being read: where it stands in the tree, and how it is called.
struct Level<'a> {
    place: TreePlace,
    depth: usize,
    /// The path as the service writes it in faults: `domain.key_value`.
    shown: String,
    /// The path in names of resources.
    resource: String,
    is_open: bool,
    domain: &'a mut DomainDraft,
}

const TOP: &[&str] = &["domain", "descriptors"];
const DESCRIPTOR: &[&str] = &[
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "shadow_mode",
    "quota_mode",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
    "x-lessor",
];
const RATE_LIMIT: &[&str] = &["unit", "requests_per_unit", "unlimited", "name", "replaces"];
const REPLACES: &[&str] = &["name"];
const OURS: &[&str] = &["kind", "window", "also", "charge", "fail", "ask", "capacity", "hard_limit", "tiers"];

/// From this rate on a rule without open values is kept as a rate, of which a window of a second says as much.
const FLOW_FROM: u32 = 10_000;

// === impl ServiceRules ===

impl ServiceRules {
    /// No rules yet.
    #[must_use]
    pub fn new(as_said: ServiceFiles) -> ServiceRules {
        ServiceRules { as_said, domains: Vec::new() }
    }

    /// Adds those of a file.
    ///
    /// # Errors
    /// All that is wrong with it. The rules are of no use then.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), Faults> {
        lessor_yaml::document(name, text, "wanted domain: and descriptors", |root| {
            let mut notes = Notes::default();
            self.file(&mut notes, root);
            match notes.faults.is_empty() {
                true => Ok(()),
                false => Err(notes.faults.into_iter().map(in_their_words).collect()),
            }
        })
    }

    /// The rules as sets, one for each domain.
    #[must_use]
    pub fn into_sets(self) -> Vec<RuleSet> {
        let ServiceRules { as_said, domains } = self;
        let set = |domain: DomainDraft| {
            let brought = |&(units, window): &(u32, Window)| Limit::brought(&domain.name, units, window);
            RuleSet {
                index: 0,
                overrides: as_said.overrides.iter().map(brought).collect(),
                manner: as_said.manner.clone(),
                matcher: Matcher::Tree(domain.tree),
                rules: domain.rules,
                name: domain.name,
            }
        };
        domains.into_iter().map(set).collect()
    }

    /// The rules of `doors` and of these, together.
    ///
    /// # Errors
    /// The name of a set that both have.
    pub fn join(self, doors: DoorsFile) -> Result<RuleBook, String> {
        let DoorsFile { version, wait, trusted, mut sets, pool, .. } = doors;
        for set in self.into_sets() {
            if sets.iter().any(|own| own.name == set.name) {
                return Err(format!(
                    "set {:?} is a domain of a file of the rate limit service too; wanted another name for one of them",
                    set.name
                ));
            }
            sets.push(set);
        }
        Ok(RuleBook::new(version, wait, sets).trusting(trusted).pooling(pool))
    }

    fn file(&mut self, notes: &mut Notes, root: &YamlNode) {
        let Some(top) = Fields::read(notes, root, &schema(FILE, "", TOP)) else { return };
        let domain = notes.read(&top, "domain", |node| scalar::text("domain", node)).is().unwrap_or_default();
        if domain.is_empty() {
            notes.add(
                top.place("domain"),
                "config file cannot have empty domain; wanted domain: and its name",
            );
            return;
        }
        let known = self.domains.iter().position(|known| *known.name == *domain);
        if known.is_some() && !self.as_said.merge_domains {
            let found = format!(
                "duplicate domain '{domain}' in config file; wanted one file, or merge_domains: true"
            );
            notes.add(top.place("domain"), found);
            return;
        }
        let place = known.unwrap_or_else(|| {
            self.domains.push(DomainDraft { name: domain.into(), tree: Tree::new(), rules: Vec::new() });
            self.domains.len() - 1
        });
        let domain = &mut self.domains[place];
        let mut resource = String::from("rl/");
        name::encode_part(domain.name.as_bytes(), &mut resource);
        let (place, shown) = (domain.tree.root(), domain.name.to_string());
        let mut level = Level { place, depth: 0, shown, resource, is_open: false, domain };
        if let Some(node) = top.get("descriptors") {
            level.descriptors(notes, node);
        }
    }
}

// === impl Level ===

impl Level<'_> {
    fn descriptors(&mut self, notes: &mut Notes, node: &YamlNode) {
        for item in fields::list(notes, "descriptors", node, "a list of descriptors") {
            if !matches!(item.value, YamlValue::Map(_)) {
                let shown = scalar::written(item);
                let found = format!("config error, yaml file contains list of type other than map: {shown}");
                notes.add(item.place, found);
                continue;
            }
            self.descriptor(notes, item);
        }
    }

    fn descriptor(&mut self, notes: &mut Notes, node: &YamlNode) {
        let Some(at) = Fields::read(notes, node, &schema("a descriptor", " in a descriptor", DESCRIPTOR))
        else {
            return;
        };
        let key = notes.read(&at, "key", |node| scalar::text("key", node)).is().unwrap_or_default();
        if key.is_empty() {
            return notes.add(at.place("key"), "descriptor has empty key; wanted key: and its name");
        }
        if self.depth == MOST_LEVELS {
            return notes.add(node.place, format!("descriptors are nested deeper than {MOST_LEVELS} levels"));
        }
        let value = notes.read(&at, "value", |node| scalar::text("value", node)).is().unwrap_or_default();
        let is_shared = fields::read_flag(notes, &at, "share_threshold");
        let composite = if value.is_empty() { key.to_owned() } else { format!("{key}_{value}") };
        let shown = format!("{}.{composite}", self.shown);
        if is_shared && !value.contains('*') {
            notes.add(
                at.place("share_threshold"),
                format!("share_threshold can only be used with wildcard values, but found key '{composite}'; wanted a value with *"),
            );
        }
        let matches = value_match(value, is_shared);
        let Ok(place) = self.domain.tree.add(self.place, key, &matches) else {
            return notes.add(at.place("key"), format!("duplicate descriptor composite key '{shown}'"));
        };
        let is_open = match matches {
            ValueMatch::Exact(_) | ValueMatch::Pattern { is_shared: true, .. } => false,
            ValueMatch::Pattern { .. } | ValueMatch::Any => true,
        };
        let mut resource = self.resource.clone();
        resource.push(if self.depth == 0 { '/' } else { '.' });
        name::encode_part(key.as_bytes(), &mut resource);
        if !value.is_empty() {
            resource.push('=');
            name::encode_part(value.as_bytes(), &mut resource);
        }
        let is_open = self.is_open || is_open;
        let domain = &mut *self.domain;
        let mut level = Level { place, depth: self.depth + 1, shown, resource, is_open, domain };
        level.rule(notes, &at);
        if let Some(node) = at.get("descriptors") {
            level.descriptors(notes, node);
        }
    }

    /// Puts the rule of this level into the tree, if it has one.
    fn rule(&mut self, notes: &mut Notes, at: &Fields<'_>) {
        let name = self.resource.strip_prefix("rl/").unwrap_or(&self.resource);
        let mut rule = Rule::new(name, &self.resource);
        rule.shadow = fields::read_flag(notes, at, "shadow_mode");
        rule.quota = fields::read_flag(notes, at, "quota_mode");
        for flag in ["detailed_metric", "value_to_metric"] {
            fields::read_flag(notes, at, flag);
        }
        let ours = at.get("x-lessor");
        let ours = ours.and_then(|node| Fields::read(notes, node, &schema("x-lessor", " in x-lessor", OURS)));
        let Some(node) = at.get("rate_limit") else {
            if ours.is_some() {
                notes.add(
                    at.place("x-lessor"),
                    "x-lessor says more of a limit, and there is none; wanted rate_limit beside it",
                );
            }
            return;
        };
        let Some(limit) = Fields::read(notes, node, &schema("rate_limit", " in rate_limit", RATE_LIMIT))
        else {
            return;
        };
        self.policies(notes, &limit, &mut rule);
        rule.unlimited = fields::read_flag(notes, &limit, "unlimited");
        let base = base_limit(notes, &limit, ours.as_ref(), rule.unlimited);
        let mut limits: Vec<(u32, Window)> = base.into_iter().collect();
        if let Some(ours) = &ours {
            limits.extend(fields::limits(notes, ours, "also"));
            rule.charge = fields::charge(notes, ours);
            rule.fail = fields::fail(notes, ours);
            rule.ask = fields::read_flag(notes, ours, "ask");
        }
        for (units, window, kind) in self.kinds(notes, ours.as_ref(), &limits) {
            rule.limit(units, window, kind);
        }
        if let Some(ours) = &ours {
            fields::settle_concurrency(notes, ours, &mut rule);
        }
        let place = self.domain.rules.len();
        self.domain.rules.push(rule);
        self.domain.tree.put(self.place, place);
    }

    /// The ways in which the limits are kept: exactly, but for high rates of a second without open values.
    fn kinds(
        &self,
        notes: &mut Notes,
        ours: Option<&Fields<'_>>,
        limits: &[(u32, Window)],
    ) -> Vec<(u32, Window, LimitKind)> {
        let is_flow = match limits {
            [(units, window)] => {
                !self.is_open && *units > FLOW_FROM && window.length() == Duration::from_secs(1)
            }
            _ => false,
        };
        let usual = if is_flow { LimitKind::Flow } else { LimitKind::Exact };
        let Some(ours) = ours else {
            return limits.iter().map(|&(units, window)| (units, window, usual.clone())).collect();
        };
        let kind = notes.read(ours, "kind", |node| scalar::one_of("kind", node, &KINDS));
        kinds_of(notes, ours, limits, (kind.or(u8::from(is_flow)), !self.is_open))
    }

    fn policies(&self, notes: &mut Notes, limit: &Fields<'_>, rule: &mut Rule) {
        rule.policy = notes.read(limit, "name", policy_name).is();
        let Some(node) = limit.get("replaces") else { return };
        for item in fields::list(notes, "replaces", node, "a list of {name: ...}") {
            if !matches!(item.value, YamlValue::Map(_)) {
                let shown = scalar::written(item);
                let found = format!("config error, yaml file contains list of type other than map: {shown}");
                notes.add(item.place, found);
                continue;
            }
            let Some(at) = Fields::read(notes, item, &schema("replaces", " in replaces", REPLACES)) else {
                continue;
            };
            let name = notes.read(&at, "name", |node| scalar::text("name", node)).is().unwrap_or_default();
            if name.is_empty() {
                notes.add(
                    item.place,
                    "should not have an empty replaces entry; wanted the name of another policy",
                );
            } else if rule.policy.as_deref() == Some(name) {
                notes.add(
                    item.place,
                    "replaces should not contain name of same descriptor; wanted that of another",
                );
            }
            rule.replaces.push(name.into());
        }
    }
}

fn value_match(value: &str, is_shared: bool) -> ValueMatch {
    let pattern = Pattern::new(value);
    match value {
        "" => ValueMatch::Any,
        _ if pattern.is_open() => ValueMatch::Pattern { pattern, is_shared },
        value => ValueMatch::Exact(value.into()),
    }
}

/// The limit that `rate_limit` says, in the window that it or our block says.
fn base_limit(
    notes: &mut Notes,
    limit: &Fields<'_>,
    ours: Option<&Fields<'_>>,
    is_unlimited: bool,
) -> Option<(u32, Window)> {
    let unit = notes.read(limit, "unit", |node| scalar::text("unit", node)).is().unwrap_or_default();
    let known = limits::UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|&(_, unit)| unit);
    if is_unlimited {
        if known.is_some() {
            notes.add(
                limit.place("unit"),
                "should not specify rate limit unit when unlimited; wanted one of them",
            );
        }
        return None;
    }
    let window = ours.and_then(|ours| {
        let read = notes.read(ours, "window", |node| Window::new(scalar::time("window", node)?));
        read.is()
    });
    let Some(unit) = known.or(window.map(|_| TimeUnit::Second)) else {
        let names: Vec<&str> = limits::UNITS.iter().map(|&(name, _)| name).collect();
        let wanted = scalar::wanted(unit, &names);
        notes
            .add(limit.place("unit"), format!("invalid rate limit unit '{}'; {wanted}", scalar::shown(unit)));
        return None;
    };
    // Without it the service counts up to nothing.
    let units = notes.read(limit, "requests_per_unit", |node| fields::hits("requests_per_unit", node)).or(0);
    Some((units, window.unwrap_or(Window::of(unit))))
}

/// The words of the service for keys that it does not know.
fn in_their_words((place, message): (Place, String)) -> (Place, String) {
    let found = message.strip_prefix("unknown field \"").and_then(|rest| rest.split_once('"'));
    let Some((name, rest)) = found else { return (place, message) };
    let hint = rest.split_once("; ").map_or("", |(_, hint)| hint);
    let words = match name.parse::<f64>() {
        Ok(_) => format!("config error, key is not of type string: {name}; {hint}"),
        Err(_) => format!("config error, unknown key '{name}'; {hint}"),
    };
    (place, words)
}

/// Reads `doors` and the files of the rate limit service, by their names and texts.
///
/// # Errors
/// All that is wrong, in words with places.
pub fn join(doors: DoorsFile, files: &[(String, String)]) -> Result<RuleBook, Vec<String>> {
    let mut rules = ServiceRules::new(doors.service.clone());
    let faults: BTreeMap<usize, String> = files
        .iter()
        .enumerate()
        .filter_map(|(index, (name, text))| Some((index, rules.add(name, text).err()?.to_string())))
        .collect();
    if !faults.is_empty() {
        return Err(faults.into_values().collect());
    }
    rules.join(doors).map_err(|fault| vec![fault])
}

#[cfg(test)]
mod tests;
