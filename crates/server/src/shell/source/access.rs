//! Reads a tree as the rules of access, noting everything that is wrong on the way.
//!
//! ```yaml
//! version: 3                         # of this file
//! default: deny                      # or audit: everything is allowed, and what deny would refuse is counted and logged
//! nodes:                             # who may be a node below this one, and which
//!   - {identity: "spiffe://acme/ns/lessor/sa/paris", node: paris, most_clients: 50000, priority: {most: 5}}
//! clients:                           # that very identity first, then globs in order; the first that fits decides
//!   - identity: "spiffe://acme/ns/shop/sa/*"
//!     client_id: "{last}-*"          # {last}: what stands behind the last slash of the identity; absent: any id
//!     resources: ["db/orders", "api/*"]   # absent: all
//!     priority: {most: 3}            # more is refused
//!     max_wants: 200                 # more counts as that
//!     weight: 2                      # stands for two in a fair share
//!     budget: {streams: 50, reports: 100/s, resources: 100}
//! operators:
//!   - {identity: "spiffe://acme/ns/ops/sa/oncall", may: [see, explain, plan, override]}
//!   - {identity: "spiffe://acme/ns/shop/*/*", may: [see, explain], resources: ["db/orders"]}
//!   - {identity: "uid:0", may: [all]}
//! revoked:                           # tokens of these identities that were made before
//!   - {identity: "web", before: "2026-11-24T00:00:00Z"}
//! ```

use std::rc::Rc;
use std::time::SystemTime;

use lessor_yaml::{FILE, Fields, Notes, Place, Schema, YamlNode, YamlValue};

use super::scalar;
use crate::access::{
    Access, Allowance, Budget, ClientRule, NamePattern, NodeRule, OperatorRule, Revoked, Role, RulePlace,
    Section, Stance,
};
use crate::repository::Glob;

/// The fields of a file of rules.
pub(super) const TOP: &[&str] = &["version", "default", "nodes", "clients", "operators", "revoked"];
const NODE: &[&str] = &["identity", "node", "most_clients", "priority", "budget"];
const CLIENT: &[&str] = &["identity", "client_id", "resources", "priority", "max_wants", "weight", "budget"];
const OPERATOR: &[&str] = &["identity", "may", "resources"];
const PRIORITY: &[&str] = &["most"];
const BUDGET: &[&str] = &["streams", "reports", "resources"];
const REVOKED: &[&str] = &["identity", "before"];

const VERSION: &str = "a whole number that grows with each edition, as in 3";
const IDENTITY: &str = "an identity or a glob, in quotes";
const DATE: &str = "a date, as in \"2026-11-24T00:00:00Z\"";
const PER_SECOND: &str = "a number of them a second, as in 100/s";
const WANTS: &str = "a number that is not negative, as in 200";

/// The rules in `root`, or all that is wrong with them.
pub(super) fn access(root: &YamlNode) -> Result<Access, Vec<(Place, String)>> {
    let mut notes = Notes::default();
    let access = contents(&mut notes, root);
    match access {
        Some(access) if notes.faults.is_empty() => Ok(access),
        _ => Err(notes.faults),
    }
}

fn contents(notes: &mut Notes, root: &YamlNode) -> Option<Access> {
    let schema = Schema { hint: hint_at_top, ..schema(FILE, "", TOP) };
    let top = Fields::read(notes, root, &schema)?;
    let version = notes.read(&top, "version", |node| scalar::whole("version", node, 0.0, VERSION));
    let stance = notes.read(&top, "default", |node| {
        scalar::one_of("default", node, &[("deny", Stance::Deny), ("audit", Stance::Audit)])
    });
    let stance = notes.required(&top, "default", "deny, or audit to see what deny would refuse", stance);
    let access = Access {
        version: version.or(0.0) as u64,
        stance: stance.unwrap_or_default(),
        nodes: rules(notes, &top, "nodes", node_rule),
        clients: rules(notes, &top, "clients", client_rule),
        operators: rules(notes, &top, "operators", operator_rule),
        revoked: rules(notes, &top, "revoked", |notes, _, node| revoked(notes, node)),
    };
    if !notes.faults.is_empty() {
        // Of the rules some are missing, and the others are not where they were.
        return None;
    }
    shadowed(notes, &top, "clients", access.clients.iter().map(|rule| &rule.identity));
    shadowed(notes, &top, "operators", access.operators.iter().map(|rule| &rule.identity));
    Some(access)
}

