//! A draft of a template, as a file has it, with the places of its fields.

use std::time::Duration;

use lessor_algorithms::SharePolicy;
use lessor_proto::Amount;
use lessor_yaml::{Fields, Notes, Place, Reading, Schema, YamlNode, YamlValue};

use super::domains::domains;
use super::reading::ReadNumbers;
use super::scalar;
use crate::repository::{
    Domains, Field, Fraction, Glob, Kind, LEGACY_HOLD, Legacy, Problem, Rotate, SafeCapacity, SmallLeases,
    Template,
};

const TEMPLATE: &[&str] = &[
    "identifier_glob",
    "capacity",
    "safe_capacity",
    "description",
    "kind",
    "rotate",
    "quantum",
    "window",
    "workers",
    "legacy",
    "legacy_hold",
    "legacy_max_fraction",
    "spare_to_nodes",
    "safe_fraction",
    "safe_lease",
    "burst",
    "small_leases",
    "most_priority",
    "most_clients",
    "enforce",
    "beside",
    "domains",
    "algorithm",
];
const ALGORITHM: &[&str] =
    &["kind", "lease_length", "refresh_interval", "learning_mode_duration", "parameters"];
const BESIDE: &[&str] = &["capacity"];
const PARAMETER: &[&str] = &["name", "value"];

const UNITS: &str = "a number, as in 500";
const SAFE_UNITS: &str = "a number, or -1 for no limit";
const FRACTION: &str = "a number from 0 to 1, as in 0.25";
const SECONDS: &str = "whole seconds, as in 60 or 60s";
/// The stand-ins for a time that cannot be read: no lease is shorter than the first, nor longer than the
/// second.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// The fields of a template that the rules for several of them may find wrong.
const PLACED: [Field; 18] = [
    Field::IdentifierGlob,
    Field::Capacity,
    Field::SafeCapacity,
    Field::Rotate,
    Field::Quantum,
    Field::Window,
    Field::Workers,
    Field::Legacy,
    Field::LegacyHold,
    Field::LegacyMaxFraction,
    Field::SpareToNodes,
    Field::SafeFraction,
    Field::SafeLease,
    Field::Burst,
    Field::SmallLeases,
    Field::Enforce,
    Field::Beside,
    Field::Domains,
];

/// A template and where its parts stand.
pub(super) struct Draft {
    pub(super) subject: String,
    pub(super) template: Template,
    pub(super) has_glob: bool,
    places: Vec<(Field, Place)>,
}

/// The fields that go with one kind of resource.
#[derive(Default)]
struct KindFields {
    rotate: Option<Rotate>,
    quantum: Option<Duration>,
    window: Option<Duration>,
    workers_in_name: bool,
    spare_to_nodes: Option<Fraction>,
    safe_fraction: Option<Fraction>,
    burst: Option<Duration>,
    small_leases: Option<SmallLeases>,
    domains: Option<Domains>,
}

struct Algorithm {
    policy: SharePolicy,
    lease_length: Duration,
    refresh_interval: Duration,
    learning: Duration,
    places: Vec<(Field, Place)>,
}

/// The template of that number in the file; nothing if it is no mapping.
pub(super) fn draft(notes: &mut Notes, index: usize, node: &YamlNode) -> Option<Draft> {
    let subject = subject(index, node);
    let schema = Schema { subject: subject.clone(), within: "", known: TEMPLATE, hint: hint_in_template };
    notes.subject.clear();
    if matches!(node.value, YamlValue::Map(_)) {
        notes.subject = format!("{subject}: ");
    }
    let at = Fields::read(notes, node, &schema)?;
    let glob = glob(notes, &at);
    let capacity = notes.number(&at, Field::Capacity, UNITS, Template::check_capacity);
    let capacity = notes.required(&at, "capacity", UNITS, capacity);
    let kind = notes.read(&at, "kind", scalar::kind);
    let algorithm = algorithm(notes, &at);
    let lease_is_known = algorithm.lease_length < LONGEST;
    let own = KindFields::read(notes, &at);
    // Whatever kind of resource was meant, it is not said twice that this is not it.
    let own = if matches!(kind, Reading::Bad) { KindFields::default() } else { own };
    let mut places = algorithm.places;
    places.extend(PLACED.map(|field| (field, at.place(field.as_str()))));
    let has_glob = glob.is_some();
    let template = Template {
        glob: glob.unwrap_or_else(placeholder),
        capacity: capacity.unwrap_or(Amount::ZERO),
        safe_capacity: notes
            .number(&at, Field::SafeCapacity, SAFE_UNITS, SafeCapacity::from_units)
            .or(SafeCapacity::Dynamic),
        description: notes
            .read(&at, "description", |node| scalar::text("description", node))
            .or("")
            .to_owned(),
        kind: kind.or(Kind::Rate),
        policy: algorithm.policy,
        lease_length: algorithm.lease_length,
        refresh_interval: algorithm.refresh_interval,
        learning: algorithm.learning,
        rotate: own.rotate,
        quantum: own.quantum,
        // Every lease is too short for it that cannot be read.
        window: own.window.filter(|_| lease_is_known),
        workers_in_name: own.workers_in_name,
        legacy: legacy(notes, &at, algorithm.lease_length),
        legacy_max_fraction: fraction(notes, &at, Field::LegacyMaxFraction).or(Fraction::ALL),
        spare_to_nodes: own.spare_to_nodes,
        safe_fraction: own.safe_fraction.unwrap_or(Fraction::NONE),
        // Nothing is too short for a lease that cannot be read, and no burst is longer.
        safe_lease: time(notes, &at, "safe_lease").is().filter(|_| lease_is_known),
        in_steps: false,
        burst: own.burst.filter(|_| lease_is_known),
        small_leases: own.small_leases,
        part: None,
        most_priority: most_priority(notes, &at),
        most_clients: most_clients(notes, &at),
        enforce: enforce(notes, &at),
        beside: beside(notes, &at),
        domains: own.domains,
    };
    Some(Draft { subject: notes.subject.clone(), has_glob, template, places })
}

