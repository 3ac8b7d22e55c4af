//! Stories, as text files in `tests/tiers/stories/`, to be checked by hand.
//!
//! `contract` and `swap` take tiers, one a line: limit, window, active time and cooldown in seconds, and perhaps `skip` and
//! the kind of the window; `hard` and `global` with a number; `reset` for windows that are reset; `and` before the next policy. `resource=` names the
//! resource. `requests` takes what happens, one thing a line: `at` seconds, who (the domain, `resource/domain`, or nobody
//! in particular), and what:
//!
//! - `ones N`: asks N times for one hit; the answer is that to the last;
//! - `ask N` or `ask N..M`: for N hits or none, for N to M;
//! - `settle N`: it cost N more, or less;
//! - `told tier T hits N`, `told enter T`: what somebody else did;
//! - `tiers`: what each tier does; `idle`: whether it can be forgotten.
//!
//! An answer is what was granted, the current tier with the hits in it and its limit, and the rest as it applies.
//! `REWRITE=1 cargo test --test tiers` records the answers anew; review them as a diff.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use datadriven::{DataDrivenError, TestCase};
use lessor_algorithms::tiers::{
    Ask, Contract, Decision, Domain, Global, MergeEntry, Status, Tier, TierPolicy, TierState, Window, Windows,
};

#[test]
fn the_stories_go_as_they_are_told() {
    let mut stories = 0;
    datadriven::walk("tests/tiers/stories", |file| {
        stories += 1;
        let mut story = Story::default();
        file.run(|case| story.answer(case));
    });
    assert!(stories >= 10, "{stories} stories found");
}

/// By name.
#[derive(Default)]
struct Story {
    resources: BTreeMap<String, Resource>,
}

struct Resource {
    contract: Contract,
    all: Global,
    domains: BTreeMap<String, Domain>,
    now: u64,
}

// === impl Story ===

impl Story {
    fn answer(&mut self, case: &mut TestCase) -> Result<String, DataDrivenError> {
        let name: Option<String> = case.try_take_arg("resource")?;
        let name = name.unwrap_or_default();
        case.expect_empty()?;
        match case.directive.as_str() {
            "contract" => {
                let resource = Resource::new(contract(&case.input));
                self.resources.insert(name, resource);
                Ok(String::new())
            }
            "swap" => {
                self.resources.get_mut(&name).unwrap().swap(contract(&case.input));
                Ok(String::new())
            }
            "requests" => Ok(case.input.lines().fold(String::new(), |mut answers, line| {
                writeln!(answers, "{line}: {}", self.line(line)).unwrap();
                answers
            })),
            other => panic!("{other:?} is none of contract, swap, requests"),
        }
    }

    fn line(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["at", at, rest @ ..] = &words[..] else { panic!("{line:?} does not begin with `at`") };
        let verbs = ["ones", "ask", "settle", "told", "tiers", "idle"];
        let (who, what) = if verbs.contains(&rest[0]) { ("", rest) } else { (rest[0], &rest[1..]) };
        let (resource, domain) = who.split_once('/').unwrap_or(("", who));
        let resource = self.resources.get_mut(resource).unwrap_or_else(|| panic!("no resource in {line:?}"));
        resource.now = nanos(at);
        resource.happens(domain, what)
    }
}

// === impl Resource ===

impl Resource {
    fn new(contract: Contract) -> Resource {
        Resource { contract, all: Global::exact(), domains: BTreeMap::new(), now: 0 }
    }

    fn swap(&mut self, next: Contract) {
        self.domains.values_mut().for_each(|domain| domain.swap(&self.contract, &next, self.now));
        self.contract = next;
    }

