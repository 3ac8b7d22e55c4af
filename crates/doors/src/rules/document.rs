//! Reads `doors.yaml`: sets of rules on what a request has, and which files of the rate limit service there are besides.
//!
//! ```yaml
//! version: 3
//! wait: 100ms                       # the longest wait for units that lie elsewhere, or for a first lease
//! trusted: [10.0.0.0/8]            # peers that are believed what they forward, beside loopback
//! sets:
//!   edge:                           # /check/edge, and Envoy's domain "edge"
//!     fail: error                   # error, open or closed, where nothing is leased
//!     deny_status: 429
//!     headers: [ietf, retry-after]  # also ietf03, x-ratelimit, kong
//!     request_headers: [ietf]       # what Envoy gives a request that passes along; nothing without it
//!     body: problem                 # or none
//!     metadata: false               # or true, for Envoy
//!     shadow: false
//!     forwarded: x-forwarded        # or x-original, as nginx is told to set them
//!     overrides: [1000/1m]          # the limits that Envoy's requests may bring with them
//!     rules:
//!       - match: {path: "/api/*", method: [GET, POST]}
//!         key: [header.x-tenant, remote_address]
//!         limit: [100/1m, 1000/1h]  # both hold
//!         cost: 1
//! pool: {workers: 500}             # PoolCounter: the most workers that a request may name
//! ratelimit:
//!   files: ["/etc/ratelimit/*.yaml"]
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use lessor_yaml::{FILE, Faults, Fields, Notes, Place, Schema, YamlNode, YamlValue, scalar};

use super::fields::{self, schema};
use super::table::Table;
use super::{FieldKind, Limit, Matcher, RuleBook, RuleSet, SetManner, WAIT};
use crate::web::{Forwarded, Trusted};

mod policy;
mod rule;

use self::policy::Attributing;
use self::rule::RuleReader;
pub(in crate::rules) use self::rule::{KINDS, kinds_of, policy_name};

/// `doors.yaml` as it stands: without the files that it names.
#[derive(Clone, Debug)]
pub struct DoorsFile {
    pub(super) version: u64,
    pub(super) wait: Duration,
    pub(super) trusted: Trusted,
    pub(super) sets: Vec<RuleSet>,
    pub(super) pool: Option<u32>,
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

const WANTED: &str = "wanted sets: with rules, ratelimit: with files, or pool: with workers";
const TOP: &[&str] = &["version", "wait", "trusted", "sets", "pool", "ratelimit"];
const SET: &[&str] = &[
    "fail",
    "deny_status",
    "headers",
    "request_headers",
    "body",
    "metadata",
    "shadow",
    "forwarded",
    "overrides",
    "rules",
];
const SERVICE: &[&str] = &[
    "files",
    "merge_domains",
    "fail",
    "headers",
    "request_headers",
    "body",
    "metadata",
    "shadow",
    "overrides",
];
const VERSION: &str = "a whole number that grows with each edition, as in 3";
const STATUS: &str = "a status from 400 to 599, as in 429";

// === impl DoorsFile ===

impl DoorsFile {
    /// Reads `text`, which is called `name` in faults.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<DoorsFile, Faults> {
        lessor_yaml::document(name, text, WANTED, |root| {
            let mut notes = Notes::default();
            let file = contents(&mut notes, root);
            file.filter(|_| notes.faults.is_empty()).ok_or(notes.faults)
        })
    }

    /// One without sets, for files of the rate limit service alone: whether several of them may have rules of one domain, and the
    /// fields that answers get beside `Retry-After`.
    #[must_use]
    pub fn of_service(merge_domains: bool, fields: Option<FieldKind>) -> DoorsFile {
        let mut file = DoorsFile::default();
        file.service.merge_domains = merge_domains;
        file.service.manner.headers.extend(fields);
        file
    }

    /// The files of the rate limit service that it names.
    #[must_use]
    pub fn service(&self) -> &ServiceFiles {
        &self.service
    }

    /// The rules of it alone.
    #[must_use]
    pub fn into_rules(self) -> RuleBook {
        RuleBook::new(self.version, self.wait, self.sets).trusting(self.trusted).pooling(self.pool)
    }
}

impl Default for DoorsFile {
    fn default() -> DoorsFile {
        DoorsFile {
            version: 0,
            wait: WAIT,
            trusted: Trusted::default(),
            sets: Vec::new(),
            pool: None,
            service: ServiceFiles::default(),
        }
    }
}

impl Default for ServiceFiles {
    fn default() -> ServiceFiles {
        let manner =
            SetManner { headers: vec![FieldKind::RetryAfter], has_problem: false, ..SetManner::default() };
        ServiceFiles { files: Vec::new(), merge_domains: false, manner, overrides: Vec::new() }
    }
}

/// The longest wait that rules may say.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The longest wait of an answer: no more than proxies and the door over HTTP have patience for.
fn wait_of(node: &YamlNode) -> Result<Duration, String> {
    let wait = scalar::time("wait", node)?;
    match wait <= LONGEST_WAIT {
        true => Ok(wait),
        false => Err(format!("wait {} is too long; wanted at most 30s", scalar::written(node))),
    }
}

fn contents(notes: &mut Notes, root: &YamlNode) -> Option<DoorsFile> {
    let top = Fields::read(notes, root, &Schema { hint: hint_at_top, ..schema(FILE, "", TOP) })?;
    let version = notes.read(&top, "version", |node| scalar::whole("version", node, 0.0, VERSION)).or(0.0);
    let wait = notes.read(&top, "wait", wait_of).or(WAIT);
    let trusted = trusted(notes, &top);
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
    let pool = top.get("pool").and_then(|node| fields::pool(notes, node));
    if sets.is_empty() && service.files.is_empty() && pool.is_none() && notes.faults.is_empty() {
        notes.add(Place::START, format!("no rules; {WANTED}"));
    }
    Some(DoorsFile { version: version as u64, wait, trusted, sets, pool, service })
}

/// The networks whose peers are believed, beside loopback.
fn trusted(notes: &mut Notes, top: &Fields<'_>) -> Trusted {
    const WANTED: &str = "a network, as in 10.0.0.0/8";
    let mut networks = Vec::new();
    let listed = top.get("trusted").map(|node| fields::list(notes, "trusted", node, "a list of networks"));
    for item in listed.into_iter().flatten() {
        let network = scalar::text("trusted", item).and_then(|text| {
            let of_one = || text.parse::<IpAddr>().map(IpNet::from);
            text.parse()
                .or_else(|_| of_one())
                .map_err(|_| format!("trusted {} is no network; wanted {WANTED}", scalar::written(item)))
        });
        match network {
            Ok(network) => networks.push(network),
            Err(message) => notes.add(item.place, message),
        }
    }
    Trusted::new(networks)
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
    manner.request_headers = fields::request_headers(notes, at);
    let bodies = [("problem", true), ("none", false)];
    manner.has_problem =
        notes.read(at, "body", |node| scalar::one_of("body", node, &bodies)).or(manner.has_problem);
    manner.has_metadata = fields::read_flag(notes, at, "metadata");
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
    let families = [("x-forwarded", Forwarded::XForwarded), ("x-original", Forwarded::XOriginal)];
    answers.forwarded =
        notes.read(&at, "forwarded", |node| scalar::one_of("forwarded", node, &families)).or_default();
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
    Some(RuleSet { index: 0, name: name.into(), manner: answers, rules, matcher, overrides })
}

#[cfg(test)]
mod tests;
