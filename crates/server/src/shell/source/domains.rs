//! Reads what a template says about domains.

use std::sync::Arc;

use lessor_algorithms::tiers::{
    Contract, MOST_POLICIES, MOST_TIERS, Tier, TierPolicy, Window, Windows, normalise,
};
use lessor_client::internals::domain::{MOST_OVERRIDES, NotStrict, Override, Policies, Rules, Scope, Share};
use lessor_yaml::{Fields, Notes, Place, Reading, Schema, YamlNode, YamlValue};

use super::scalar;
use crate::repository::{Change, Domains, Glob};

const DOMAINS: &[&str] =
    &["scope", "unheard", "enforce", "default", "overrides", "allow_unconfigured", "ignore_configured"];
const OVERRIDE: &[&str] = &["domain", "policy"];
const POLICY: &[&str] = &["hard_limit", "global_limit", "windows", "tiers"];
const TIER: &[&str] = &["limit", "window", "active", "cooldown", "skippable", "count"];

/// Bytes in the name of a domain, or in a beginning of one.
const LONGEST_NAME: usize = 256;

const LIMIT: &str = "a whole number from 1 to 4294967295";
const COUNT: &str = "exact, sliding/K with K slices from 1 to 65535, fixed or bucket";
const TIERS: &str = "a list of tiers, which may be empty: then the resource is closed to the domain";

/// Reads policies of domains, and notes what was made of them.
struct PolicyReader<'a> {
    notes: &'a mut Notes,
    scope: Scope,
    changes: Vec<Change>,
}

/// The part of `template` about domains, if there is one; nothing also if that cannot be taken, which has been
/// noted.
pub(super) fn domains(notes: &mut Notes, template: &Fields<'_>) -> Option<Domains> {
    let node = template.get("domains")?;
    let outer = notes.subject.clone();
    notes.subject.push_str("domains: ");
    let mut reader = PolicyReader { notes, scope: Scope::default(), changes: Vec::new() };
    let policies = reader.policies(node);
    let changes = reader.changes;
    notes.subject = outer;
    Some(Domains { policies: Arc::new(policies?), changes })
}

