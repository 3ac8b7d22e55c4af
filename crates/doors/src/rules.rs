//! Rules: which requests are limited, by which limits, under which names.
//!
//! A *set* of rules is for one kind of traffic: it has a name, by which doors find it, and one matcher. What makes a request
//! be counted together with others is its *key*. A rule has one or several *limits*, all of which must hold.

use std::fmt;
use std::time::Duration;

use crate::name::{self, Joint};
use crate::web::{Forwarded, Trusted};

pub mod document;
mod fields;
pub mod kept;
mod limits;
pub mod matcher;
pub mod ratelimit;
pub mod table;
pub mod templates;

pub use self::limits::{BadLimit, TimeUnit, Window};
use self::matcher::Tree;
use self::table::Table;

/// All rules in force.
#[derive(Clone, Debug)]
pub struct RuleBook {
    /// The edition of the file that they are from; 0 if it has none.
    pub version: u64,
    /// The longest that an answer waits for units that lie elsewhere, or for a first lease.
    pub wait: Duration,
    /// The peers that are believed what they forward.
    pub trusted: Trusted,
    /// The part of a limit from which on a request is near it, in figures.
    pub near: f64,
    /// The most workers that a request of PoolCounter may name; absent: none is answered.
    pub pool: Option<u32>,
    sets: Vec<RuleSet>,
    by_name: hashbrown::HashMap<Box<str>, usize, foldhash::fast::FixedState>,
    limits: usize,
}

/// The rules for one kind of traffic.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// The number among all sets of a book.
    pub index: usize,
    /// The name: the set of `/check/{set}`, the domain of Envoy's requests.
    pub name: Box<str>,
    /// The answers of it.
    pub manner: SetManner,
    /// The rules, in the order of the file.
    pub rules: Vec<Rule>,
    /// The way from a request to rules.
    pub matcher: Matcher,
    /// The limits that requests may bring with them.
    pub overrides: Vec<Limit>,
}

/// The manner in which a set is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetManner {
    /// The answer where nothing is leased.
    pub fail: Fail,
    /// The status of a denial over HTTP.
    pub deny_status: u16,
    /// The fields that answers get.
    pub headers: Vec<FieldKind>,
    /// The fields that a request gets which passes, on its way behind Envoy.
    pub request_headers: Vec<FieldKind>,
    /// Whether a denial has a body that says why.
    pub has_problem: bool,
    /// Whether an answer to Envoy says what was decided as metadata too.
    pub has_metadata: bool,
    /// Whether nothing of it refuses, and what would is counted.
    pub shadow: bool,
    /// The fields in which a proxy says what it was asked.
    pub forwarded: Forwarded,
}

/// The way from a request to rules.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// Descriptors, level by level: the rule where the last entry leads.
    Tree(Tree),
    /// Attributes: all rules whose conditions they meet.
    Table(Table),
}

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The name in figures and in answers: no key is in it.
    pub name: Box<str>,
    /// The resource that it is, without keys.
    pub resource: Box<str>,
    /// The limits, all of which must hold; without any it lets everything pass.
    pub limits: Vec<Limit>,
    /// The answer where nothing is leased; absent: as its set says.
    pub fail: Option<Fail>,
    /// The time at which it is charged.
    pub charge: Charge,
    /// The hits that a request is.
    pub cost: Cost,
    /// Whether it never refuses, and what it would refuse is counted.
    pub shadow: bool,
    /// Whether it refuses only where all of this mode in a call do.
    pub quota: bool,
    /// Whether its answer says that there is any amount left.
    pub unlimited: bool,
    /// The name by which others replace it.
    pub policy: Option<Box<str>>,
    /// The policies in place of which it stands.
    pub replaces: Vec<Box<str>>,
    /// Whether rules behind it are not looked at where it matches.
    pub stop: bool,
    /// Whether the server is asked before a shared limit refuses.
    pub ask: bool,
}

