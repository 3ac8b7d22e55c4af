//! Templates of the rules, for the servers that lease what doors ask for: one for each limit, named as it is.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use lessor_proto::Drift;

use super::limits::LONGEST;
use super::{Limit, LimitKind, RuleBook, RuleSet, SharedLimit};

/// The outage that a lease outlives beside its window.
const OUTAGE: u64 = 31;
/// The percentage by which a lease is longer than its window besides: what clocks err, on two levels, and a twentieth so that what
/// is held for long need not be renewed often, as that is work for each key.
const MARGIN: u64 = 8;
/// The shortest refresh interval, and the longest.
const REFRESH: [u64; 2] = [5, 60];
/// The longest lease.
const YEAR: u64 = 365 * 86_400;

/// The templates of all limits in a document for `--config`.
#[must_use]
pub fn templates(book: &RuleBook) -> String {
    let mut text = String::from(
        "# Made by `lessor import`: what doors with these rules lease. For root and leaves alike.\n\nresources:\n",
    );
    let mut known = BTreeSet::new();
    for set in book.sets() {
        for (rule, limit) in set.limits() {
            if limit.units > 0 && known.insert(glob(limit)) {
                // Writing to a string does not fail.
                let _ = write!(text, "{}", template(rule, limit));
            }
        }
    }
    if let Some(most) = book.pool {
        text.push_str(&pool_template(most));
    }
    match known.is_empty() && book.pool.is_none() {
        true => text.replace("resources:\n", "resources: []\n"),
        false => text,
    }
}

/// The glob that matches the resources of a limit, and no other.
#[must_use]
pub fn glob(limit: &Limit) -> String {
    match limit.kind {
        LimitKind::Exact | LimitKind::Concurrency => format!("{}*", limit.resource),
        LimitKind::Flow | LimitKind::Shared(_) => limit.resource.to_string(),
    }
}

/// The seconds for which the units of a window are leased.
#[must_use]
pub fn lease_length(window: Duration) -> u64 {
    let seconds = window.min(LONGEST).as_secs();
    (seconds + (seconds * MARGIN).div_ceil(100) + OUTAGE).min(YEAR)
}

/// The seconds after which that lease is renewed: a sixth of the time by which it outlives the window.
fn refresh_interval(window: Duration) -> u64 {
    let [least, most] = REFRESH;
    let outlasted = Drift::DEFAULT.outlasting(window).as_secs();
    (lease_length(window).saturating_sub(outlasted) / 6).clamp(least, most)
}

// === impl RuleSet ===

impl RuleSet {
    /// All limits of it, each with the name of its rule.
    pub fn limits(&self) -> impl Iterator<Item = (&str, &Limit)> {
        let own =
            self.rules.iter().flat_map(|rule| rule.limits.iter().map(move |limit| (&*rule.name, limit)));
        own.chain(self.overrides.iter().map(|limit| ("a limit that requests bring", limit)))
    }
}

/// The glob of all gauges of PoolCounter's keys.
pub const POOL_GLOB: &str = "pool|*";

/// The template of PoolCounter's keys. What is cut off stops, and a lease is longer than work takes.
fn pool_template(most: u32) -> String {
    let described = format!("PoolCounter: so many workers of a key as requests name, up to {most}");
    format!(
        "  - identifier_glob: \"{POOL_GLOB}\"\n    description: {}\n    kind: gauge\n    workers: in_name\n    capacity: {most}\n    \
         safe_capacity: 0\n    quantum: 1s\n    algorithm: {{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}}\n",
        quoted(&described)
    )
}

fn template(rule: &str, limit: &Limit) -> String {
    let mut text = format!("  - identifier_glob: {}\n", quoted(&glob(limit)));
    let described = quoted(&format!("{limit} of {rule}"));
    let _ = writeln!(text, "    description: {described}");
    match &limit.kind {
        LimitKind::Exact | LimitKind::Concurrency => {
            let window = limit.window.length();
            let _ = write!(
                text,
                "    kind: gauge\n    capacity: {}\n    window: {}s\n    algorithm: {{kind: FAIR_SHARE, lease_length: {}, \
                 refresh_interval: {}}}\n",
                limit.units,
                window.as_secs(),
                lease_length(window),
                refresh_interval(window)
            );
        }
        LimitKind::Flow => {
            let _ = write!(
                text,
                "    capacity: {}\n    burst: 1s\n    safe_capacity: 0\n    algorithm: {{kind: FAIR_SHARE, lease_length: 60, \
                 refresh_interval: 5}}\n",
                limit.units
            );
        }
        LimitKind::Shared(shared) => {
            let _ = write!(
                text,
                "    capacity: {}\n    safe_capacity: 0\n    algorithm: {{kind: FAIR_SHARE, lease_length: 60, refresh_interval: \
                 5}}\n    domains:\n      scope: shared\n      default:\n{}",
                shared.capacity,
                policy(shared)
            );
        }
    }
    text
}

fn policy(shared: &SharedLimit) -> String {
    let mut text = String::new();
    if let Some(hard) = shared.hard_limit {
        let _ = writeln!(text, "        hard_limit: {hard}");
    }
    text.push_str("        tiers:\n");
    for tier in &shared.tiers {
        let [window, active, cooldown] =
            [tier.window, tier.active, tier.cooldown].map(humantime::format_duration);
        let _ = writeln!(
            text,
            "          - {{limit: {}, window: {window}, active: {active}, cooldown: {cooldown}}}",
            tier.limit
        );
    }
    text
}

/// A text in double quotes of YAML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