fn schema(subject: &str, within: &'static str, known: &'static [&'static str]) -> Schema {
    Schema { subject: subject.to_owned(), within, known, hint: |_| None }
}

// === impl PolicyReader ===

impl PolicyReader<'_> {
    fn policies(&mut self, node: &YamlNode) -> Option<Policies> {
        let at = Fields::read(self.notes, node, &schema("it", " in domains", DOMAINS))?;
        let scope = self.notes.read(&at, "scope", scope).or(Scope::default());
        self.scope = scope;
        let refuses_unheard = self.refuses_unheard(&at, scope);
        let unenforced = self.unenforced(&at, scope);
        let default = at.get("default").map(|node| self.contract("default", node));
        let overrides = self.overrides(&at);
        let allow_unconfigured = self.beginnings(&at, "allow_unconfigured");
        let ignore_configured = self.beginnings(&at, "ignore_configured");
        let default = match default {
            Some(contract) => Some(contract?),
            None => None,
        };
        let rules = Rules {
            scope,
            refuses_unheard,
            unenforced,
            default,
            overrides,
            allow_unconfigured,
            ignore_configured,
        };
        let policies = Policies::new(rules);
        policies.map_err(|bad| self.notes.add(at.place("overrides"), format!("overrides: {bad}"))).ok()
    }

    /// Whether those who would be refused while the server is not heard of are refused indeed.
    fn refuses_unheard(&mut self, at: &Fields<'_>, scope: Scope) -> bool {
        let read = self.notes.read(at, "unheard", |node| {
            scalar::one_of("unheard", node, &[("grant", false), ("refuse", true)])
        });
        if scope != Scope::Shared && !matches!(read, Reading::Absent) {
            let message = "unheard means nothing with this scope; wanted it with scope shared only";
            self.notes.add(at.place("unheard"), message);
        }
        read.or(false)
    }

    /// Whether what they refuse is granted, and counted.
    fn unenforced(&mut self, at: &Fields<'_>, scope: Scope) -> bool {
        let read = self
            .notes
            .read(at, "enforce", |node| scalar::one_of("enforce", node, &[("true", false), ("false", true)]));
        if scope == Scope::Strict && matches!(read, Reading::Is(true)) {
            let message =
                "enforce lets pass what a lease of a domain refuses; wanted another scope than strict";
            self.notes.add(at.place("enforce"), message);
        }
        read.or(false)
    }

    fn overrides(&mut self, at: &Fields<'_>) -> Vec<Override> {
        let Some(node) = at.get("overrides") else { return Vec::new() };
        let items = self.list("overrides", node, "a list of overrides, each with domain and policy");
        if items.len() > MOST_OVERRIDES {
            let message = format!("{} overrides; wanted at most {MOST_OVERRIDES}", items.len());
            self.notes.add(node.place, message);
            return Vec::new();
        }
        items.iter().filter_map(|item| self.single(item)).collect()
    }

    fn single(&mut self, node: &YamlNode) -> Option<Override> {
        let at = Fields::read(self.notes, node, &schema("an override", " in an override", OVERRIDE))?;
        let glob = self.notes.read(&at, "domain", |node| {
            let text = name("domain", node)?;
            Glob::new(text).map_err(|bad| format!("domain {:?} is malformed: {bad}", scalar::shown(text)))
        });
        let glob = self.notes.required(&at, "domain", "a name or a glob, in quotes", glob);
        let called = match &glob {
            Some(glob) => format!("{:?}", scalar::shown(glob.as_str())),
            None => "override".to_owned(),
        };
        let Some(policy) = at.get("policy") else {
            let message = format!("{called}: policy is missing; wanted a policy or a list of them");
            self.notes.add(at.place("policy"), message);
            return None;
        };
        let contract = self.contract(&called, policy);
        Some(Override { glob: glob?, contract: contract? })
    }

    /// One policy, or a list of them.
    fn contract(&mut self, called: &str, node: &YamlNode) -> Option<Contract> {
        let policies: Vec<Option<TierPolicy>> = match &node.value {
            YamlValue::List(items) if items.is_empty() || items.len() > MOST_POLICIES => {
                let message = format!("{called}: {} policies; wanted 1 to {MOST_POLICIES}", items.len());
                self.notes.add(node.place, message);
                return None;
            }
            YamlValue::List(items) => {
                let numbered = items.iter().zip(1..);
                numbered
                    .map(|(item, number)| self.policy(&format!("{called}, policy {number}"), item))
                    .collect()
            }
            _ => vec![self.policy(called, node)],
        };
        let contract = Contract::new(policies.into_iter().collect::<Option<_>>()?);
        contract.map_err(|invalid| self.notes.add(node.place, format!("{called}: {invalid}"))).ok()
    }

    /// One policy, as it is meant.
    fn policy(&mut self, called: &str, node: &YamlNode) -> Option<TierPolicy> {
        let outer = self.notes.subject.clone();
        self.notes.subject.push_str(&format!("{called}: "));
        let policy = self.written_policy(node);
        self.notes.subject = outer;
        let (policy, changes) = normalise(&policy?);
        let change = |what| Change { policy: called.to_owned(), what };
        self.changes.extend(changes.into_iter().map(change));
        Some(policy)
    }

    fn written_policy(&mut self, node: &YamlNode) -> Option<TierPolicy> {
        let at = Fields::read(self.notes, node, &schema("a policy", " in a policy", POLICY))?;
        let [hard, global] = ["hard_limit", "global_limit"]
            .map(|field| self.notes.read(&at, field, |node| limit(field, node)));
        let windows = self.notes.read(&at, "windows", windows).or(Windows::Keep);
        let is_strict = self.scope == Scope::Strict;
        let tiers = match (at.get("tiers"), &hard) {
            (Some(tiers), _) => self.tiers(tiers)?,
            // What it may do in a second is all that is said.
            (None, Reading::Is(limit)) if is_strict => vec![in_a_second(*limit)],
            (None, Reading::Bad) if is_strict => return None,
            (None, _) => {
                let wanted = if is_strict { "a hard_limit, or tiers" } else { TIERS };
                self.notes.add(at.place("tiers"), format!("tiers is missing; wanted {wanted}"));
                return None;
            }
        };
        let policy = TierPolicy::new(tiers, hard.is(), global.is());
        let policy = policy.map_err(|invalid| self.notes.add(node.place, invalid.to_string())).ok()?;
        let policy = policy.with_windows(windows);
        match Share::of(&Contract::from(policy.clone())) {
            Err(why) if is_strict => {
                self.notes.add(place(&at, &why), why.to_string());
                None
            }
            _ => Some(policy),
        }
    }

    fn tiers(&mut self, node: &YamlNode) -> Option<Vec<Tier>> {
        let items = self.list("tiers", node, TIERS);
        if items.len() > MOST_TIERS {
            self.notes.add(node.place, format!("{} tiers; wanted at most {MOST_TIERS}", items.len()));
            return None;
        }
        let read: Vec<_> = items.iter().zip(1..).map(|(item, number)| self.tier(number, item)).collect();
        read.into_iter().collect()
    }

    fn tier(&mut self, number: usize, node: &YamlNode) -> Option<Tier> {
        let outer = self.notes.subject.clone();
        self.notes.subject.push_str(&format!("tier {number}: "));
        let tier = self.written_tier(node);
        self.notes.subject = outer;
        tier
    }

    fn written_tier(&mut self, node: &YamlNode) -> Option<Tier> {
        let notes = &mut *self.notes;
        let at = Fields::read(notes, node, &schema("a tier", " in a tier", TIER))?;
        let time = |field: &'static str| move |node| scalar::time(field, node);
        let limit = notes.read(&at, "limit", |node| limit("limit", node));
        let limit = notes.required(&at, "limit", LIMIT, limit);
        let window = notes.read(&at, "window", window);
        let window = notes.required(&at, "window", "a time with its unit, as in 10s", window);
        let active = match (notes.read(&at, "active", time("active")), window) {
            // There is nothing else that it could be.
            (Reading::Absent, Some(window)) if self.scope == Scope::Strict => Some(window),
            (active, _) => notes.required(&at, "active", "a time with its unit, as in 1m", active),
        };
        let cooldown = notes.read(&at, "cooldown", time("cooldown"));
        let is_skippable = notes.read(&at, "skippable", yes_or_no);
        let kind = notes.read(&at, "count", count);
        Some(Tier {
            limit: limit?,
            window: window?,
            active: active?,
            cooldown: cooldown.or(std::time::Duration::ZERO),
            is_skippable: is_skippable.or(false),
            kind: kind.or(Window::Exact),
        })
    }

    fn beginnings(&mut self, at: &Fields<'_>, field: &'static str) -> Vec<String> {
        let Some(node) = at.get(field) else { return Vec::new() };
        let items = self.list(field, node, "a list of beginnings of names");
        let mut names = Vec::new();
        for item in items {
            match name(field, item) {
                Ok(name) => names.push(name.to_owned()),
                Err(message) => self.notes.add(item.place, message),
            }
        }
        names
    }

    fn list<'n>(&mut self, field: &str, node: &'n YamlNode, wanted: &str) -> &'n [std::rc::Rc<YamlNode>] {
        match &node.value {
            YamlValue::List(items) => items,
            _ => {
                let shape = scalar::shape(node);
                self.notes.add(node.place, format!("{field} is {shape}; wanted {wanted}"));
                &[]
            }
        }
    }
}