fn glob(notes: &mut Notes, at: &Fields<'_>) -> Option<Glob> {
    let glob = notes.read(at, "identifier_glob", |node| {
        let text = scalar::text("identifier_glob", node)?;
        Glob::new(text).map_err(|bad| Problem::Glob { text: scalar::shown(text), bad }.to_string())
    });
    notes.required(at, "identifier_glob", "a name or a glob, in quotes", glob)
}

fn fraction(notes: &mut Notes, at: &Fields<'_>, field: Field) -> Reading<Fraction> {
    notes.number(at, field, FRACTION, |value| Fraction::check(field, value))
}

fn time(notes: &mut Notes, at: &Fields<'_>, name: &'static str) -> Reading<Duration> {
    notes.read(at, name, |node| scalar::time(name, node))
}

fn most_priority(notes: &mut Notes, at: &Fields<'_>) -> Option<i64> {
    let wanted = "the greatest priority that counts, as in 3";
    let most =
        notes.read(at, "most_priority", |node| scalar::whole("most_priority", node, -scalar::LAST, wanted));
    most.is().map(|most| most as i64)
}

fn most_clients(notes: &mut Notes, at: &Fields<'_>) -> Option<u32> {
    let most = notes
        .read(at, "most_clients", |node| scalar::whole("most_clients", node, 1.0, "a whole number from 1"));
    most.is().map(|most| most.min(f64::from(u32::MAX)) as u32)
}

fn enforce(notes: &mut Notes, at: &Fields<'_>) -> Fraction {
    notes.read(at, "enforce", scalar::enforce).or(Fraction::ALL)
}

/// Reads the second limit that is tried beside the template's own.
fn beside(notes: &mut Notes, template: &Fields<'_>) -> Option<Amount> {
    let node = template.get("beside")?;
    let outer = notes.subject.clone();
    notes.subject.push_str("beside: ");
    let schema = Schema { subject: "it".into(), within: " in beside", known: BESIDE, hint: hint_in_beside };
    let capacity = Fields::read(notes, node, &schema).and_then(|at| {
        let capacity = notes.number(&at, Field::Capacity, UNITS, Template::check_capacity);
        notes.required(&at, "capacity", UNITS, capacity)
    });
    notes.subject = outer;
    capacity
}

fn hint_in_beside(name: &str) -> Option<&'static str> {
    match name {
        "enforce" => Some("means nothing here: the second limit is kept to by nobody"),
        "beside" => Some("means nothing here: there is one second limit and no third"),
        "domains" => Some("are not tried beside others; wanted enforce: false within domains"),
        _ if TEMPLATE.contains(&name) || ALGORITHM.contains(&name) => {
            Some("belongs to the template, and is the same for both limits")
        }
        _ => None,
    }
}

