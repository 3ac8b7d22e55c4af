//! The page that says how doors fare: the rules in force, what is leased, what went wrong last, and the keys that are used most.

use std::fmt::Write as _;

use lessor_client::internals::clock;
use lessor_client::{ResourceMetrics, Rung, Windows};
use serde::Serialize;

use super::Doors;
use super::in_force::{InForce, Opened};
use crate::rules::{Limit, RuleSet};

/// The way to the servers that lease.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Reach {
    /// Nobody has looked yet.
    #[default]
    Unknown,
    /// One of them answers.
    Reached,
    /// None does, for this reason.
    Unreached(String),
}

/// The uses of windows that count at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UsedWindows {
    /// The keys that are used.
    pub keys: usize,
    /// The uses of all of them.
    pub uses: u64,
}

/// The page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct StatusPage {
    schema: u32,
    /// The client id, as servers know it.
    id: String,
    state: &'static str,
    /// The reason why it is degraded.
    cause: Option<String>,
    rules: RulesLine,
    /// The keys of windows that are remembered.
    keys: usize,
    last_error: Option<FaultLine>,
    rates: Vec<RateLine>,
    /// The keys that are used most.
    top: Vec<KeyLine>,
}

/// The rules in force.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct RulesLine {
    version: u64,
    limits: Vec<LimitLine>,
}

/// A limit of them.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct LimitLine {
    set: String,
    rule: String,
    limit: String,
    kind: &'static str,
    resource: String,
}

/// The last fault for which something was not renewed.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct FaultLine {
    seconds_ago: u64,
    resource: String,
    fault: String,
}

/// A rate that is open.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct RateLine {
    resource: String,
    rung: String,
    /// Units a second; absent: without limit.
    capacity: Option<f64>,
    wants: f64,
    granted: u64,
    denied: u64,
}

/// A key that is used.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct KeyLine {
    resource: String,
    uses: u32,
    /// The units that lie here; absent where a rate with domains has it.
    leased: Option<u32>,
    limit: u32,
    rung: String,
    frees_in_seconds: Option<f64>,
}

/// The keys that are named.
const TOP: usize = 100;

// === impl Reach ===

impl Reach {
    /// The reason why nothing new can be leased, if that is so.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        match self {
            Reach::Unknown => Some("no server has answered yet".to_owned()),
            Reach::Reached => None,
            Reach::Unreached(fault) => Some(fault.clone()),
        }
    }
}

// === impl InForce ===

impl InForce {
    /// The windows that are open, with their limits.
    fn windows(&self) -> impl Iterator<Item = (&Limit, &Windows)> {
        let all = self.book().sets().iter().flat_map(RuleSet::limits);
        all.filter_map(|(_, limit)| match self.open_already(limit)? {
            Opened::Windows(windows) => Some((limit, windows)),
            Opened::Rate(_) => None,
        })
    }
}

// === impl Doors ===

impl Doors {
    /// Says how the way to the servers is from here on.
    pub fn set_reach(&self, reach: Reach) {
        self.reach.store(reach.into());
    }

    /// The way to the servers, as it was said last.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach::clone(&self.reach.load())
    }

    /// The uses of windows that count now, under the rules in force.
    #[must_use]
    pub fn used_windows(&self) -> UsedWindows {
        let rules = self.in_force.load_full();
        let busiest = rules.windows().flat_map(|(_, windows)| windows.busiest(usize::MAX));
        busiest.filter(|(_, usage)| usage.uses > 0).fold(UsedWindows::default(), |all, (_, usage)| {
            UsedWindows { keys: all.keys + 1, uses: all.uses + u64::from(usage.uses) }
        })
    }

    /// The page at this moment; `is_serving`: whether requests are welcome.
    pub(super) fn status(&self, is_serving: bool) -> StatusPage {
        let rules = self.in_force.load_full();
        let metrics = self.client.metrics_naming(TOP);
        let now = clock::now();
        let mut top: Vec<KeyLine> = rules
            .windows()
            .flat_map(|(limit, windows)| {
                let busiest = windows.busiest(TOP).into_iter();
                busiest.filter(|(_, usage)| usage.uses + usage.leased > 0).map(|(key, usage)| KeyLine {
                    resource: format!("{}{key}", limit.resource),
                    uses: usage.uses,
                    leased: Some(usage.leased),
                    limit: usage.window.map_or(limit.units, |window| window.limit),
                    rung: if usage.leased > 0 { Rung::Leased } else { Rung::Waiting }.to_string(),
                    frees_in_seconds: usage.frees_in.map(|time| time.as_secs_f64()),
                })
            })
            .chain(metrics.resources.iter().flat_map(domains))
            .collect();
        top.sort_by_key(|line| std::cmp::Reverse(line.uses));
        top.truncate(TOP);
        let last_error = metrics.last_fault.map(|last| FaultLine {
            seconds_ago: now.since(last.at).as_secs(),
            resource: last.resource.to_string(),
            fault: last.fault.to_string(),
        });
        let cause = self.reach().cause();
        StatusPage {
            schema: 1,
            id: self.client.id().to_string(),
            state: match (is_serving, &cause) {
                (false, _) => "draining",
                (true, Some(_)) => "degraded",
                (true, None) => "ready",
            },
            cause,
            rules: RulesLine::of(&rules),
            keys: rules.windows().map(|(_, windows)| windows.keys()).sum(),
            last_error,
            rates: metrics.resources.iter().map(RateLine::of).collect(),
            top,
        }
    }
}