/// Whose hits count.
fn scope(node: &YamlNode) -> Result<Scope, String> {
    let known = [("client", Scope::Client), ("shared", Scope::Shared), ("strict", Scope::Strict)];
    scalar::one_of("scope", node, &known)
}

/// A hard limit as a tier.
fn in_a_second(limit: u32) -> Tier {
    let second = std::time::Duration::from_secs(1);
    let (window, active, cooldown) = (second, second, std::time::Duration::ZERO);
    Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact }
}

/// Where in a policy it stands that cannot be leased.
fn place(policy: &Fields<'_>, why: &NotStrict) -> Place {
    let tier = || match policy.get("tiers").map(|tiers| &tiers.value) {
        Some(YamlValue::List(tiers)) => tiers.first().map(|tier| tier.place),
        _ => None,
    };
    match why.field() {
        field @ ("tiers" | "global_limit" | "windows") => policy.place(field),
        _ => tier().unwrap_or_else(|| policy.place("hard_limit")),
    }
}

fn name<'n>(field: &str, node: &'n YamlNode) -> Result<&'n str, String> {
    let text = scalar::text(field, node)?;
    match text.len() {
        0..=LONGEST_NAME => Ok(text),
        len => Err(format!("{field} has {len} bytes; wanted at most {LONGEST_NAME}")),
    }
}

fn limit(field: &str, node: &YamlNode) -> Result<u32, String> {
    let value = scalar::number(field, node, LIMIT)?;
    let whole = value.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&value);
    match whole {
        true => Ok(value as u32),
        false => Err(format!("{field} {} is out of bounds; wanted {LIMIT}", scalar::written(node))),
    }
}

fn window(node: &YamlNode) -> Result<std::time::Duration, String> {
    let window = scalar::time("window", node)?;
    match window.is_zero() {
        true => Err(format!("window {} is empty; wanted a time", scalar::written(node))),
        false => Ok(window),
    }
}

fn yes_or_no(node: &YamlNode) -> Result<bool, String> {
    scalar::one_of("skippable", node, &[("true", true), ("false", false)])
}

/// The way in which earlier hits count when a tier is entered again.
fn windows(node: &YamlNode) -> Result<Windows, String> {
    scalar::one_of("windows", node, &[("keep", Windows::Keep), ("reset", Windows::Reset)])
}

fn count(node: &YamlNode) -> Result<Window, String> {
    let text = scalar::text("count", node)?;
    let slices = text.strip_prefix("sliding/").and_then(|slices| slices.parse().ok());
    match (text, slices) {
        ("exact", _) => Ok(Window::Exact),
        ("fixed", _) => Ok(Window::Fixed),
        ("bucket", _) => Ok(Window::Bucket),
        (_, Some(slices)) if slices > 0 => Ok(Window::Sliding { slices }),
        _ => Err(format!("count {} means nothing; wanted {COUNT}", scalar::written(node))),
    }
}