/// A file of the other kind.
fn hint_at_top(name: &str) -> Option<&'static str> {
    (name == "resources").then_some("belongs into a configuration; this is read as rules of access")
}

fn schema(subject: &str, within: &'static str, known: &'static [&'static str]) -> Schema {
    Schema { subject: subject.to_owned(), within, known, hint: |_| None }
}

/// The rules of the list `field`.
fn rules<R>(
    notes: &mut Notes,
    top: &Fields<'_>,
    field: &'static str,
    rule: impl Fn(&mut Notes, usize, &YamlNode) -> Option<R>,
) -> Vec<R> {
    let Some(node) = top.get(field) else { return Vec::new() };
    let items = list(notes, field, node, "a list of rules");
    let mut read = Vec::new();
    for (index, item) in items.iter().enumerate() {
        notes.subject = format!("{field}[{index}]: ");
        read.extend(rule(notes, index, item));
    }
    notes.subject.clear();
    read
}

/// Notes rules that decide about nobody, because one with the same identity stands before them.
fn shadowed<'g>(
    notes: &mut Notes,
    top: &Fields<'_>,
    field: &'static str,
    identities: impl Iterator<Item = &'g Glob>,
) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, identity) in identities.enumerate() {
        match seen.iter().position(|&earlier| earlier == identity.as_str()) {
            Some(first) => {
                let message = format!("{field}[{index}]: identity is that of {field}[{first}] already");
                notes.add(top.place(field), message);
            }
            None => seen.push(identity.as_str()),
        }
    }
}

fn node_rule(notes: &mut Notes, index: usize, node: &YamlNode) -> Option<NodeRule> {
    let at = Fields::read(notes, node, &schema("a rule", " in a rule for nodes", NODE))?;
    let identity = identity(notes, &at);
    let name = notes.read(&at, "node", |node| pattern("node", node));
    let name = notes.required(&at, "node", "the name of the node", name);
    let clients = notes
        .read(&at, "most_clients", |node| scalar::whole("most_clients", node, 1.0, "a whole number from 1"));
    let most_priority = most_priority(notes, &at);
    let budget = budget(notes, &at);
    Some(NodeRule {
        most_clients: clients.is().map(|most| most as u64),
        most_priority,
        budget,
        place: place(Section::Nodes, index, node),
        ..NodeRule::new(identity?, name?)
    })
}

fn client_rule(notes: &mut Notes, index: usize, node: &YamlNode) -> Option<ClientRule> {
    let at = Fields::read(notes, node, &schema("a rule", " in a rule for clients", CLIENT))?;
    let identity = identity(notes, &at);
    let client_id = notes.read(&at, "client_id", |node| pattern("client_id", node));
    let resources = globs(notes, &at, "resources");
    let most_wants = notes.read(&at, "max_wants", |node| {
        let value = scalar::number("max_wants", node, WANTS)?;
        let fits = value >= 0.0 && value.is_finite();
        fits.then_some(value).ok_or_else(|| format!("max_wants {value} is out of bounds; wanted {WANTS}"))
    });
    let weight =
        notes.read(&at, "weight", |node| scalar::whole("weight", node, 1.0, "a whole number from 1"));
    let most_priority = most_priority(notes, &at);
    let budget = budget(notes, &at);
    let weight = weight.or(1.0).min(f64::from(u32::MAX)) as u32;
    Some(ClientRule {
        client_id: client_id.is(),
        resources,
        allowance: Allowance { most_priority, most_wants: most_wants.is(), weight },
        budget,
        place: place(Section::Clients, index, node),
        ..ClientRule::new(identity?)
    })
}

fn operator_rule(notes: &mut Notes, index: usize, node: &YamlNode) -> Option<OperatorRule> {
    let at = Fields::read(notes, node, &schema("a rule", " in a rule for operators", OPERATOR))?;
    let identity = identity(notes, &at);
    let resources = globs(notes, &at, "resources");
    let names = Role::ALL.map(Role::as_str);
    let Some(list_of_roles) = at.get("may") else {
        let message = format!("may is missing; wanted a list of {}", scalar::listed(&names, "and"));
        notes.add(at.place("may"), message);
        return None;
    };
    let mut may = Vec::new();
    for item in list(notes, "may", list_of_roles, "a list of roles") {
        match scalar::one_of("may", item, &Role::ALL.map(|role| (role.as_str(), role))) {
            Ok(role) => may.push(role),
            Err(message) => notes.add(item.place, message),
        }
    }
    Some(OperatorRule { identity: identity?, may, resources, place: place(Section::Operators, index, node) })
}