/// A limit: so many hits in any window, for each key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The number among all limits of a book, or among the overrides of it.
    pub index: usize,
    /// The hits in the window.
    pub units: u32,
    /// The window.
    pub window: Window,
    /// The way in which it is kept.
    pub kind: LimitKind,
    /// The name of the policy in answers.
    pub name: Box<str>,
    /// The beginning of the names of its resources, or the whole name where all keys are one resource.
    pub resource: Box<str>,
}

/// The way in which a limit is kept over all doors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LimitKind {
    /// Exactly: a gauge of so many units, each kept for the window after its use. Each key is a resource.
    Exact,
    /// As so many at a time: the same, but a unit is given back when what it was taken for has ended, and the window is the longest
    /// that this may take.
    Concurrency,
    /// As a rate that is leased, without keys.
    Flow,
    /// By burst tiers that clients tell each other of: each key is a domain of one rate.
    Shared(SharedLimit),
}

/// The rate that the keys of a shared limit have together, and the tiers of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedLimit {
    /// The hits of all keys in a second.
    pub capacity: u32,
    /// The hits of a key in any second.
    pub hard_limit: Option<u32>,
    /// The tiers, as they are written in templates: limit, window, active time and cooldown.
    pub tiers: Vec<SharedTier>,
}

/// A tier of a shared limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedTier {
    /// The hits in its window.
    pub limit: u32,
    /// The window.
    pub window: Duration,
    /// The time for which it is active.
    pub active: Duration,
    /// The time for which it is not, after that.
    pub cooldown: Duration,
}

/// The answer where nothing is leased.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fail {
    /// An error, which is not the word for a limit.
    #[default]
    Error,
    /// The request passes.
    Open,
    /// The request is denied as by a limit.
    Closed,
}

/// The time at which a rule is charged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Charge {
    /// With the request, which is refused where that cannot be.
    #[default]
    Before,
    /// After the answer: nothing is refused.
    After,
    /// With the request by an estimate, and corrected afterwards.
    Settle,
}

/// The hits that a request is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cost {
    /// This many for each hit that the request names, which is one where it names none.
    Each(u32),
    /// The number in an attribute, but no more than `most`.
    Attribute {
        /// The attribute's place in the table.
        slot: usize,
        /// The most that is believed.
        most: u32,
    },
    /// By the value of an attribute; 1 for others.
    By {
        /// The attribute's place in the table.
        slot: usize,
        /// The values and their costs.
        costs: Vec<(Box<str>, u32)>,
    },
}

