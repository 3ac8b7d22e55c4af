//! Figures of doors, as Prometheus reads them. Rules have names in them, and keys never.

mod pool;
mod tls;

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub(super) use self::pool::PoolFigures;
use self::tls::TlsFigures;
use crate::claim::{CallAnswer, Overall, Verdict};

/// The figures of all doors of a process.
#[derive(Debug)]
pub(super) struct Figures {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    waits: Family<DoorLabel, Histogram, fn() -> Histogram>,
    /// Those of `waits`, by the door, each from its first answer on.
    known_waits: PerDoor<Histogram>,
    pub(super) no_lease: Counter,
    rules: Family<RuleLabels, Counter>,
    loads: Family<LoadLabel, Counter>,
    pub(super) owed: Counter,
    turned_away: Counter,
    pub(super) tls: TlsFigures,
    pub(super) pool: PoolFigures,
}

/// The counters of the answers of a set, each from its first answer on. Without them each answer would look its counter up by a
/// name that is made for that.
#[derive(Debug)]
pub(super) struct SetCounters {
    set: Box<str>,
    answers: PerDoor<[OnceLock<Counter>; AnswerLabel::ALL]>,
}

/// A figure of each door.
type PerDoor<T> = [OnceLock<T>; DoorKind::ALL];

/// The counters of a rule.
#[derive(Clone, Debug)]
pub(super) struct RuleCounters {
    pub(super) within: Counter,
    pub(super) near: Counter,
    pub(super) over: Counter,
    pub(super) shadow: Counter,
    pub(super) no_lease: Counter,
}

/// The door through which a request came.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
pub(super) enum DoorKind {
    Rls,
    Json,
    Check,
    Program,
    Pool,
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
pub(super) enum AnswerLabel {
    Granted,
    Refused,
    Done,
    NoLease,
    NoSet,
    Malformed,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RequestLabels {
    door: DoorKind,
    set: String,
    answer: AnswerLabel,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct DoorLabel {
    door: DoorKind,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RuleLabels {
    set: String,
    rule: String,
    verdict: VerdictLabel,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
enum VerdictLabel {
    Within,
    Near,
    Over,
    Shadow,
    NoLease,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct LoadLabel {
    outcome: LoadOutcome,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
enum LoadOutcome {
    InForce,
    Faulty,
}

// === impl DoorKind ===

impl DoorKind {
    /// The number of doors.
    const ALL: usize = DoorKind::Pool as usize + 1;
}

// === impl AnswerLabel ===

impl AnswerLabel {
    /// The number of answers.
    const ALL: usize = AnswerLabel::Malformed as usize + 1;
}

// === impl SetCounters ===

impl SetCounters {
    /// Those of the set of that name.
    pub(super) fn new(set: &str) -> SetCounters {
        SetCounters { set: set.into(), answers: Default::default() }
    }

    fn count(&self, door: DoorKind, answer: AnswerLabel, figures: &Figures) {
        let answers = self.answers[door as usize].get_or_init(Default::default);
        answers[answer as usize].get_or_init(|| figures.counter(door, &self.set, answer)).inc();
    }
}

// === impl Figures ===

impl Default for Figures {
    fn default() -> Figures {
        let waits: fn() -> Histogram = || Histogram::new([0.000_1, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0]);
        let mut figures = Figures {
            registry: Registry::default(),
            requests: Family::default(),
            waits: Family::new_with_constructor(waits),
            known_waits: Default::default(),
            no_lease: Counter::default(),
            rules: Family::default(),
            loads: Family::default(),
            owed: Counter::default(),
            turned_away: Counter::default(),
            tls: TlsFigures::default(),
            pool: PoolFigures::default(),
        };
        let registry = &mut figures.registry;
        registry.register("lessor_door_requests", "Requests through doors", figures.requests.clone());
        registry.register("lessor_door_wait_seconds", "Time that answers took", figures.waits.clone());
        registry.register(
            "lessor_door_no_lease",
            "Requests for which nothing was leased",
            figures.no_lease.clone(),
        );
        registry.register("lessor_rule_hits", "Hits of rules", figures.rules.clone());
        registry.register("lessor_door_rules_loads", "Readings of the rules", figures.loads.clone());
        registry.register(
            "lessor_door_owed_hits",
            "Hits charged afterwards that were not there",
            figures.owed.clone(),
        );
        registry.register(
            "lessor_door_turned_away",
            "Connections of peers that are not trusted for which there was no place",
            figures.turned_away.clone(),
        );
        figures.tls.register(registry);
        figures.pool.register(registry);
        figures
    }
}

impl Figures {
    /// A connection was closed at once, as there was no place for a stranger.
    pub(super) fn turned_away(&self) {
        self.turned_away.inc();
    }

    /// The page.
    pub(super) fn page(&self) -> String {
        let mut page = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut page, &self.registry);
        page
    }

    /// The counters of a rule.
    pub(super) fn rule(&self, set: &str, rule: &str) -> RuleCounters {
        let counter = |verdict| {
            let labels = RuleLabels { set: set.to_owned(), rule: rule.to_owned(), verdict };
            self.rules.get_or_create(&labels).clone()
        };
        RuleCounters {
            within: counter(VerdictLabel::Within),
            near: counter(VerdictLabel::Near),
            over: counter(VerdictLabel::Over),
            shadow: counter(VerdictLabel::Shadow),
            no_lease: counter(VerdictLabel::NoLease),
        }
    }

    /// Counts an answer of a set.
    pub(super) fn answered(&self, door: DoorKind, set: &SetCounters, answer: &CallAnswer, took: Duration) {
        let label = match answer.overall {
            Overall::Granted => AnswerLabel::Granted,
            Overall::Refused => AnswerLabel::Refused,
            Overall::NoLease => AnswerLabel::NoLease,
        };
        if answer.claims.iter().any(|claim| matches!(claim.verdict, Verdict::NoLease { .. })) {
            self.no_lease.inc();
        }
        set.count(door, label, self);
        let waits = || self.waits.get_or_create(&DoorLabel { door }).clone();
        self.known_waits[door as usize].get_or_init(waits).observe(took.as_secs_f64());
    }

    /// Counts a request. Sets that there are not have no name here, as clients may choose them.
    pub(super) fn request(&self, door: DoorKind, set: &str, answer: AnswerLabel) {
        self.counter(door, set, answer).inc();
    }

    fn counter(&self, door: DoorKind, set: &str, answer: AnswerLabel) -> Counter {
        self.requests.get_or_create(&RequestLabels { door, set: set.to_owned(), answer }).clone()
    }

    /// Counts a reading of the rules.
    pub(super) fn loaded(&self, is_in_force: bool) {
        let outcome = if is_in_force { LoadOutcome::InForce } else { LoadOutcome::Faulty };
        self.loads.get_or_create(&LoadLabel { outcome }).inc();
    }
}