    fn happens(&mut self, domain: &str, what: &[&str]) -> String {
        let Resource { contract, all, domains, now } = self;
        let domain = domains.entry(domain.to_owned()).or_default();
        let mut entry = MergeEntry { policy: 0, tier: 0, at: *now, hits: 0, is_entered: false };
        match what {
            ["ask", range] => shown(&domain.request(contract, all, *now, ask(range))),
            ["ones", times] => {
                let mut ones =
                    (0..times.parse().unwrap()).map(|_: u32| domain.request(contract, all, *now, Ask::ONE));
                let first = ones.next().unwrap();
                let (granted, last) =
                    ones.fold((first.granted, first), |(sum, _), one| (sum + one.granted, one));
                shown(&Decision { granted, ..last })
            }
            ["settle", delta] => {
                domain.settle(contract, *now, delta.parse().unwrap());
                format!("owes {}", domain.debt())
            }
            ["told", "enter", tier] => {
                (entry.tier, entry.is_entered) = (tier.parse().unwrap(), true);
                domain.merge(contract, &entry);
                states(domain, contract, *now)
            }
            ["told", "tier", tier, "hits", hits] => {
                (entry.tier, entry.hits) = (tier.parse().unwrap(), hits.parse().unwrap());
                domain.merge(contract, &entry);
                states(domain, contract, *now)
            }
            ["tiers"] => states(domain, contract, *now),
            ["idle"] => if domain.is_idle(contract, *now) { "yes" } else { "no" }.to_owned(),
            other => panic!("{other:?} cannot happen"),
        }
    }
}

// === what is read ===

fn contract(input: &str) -> Contract {
    let policies = input.split("and\n").map(policy).collect();
    Contract::new(policies).unwrap()
}

fn policy(input: &str) -> TierPolicy {
    let (mut tiers, mut hard, mut global, mut windows) = (Vec::new(), None, None, Windows::Keep);
    for line in input.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["hard", limit] => hard = Some(limit.parse().unwrap()),
            ["reset"] => windows = Windows::Reset,
            ["global", limit] => global = Some(limit.parse().unwrap()),
            [limit, window, active, cooldown, ref rest @ ..] => tiers.push(Tier {
                limit: limit.parse().unwrap(),
                window: Duration::from_nanos(nanos(window)),
                active: Duration::from_nanos(nanos(active)),
                cooldown: Duration::from_nanos(nanos(cooldown)),
                is_skippable: rest.contains(&"skip"),
                kind: kind(rest.last().copied()),
            }),
            _ => panic!("{line:?} is no tier"),
        }
    }
    TierPolicy::new(tiers, hard, global).unwrap().with_windows(windows)
}

fn kind(word: Option<&str>) -> Window {
    match word {
        None | Some("skip") => Window::Exact,
        Some("fixed") => Window::Fixed,
        Some("bucket") => Window::Bucket,
        Some(slices) => Window::Sliding { slices: slices.strip_suffix("slices").unwrap().parse().unwrap() },
    }
}

fn ask(range: &str) -> Ask {
    match range.split_once("..") {
        Some((min, copies)) => Ask::between(min.parse().unwrap(), copies.parse().unwrap()),
        None => Ask::exactly(range.parse().unwrap()),
    }
}

/// Of seconds with up to nine places.
fn nanos(seconds: &str) -> u64 {
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
    whole.parse::<u64>().unwrap() * 1_000_000_000 + format!("{part:0<9}").parse::<u64>().unwrap()
}

// === what is written ===

fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn shown(decision: &Decision) -> String {
    let Decision { granted, tier, hits_in_tier, tier_limit, policy, .. } = *decision;
    let mut text = format!("{granted}, tier {tier} {hits_in_tier}/{tier_limit}");
    let mut add = |words: String| write!(text, ", {words}").unwrap();
    if policy > 0 {
        add(format!("policy {policy}"));
    }
    if decision.burst {
        add("burst".to_owned());
    }
    if let Some(limit) = decision.hard_limit {
        add(format!("second {}/{limit}", decision.hits_in_second));
    }
    if let Some(limit) = decision.global_limit {
        add(format!("all {}/{limit}", decision.hits_in_second_by_all));
    }
    if let Some(bound) = decision.bound {
        add(format!("bound by {}", format!("{bound:?}").to_lowercase()));
    }
    if decision.debt > 0 {
        add(format!("owes {}", decision.debt));
    }
    match decision.retry_at {
        Some(at) => add(format!("again at {}", seconds(at))),
        None if granted == 0 => add("never".to_owned()),
        None => {}
    }
    text
}

fn states(domain: &Domain, contract: &Contract, now: u64) -> String {
    let states = domain.tiers(contract, now).map(|state: TierState| {
        let status = match state.status {
            Status::Inactive => "inactive".to_owned(),
            Status::Active { until } => format!("active until {}", seconds(until)),
            Status::Cooling { until } => format!("cools until {}", seconds(until)),
        };
        let current = if state.is_current { "*" } else { "" };
        format!("{}{current} {}/{} {status}", state.tier, state.hits, state.limit)
    });
    states.collect::<Vec<_>>().join("; ")
}