fn revoked(notes: &mut Notes, node: &YamlNode) -> Option<Revoked> {
    let at = Fields::read(notes, node, &schema("an entry", " in revoked", REVOKED))?;
    let identity = identity(notes, &at);
    let before = notes.read(&at, "before", date);
    let before = notes.required(&at, "before", DATE, before);
    Some(Revoked { identity: identity?, before: before? })
}

fn identity(notes: &mut Notes, at: &Fields<'_>) -> Option<Glob> {
    let identity = notes.read(at, "identity", |node| glob("identity", node));
    notes.required(at, "identity", IDENTITY, identity)
}

fn most_priority(notes: &mut Notes, at: &Fields<'_>) -> Option<i64> {
    let node = at.get("priority")?;
    let within = Fields::read(notes, node, &schema("priority", " in priority", PRIORITY))?;
    let wanted = "the greatest priority that may be had, as in 3";
    let most = notes.read(&within, "most", |node| scalar::whole("most", node, -scalar::LAST, wanted));
    notes.required(&within, "most", wanted, most).map(|most| most as i64)
}

fn budget(notes: &mut Notes, at: &Fields<'_>) -> Budget {
    let Some(node) = at.get("budget") else { return Budget::default() };
    let Some(within) = Fields::read(notes, node, &schema("budget", " in budget", BUDGET)) else {
        return Budget::default();
    };
    let [streams, resources] = ["streams", "resources"].map(|field| {
        let count =
            notes.read(&within, field, |node| scalar::whole(field, node, 1.0, "a whole number from 1"));
        count.is().map(|count| count.min(f64::from(u32::MAX)) as u32)
    });
    let reports = notes.read(&within, "reports", |node| per_second("reports", node)).is();
    Budget { streams, reports, resources }
}

fn globs(notes: &mut Notes, at: &Fields<'_>, field: &'static str) -> Option<Vec<Glob>> {
    let node = at.get(field)?;
    let mut globs = Vec::new();
    for item in list(notes, field, node, "a list of names and globs") {
        match glob(field, item) {
            Ok(glob) => globs.push(glob),
            Err(message) => notes.add(item.place, message),
        }
    }
    Some(globs)
}

fn list<'n>(notes: &mut Notes, field: &str, node: &'n YamlNode, wanted: &str) -> &'n [Rc<YamlNode>] {
    match &node.value {
        YamlValue::List(items) => items,
        _ => {
            notes.add(node.place, format!("{field} is {}; wanted {wanted}", scalar::shape(node)));
            &[]
        }
    }
}

fn glob(field: &str, node: &YamlNode) -> Result<Glob, String> {
    let text = scalar::text(field, node)?;
    Glob::new(text).map_err(|bad| format!("{field} {:?} is malformed: {bad}", scalar::shown(text)))
}

fn pattern(field: &str, node: &YamlNode) -> Result<NamePattern, String> {
    NamePattern::new(scalar::text(field, node)?).map_err(|bad| format!("{field} {bad}"))
}

fn per_second(field: &str, node: &YamlNode) -> Result<f64, String> {
    let text = scalar::text(field, node)?;
    let rate = text.strip_suffix("/s").and_then(|number| number.trim().parse::<f64>().ok());
    match rate {
        Some(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err(format!("{field} {} is no rate; wanted {PER_SECOND}", scalar::written(node))),
    }
}

fn date(node: &YamlNode) -> Result<u64, String> {
    let text = scalar::text("before", node)?;
    let date = humantime::parse_rfc3339_weak(text).ok();
    let since = date.and_then(|date| date.duration_since(SystemTime::UNIX_EPOCH).ok());
    since
        .map(|since| since.as_secs())
        .ok_or_else(|| format!("before {} is no date; wanted {DATE}", scalar::written(node)))
}

fn place(section: Section, index: usize, node: &YamlNode) -> Option<RulePlace> {
    Some(RulePlace { section, index, line: Some(node.place.line) })
}

#[cfg(test)]
mod tests;