fn algorithm(notes: &mut Notes, template: &Fields<'_>) -> Algorithm {
    let mut algorithm = Algorithm {
        policy: SharePolicy::FairShare,
        lease_length: LONGEST,
        refresh_interval: SHORTEST,
        learning: Duration::ZERO,
        places: Vec::new(),
    };
    let Some(node) = template.get("algorithm") else {
        let message = "algorithm is missing; wanted a mapping with kind, lease_length and refresh_interval";
        notes.add(template.place("algorithm"), message);
        return algorithm;
    };
    let schema = Schema {
        subject: "algorithm".into(),
        within: " in algorithm",
        known: ALGORITHM,
        hint: |name| TEMPLATE.contains(&name).then_some("belongs to the template, not in its algorithm"),
    };
    let Some(at) = Fields::read(notes, node, &schema) else { return algorithm };

    let policy = notes.read(&at, "kind", scalar::policy);
    let lease = notes.seconds(&at, Field::LeaseLength, SECONDS);
    let refresh = notes.seconds(&at, Field::RefreshInterval, SECONDS);
    let learning = notes.seconds(&at, Field::LearningModeDuration, SECONDS);
    parameters(notes, &at);

    let kinds = "NO_ALGORITHM, STATIC, PROPORTIONAL_SHARE or FAIR_SHARE";
    algorithm.policy = notes.required(&at, "kind", kinds, policy).unwrap_or(SharePolicy::FairShare);
    algorithm.lease_length = notes.required(&at, "lease_length", SECONDS, lease).unwrap_or(LONGEST);
    algorithm.refresh_interval =
        notes.required(&at, "refresh_interval", SECONDS, refresh).unwrap_or(SHORTEST);
    // Doorman's rule: long enough for every lease given out before the start to end.
    algorithm.learning = learning.or(algorithm.lease_length);
    let fields = [Field::LeaseLength, Field::RefreshInterval, Field::LearningModeDuration];
    algorithm.places.extend(fields.map(|field| (field, at.place(field.as_str()))));
    algorithm
}

/// Reads the treatment of Doorman's clients.
fn legacy(notes: &mut Notes, template: &Fields<'_>, lease: Duration) -> Legacy {
    let legacy = notes.read(template, "legacy", scalar::legacy);
    let hold = notes.read(template, "legacy_hold", |node| scalar::time("legacy_hold", node));
    let is_bad = matches!(legacy, Reading::Bad);
    let legacy = legacy.or(Legacy::Expire);
    match (legacy, hold) {
        // No hold is too short for a lease that cannot be read.
        (Legacy::Sticky { .. }, Reading::Is(hold)) if lease < LONGEST => Legacy::Sticky { hold },
        (Legacy::Sticky { .. }, _) => Legacy::Sticky { hold: LEGACY_HOLD.max(lease) },
        (legacy, Reading::Is(_)) if !is_bad => {
            let problem = Problem::Misplaced {
                field: Field::LegacyHold,
                found: "is how long sticky leases count",
                wanted: "legacy: sticky",
            };
            notes.add(template.place("legacy_hold"), problem.to_string());
            legacy
        }
        (legacy, _) => legacy,
    }
}

/// Doorman has named parameters, of which no algorithm of its uses any: they are checked and left alone.
fn parameters(notes: &mut Notes, algorithm: &Fields<'_>) {
    let Some(node) = algorithm.get("parameters") else { return };
    let YamlValue::List(items) = &node.value else {
        let shape = scalar::shape(node);
        return notes.add(node.place, format!("parameters is {shape}; wanted a list of names and values"));
    };
    for item in items {
        let schema = Schema {
            subject: "a parameter".into(),
            within: " in a parameter",
            known: PARAMETER,
            hint: |_| None,
        };
        let Some(at) = Fields::read(notes, item, &schema) else { continue };
        let name = notes.read(&at, "name", |node| scalar::text("name", node));
        notes.required(&at, "name", "the name of the parameter", name);
        notes.read(&at, "value", |node| scalar::text("value", node));
    }
}

/// The name of a template in messages: its glob if that can be told, or else its number.
fn subject(index: usize, node: &YamlNode) -> String {
    let YamlValue::Map(pairs) = &node.value else { return format!("template {}", index + 1) };
    let is_glob =
        |key: &YamlNode| matches!(&key.value, YamlValue::Scalar { text, .. } if text == "identifier_glob");
    match pairs.iter().find(|(key, _)| is_glob(key)).map(|(_, value)| &value.value) {
        Some(YamlValue::Scalar { text, .. }) if !text.is_empty() => {
            format!("template {:?}", scalar::shown(text))
        }
        _ => format!("template {}", index + 1),
    }
}

fn hint_in_template(name: &str) -> Option<&'static str> {
    ALGORITHM.contains(&name).then_some("belongs under algorithm")
}

fn placeholder() -> Glob {
    Glob::new("unreadable").expect("a plain word is a glob")
}

// === impl Draft ===

impl Draft {
    pub(super) fn place(&self, field: Field) -> Place {
        let found = self.places.iter().find(|(name, _)| *name == field);
        found.expect("every field has a place once it can be wrong").1
    }
}

// === impl KindFields ===

impl KindFields {
    fn read(notes: &mut Notes, at: &Fields<'_>) -> KindFields {
        KindFields {
            rotate: notes.read(at, "rotate", scalar::rotate).is(),
            quantum: time(notes, at, "quantum").is(),
            window: time(notes, at, "window").is(),
            workers_in_name: notes.read(at, "workers", scalar::workers).or(false),
            spare_to_nodes: fraction(notes, at, Field::SpareToNodes).is(),
            safe_fraction: fraction(notes, at, Field::SafeFraction).is(),
            burst: time(notes, at, "burst").is(),
            small_leases: notes.read(at, "small_leases", scalar::small_leases).is(),
            domains: domains(notes, at),
        }
    }
}