/// Fields that say something about limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// `RateLimit` and `RateLimit-Policy` of the IETF's draft.
    Ietf,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset` of its third edition.
    Ietf03,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    XRateLimit,
    /// Those of Kong.
    Kong,
    /// `Retry-After` with a denial.
    RetryAfter,
    /// The limit, what is left of it, and the seconds until it is whole again, under these names.
    Named([&'static str; 3]),
}

/// The wait of an answer without a word of the file: enough for units to come from another door.
pub const WAIT: Duration = Duration::from_millis(100);

// === impl RuleBook ===

impl RuleBook {
    /// The part of a limit from which on a request is near it, without another word.
    pub const NEAR: f64 = 0.8;

    /// The rules of these sets, whose names differ.
    #[must_use]
    pub fn new(version: u64, wait: Duration, mut sets: Vec<RuleSet>) -> RuleBook {
        let mut limits = 0;
        for (index, set) in sets.iter_mut().enumerate() {
            set.index = index;
            let own = set.rules.iter_mut().flat_map(|rule| &mut rule.limits);
            for limit in own.chain(&mut set.overrides) {
                limit.index = limits;
                limits += 1;
            }
        }
        let by_name = sets.iter().enumerate().map(|(index, set)| (set.name.clone(), index)).collect();
        let (trusted, near) = (Trusted::default(), RuleBook::NEAR);
        RuleBook { version, wait, trusted, near, pool: None, sets, by_name, limits }
    }

    /// The set of that name.
    #[must_use]
    pub fn set(&self, name: &str) -> Option<&RuleSet> {
        self.by_name.get(name).map(|&index| &self.sets[index])
    }

    /// All sets, in the order of the files.
    #[must_use]
    pub fn sets(&self) -> &[RuleSet] {
        &self.sets
    }

    /// The number of limits: each has an index below it.
    #[must_use]
    pub fn limits(&self) -> usize {
        self.limits
    }

    /// The same, believing these peers.
    #[must_use]
    pub fn trusting(self, trusted: Trusted) -> RuleBook {
        RuleBook { trusted, ..self }
    }

    /// The same, where requests of PoolCounter may name so many workers.
    #[must_use]
    pub fn pooling(self, pool: Option<u32>) -> RuleBook {
        RuleBook { pool, ..self }
    }

    /// The same, where a request is near a limit from that part of it on.
    #[must_use]
    pub fn near_from(self, near: f64) -> RuleBook {
        RuleBook { near, ..self }
    }

    /// The same with nothing that refuses.
    #[must_use]
    pub fn in_shadow(mut self) -> RuleBook {
        self.sets.iter_mut().for_each(|set| set.manner.shadow = true);
        self
    }
}

// === impl SetManner ===

impl Default for SetManner {
    fn default() -> SetManner {
        SetManner {
            fail: Fail::Error,
            deny_status: 429,
            headers: vec![FieldKind::Ietf, FieldKind::RetryAfter],
            request_headers: Vec::new(),
            has_problem: true,
            has_metadata: false,
            shadow: false,
            forwarded: Forwarded::default(),
        }
    }
}

// === impl Rule ===

impl Rule {
    /// A rule without limits.
    #[must_use]
    pub fn new(name: &str, resource: &str) -> Rule {
        Rule {
            name: name.into(),
            resource: resource.into(),
            limits: Vec::new(),
            fail: None,
            charge: Charge::default(),
            cost: Cost::Each(1),
            shadow: false,
            quota: false,
            unlimited: false,
            policy: None,
            replaces: Vec::new(),
            stop: false,
            ask: false,
        }
    }

    /// Adds a limit to it.
    pub fn limit(&mut self, units: u32, window: Window, kind: LimitKind) {
        let place = self.limits.len();
        let resource = match kind {
            LimitKind::Exact | LimitKind::Concurrency => name::prefix(&self.resource, place),
            LimitKind::Flow | LimitKind::Shared(_) => name::shortened(&self.resource).into(),
        };
        let name = match (&self.policy, place) {
            (Some(policy), 0) => policy.clone(),
            (Some(policy), place) => format!("{policy}-{place}").into(),
            (None, _) => window.word().into(),
        };
        self.limits.push(Limit { index: 0, units, window, kind, name, resource });
    }
}

// === impl LimitKind ===

impl LimitKind {
    /// The word for it in rules.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            LimitKind::Exact => "exact",
            LimitKind::Concurrency => "concurrency",
            LimitKind::Flow => "flow",
            LimitKind::Shared(_) => "shared",
        }
    }

    /// Whether each key is a resource, whose units are kept for a window.
    #[must_use]
    pub fn is_of_windows(&self) -> bool {
        matches!(self, LimitKind::Exact | LimitKind::Concurrency)
    }
}

// === impl Limit ===

impl Limit {
    /// A limit that requests may bring with them, in the set `set`.
    #[must_use]
    pub fn brought(set: &str, units: u32, window: Window) -> Limit {
        let mut resource = String::from("rl/");
        name::encode_part(set.as_bytes(), &mut resource);
        let resource = format!("{}|o:{units}/{}:", name::shortened(&resource), window.length().as_secs());
        let kind = LimitKind::Exact;
        Limit { index: 0, units, window, kind, name: "override".into(), resource: resource.into() }
    }

    /// The letter that joins the values of its keys.
    #[must_use]
    pub fn joint(&self) -> Joint {
        match self.kind {
            LimitKind::Exact | LimitKind::Concurrency => Joint::Comma,
            LimitKind::Flow | LimitKind::Shared(_) => Joint::Slash,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LimitKind::Concurrency => write!(f, "{} at a time, each for {}", self.units, self.window),
            _ => write!(f, "{}/{}", self.units, self.window),
        }
    }
}