// === impl RulesLine ===

impl RulesLine {
    fn of(rules: &InForce) -> RulesLine {
        let limits = rules.book().sets().iter().flat_map(|set| {
            set.limits().map(|(rule, limit)| LimitLine {
                set: set.name.to_string(),
                rule: rule.to_owned(),
                limit: limit.to_string(),
                kind: limit.kind.word(),
                resource: limit.resource.to_string(),
            })
        });
        RulesLine { version: rules.book().version, limits: limits.collect() }
    }
}

// === impl RateLine ===

impl RateLine {
    fn of(rate: &ResourceMetrics) -> RateLine {
        RateLine {
            resource: rate.resource.to_string(),
            rung: rate.rung.to_string(),
            capacity: rate.capacity.map(lessor_client::Amount::as_f64),
            wants: rate.wants,
            granted: rate.granted,
            denied: rate.denied,
        }
    }
}

/// The domains of a rate that are used most.
fn domains(rate: &ResourceMetrics) -> impl Iterator<Item = KeyLine> {
    let rows = rate.busiest.iter().flat_map(|busiest| &busiest.rows);
    rows.map(|row| KeyLine {
        resource: format!("{}|d:{}", rate.resource, row.domain),
        uses: row.hits_in_tier,
        leased: None,
        limit: row.tier_limit,
        rung: rate.rung.to_string(),
        frees_in_seconds: row.cooling_until.map(|until| until.since(clock::now()).as_secs_f64()),
    })
}

// === impl StatusPage ===

impl StatusPage {
    /// The page for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: {}", self.id, self.state);
        // Writing to a string does not fail.
        let _ = match &self.cause {
            Some(cause) => writeln!(text, ", {cause}"),
            None => writeln!(text),
        };
        let _ = writeln!(text, "rules: version {}, {} limits", self.rules.version, self.rules.limits.len());
        for LimitLine { set, rule, limit, kind, .. } in &self.rules.limits {
            let _ = writeln!(text, "  {set} {rule}: {limit}, {kind}");
        }
        let _ = match &self.last_error {
            Some(FaultLine { seconds_ago, resource, fault }) => {
                writeln!(text, "last error: {seconds_ago} s ago, {resource}: {fault}")
            }
            None => writeln!(text, "last error: none"),
        };
        for RateLine { resource, rung, capacity, wants, .. } in &self.rates {
            let capacity = capacity.map_or("without limit".to_owned(), |capacity| format!("{capacity:.1}"));
            let _ = writeln!(text, "rate {resource}: {capacity} a second of {wants:.1} wanted, {rung}");
        }
        let _ = writeln!(text, "keys: {}; those that are used most:", self.keys);
        for KeyLine { resource, uses, leased, limit, rung, frees_in_seconds } in &self.top {
            let _ = write!(text, "  {resource}: {uses} of {limit}, {rung}");
            let _ = leased.map_or(Ok(()), |leased| write!(text, " {leased}"));
            let _ = frees_in_seconds
                .map_or(Ok(()), |time| write!(text, ", the first is free in {} s", time.ceil()));
            text.push('\n');
        }
        text
    }
}
