//! Stories: `REWRITE=1 cargo test -p lessor-server --test node` records them again, to be read as a diff.
//!
//! | directive | what it does |
//! | --- | --- |
//! | `node capacity=120 [policy=fair] [lease=60] [refresh=5] [learning=0] [kind=rate] [safe=N] [epoch=1]` | a new node and no holders |
//! | `ask` | one report a line: `SECONDS NAME wN`, with `pN` priority, `nN` subclients (a node asks), `,` between bands; `fresh` a new life, `lost` the answer never arrives, `claims=N`, `held=N`, `forgets` and `incarnated` the kind of client |
//! | `rounds n=6 every=5 a:wN b:wN …` | every client asks in turn, so many times; the last answers are shown |
//! | `release` | one name a line |
//! | `wait seconds=N` | time passes |
//! | `configure capacity=N …` | the template changes |
//! | `restart epoch=N …` | the server starts again without memory; holders keep what they have |
//! | `books` | what the node has charged |

use std::fmt::Write as _;
use std::time::Duration;

use datadriven::{TestCase, walk};
use lessor_algorithms::SharePolicy;
use lessor_proto::message::{Answer, Band, Bands, Refusal};
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::repository::{Kind, SafeCapacity, Template};

use super::holders::{Memory, Town, Words, repository, template, wants};

#[test]
fn stories() {
    walk("tests/node/stories", |file| {
        let mut town = Town::new(template(0.0), 1);
        file.run(|case| {
            let said = run(&mut town, case);
            let capacity = town.node.repository().templates()[0].capacity;
            let status = town.status();
            let bounded = town.node.repository().templates()[0].policy.is_bounded();
            if bounded && !status.is_some_and(|status| status.in_debt) {
                assert!(
                    town.believed() <= capacity.as_micros().into(),
                    "holders believe more than {capacity}: {said}"
                );
            }
            said
        });
    });
}

pub(super) fn run(town: &mut Town, case: &TestCase) -> String {
    match case.directive.as_str() {
        "node" => {
            *town = Town::new(shape(template(0.0), case), number(case, "epoch").unwrap_or(1.0) as u64);
            String::new()
        }
        "restart" => {
            let old = Template::clone(&town.node.repository().templates()[0]);
            town.epoch(shape(old, case), number(case, "epoch").expect("restart takes an epoch") as u64);
            String::new()
        }
        "configure" => {
            let old = Template::clone(&town.node.repository().templates()[0]);
            town.node.reload(town.now, repository(shape(old, case)));
            String::new()
        }
        "ask" => case.input.lines().map(|line| ask(town, line)).collect(),
        "rounds" => rounds(town, case),
        "release" => {
            case.input.lines().for_each(|name| town.release(name));
            String::new()
        }
        "wait" => {
            town.now += seconds(number(case, "seconds").expect("wait takes seconds"));
            town.node.advance(town.now);
            String::new()
        }
        "books" => books(town),
        other => panic!("no such directive: {other}"),
    }
}

fn shape(mut template: Template, case: &TestCase) -> Template {
    for (key, value) in sorted(case) {
        let number = || value.parse::<f64>().expect("a number");
        match (key.as_str(), value.as_str()) {
            ("capacity", _) => template.capacity = Amount::from_f64(number()),
            ("lease", _) => template.lease_length = seconds(number()),
            ("refresh", _) => template.refresh_interval = seconds(number()),
            ("learning", _) => template.learning = seconds(number()),
            ("kind", "rate") => template.kind = Kind::Rate,
            ("kind", "gauge") => template.kind = Kind::Gauge,
            ("safe", "-1") => template.safe_capacity = SafeCapacity::Unlimited,
            ("safe", _) => template.safe_capacity = SafeCapacity::Fixed(Amount::from_f64(number())),
            ("policy", "fair") => template.policy = SharePolicy::FairShare,
            ("policy", "proportional") => template.policy = SharePolicy::ProportionalShare,
            ("policy", "static") => template.policy = SharePolicy::Static,
            ("policy", "none") => template.policy = SharePolicy::None,
            ("epoch", _) => {}
            (key, value) => panic!("no such thing as {key}={value}"),
        }
    }
    template
}

fn sorted(case: &TestCase) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = Vec::new();
    for key in ["capacity", "lease", "refresh", "learning", "kind", "safe", "policy", "epoch"] {
        if let Some(values) = case.args.get(key) {
            pairs.push((key.to_owned(), values.join("")));
        }
    }
    pairs
}

fn number(case: &TestCase, key: &str) -> Option<f64> {
    case.args.get(key).map(|values| values.join("").parse().expect("a number"))
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn ask(town: &mut Town, line: &str) -> String {
    let mut words = line.split_whitespace();
    let at: f64 =
        words.next().and_then(|at| at.strip_suffix('s')?.parse().ok()).expect("a line begins with seconds");
    town.now = Time::ZERO + seconds(at);
    let name = words.next().expect("then who asks").to_owned();
    let words = report(town, &name, words);
    one(town, &name, &words)
}

fn report<'a>(town: &mut Town, name: &str, tokens: impl Iterator<Item = &'a str>) -> Words {
    let mut words = wants(0.0);
    let mut bands = vec![Band { priority: 0, subclients: 1, wants: 0.0 }];
    for token in tokens {
        let mut memory = |memory| {
            town.holder(name).memory = memory;
        };
        let last = bands.last_mut().expect("there is one");
        match token {
            "fresh" => words.fresh = true,
            "lost" => words.lost = true,
            "forgets" => memory(Memory::Forgets),
            "incarnated" => memory(Memory::Incarnated),
            "," => bands.push(Band { priority: 0, subclients: 1, wants: 0.0 }),
            token => match (token.split_once('='), token.split_at(1)) {
                (Some(("claims", n)), _) => words.claims = Some(n.parse().expect("a number")),
                (Some(("held", n)), _) => words.held = Some(n.parse().expect("a number")),
                (None, ("w", n)) => last.wants = n.parse().expect("a number"),
                (None, ("p", n)) => last.priority = n.parse().expect("a number"),
                (None, ("n", n)) => {
                    words.node = true;
                    last.subclients = n.parse().expect("a number");
                }
                _ => panic!("no such word: {token}"),
            },
        }
    }
    words.bands = Bands::from_vec(bands);
    words
}

fn one(town: &mut Town, name: &str, words: &Words) -> String {
    let wants: f64 = words.bands.iter().map(|band| band.wants).sum();
    let answer = town.ask(name, words);
    let mut line = format!("{name} w{} {}", short(wants), grant(&answer));
    if words.lost {
        line.push_str(" (lost)");
    }
    line + "\n"
}

fn short(amount: f64) -> String {
    if amount > 1e15 { format!("{amount:e}") } else { amount.to_string() }
}

fn grant(answer: &Result<Answer, Refusal>) -> String {
    let answer = match answer {
        Ok(answer) => answer,
        Err(refusal) => return format!("refused: {refusal}"),
    };
    let Some(grant) = answer.grants.first() else {
        return format!("nothing but epoch {}", answer.epoch.unwrap_or(Epoch(0)));
    };
    let mut said = format!("g{} for {}s", grant.capacity, grant.length.as_secs_f64());
    if grant.refresh_interval != Duration::from_secs(5) {
        write!(said, " refresh {}s", grant.refresh_interval.as_secs_f64()).expect("a string takes it");
    }
    if grant.ack_wanted {
        said.push_str(" ack wanted");
    }
    if answer.retry.is_some() {
        said.push_str(" short");
    }
    said
}

fn rounds(town: &mut Town, case: &TestCase) -> String {
    let every = seconds(number(case, "every").unwrap_or(5.0));
    let mut said = String::new();
    let count = number(case, "n").expect("rounds takes n") as usize;
    for round in 0..count {
        said.clear();
        for line in case.input.lines() {
            let mut tokens = line.split_whitespace();
            let name = tokens.next().expect("a name").to_owned();
            let words = report(town, &name, tokens);
            let words = Words { fresh: words.fresh && round == 0, ..words };
            said += &one(town, &name, &words);
        }
        town.now += every;
    }
    said
}

fn books(town: &mut Town) -> String {
    town.node.advance(town.now);
    let Some(status) = town.status() else { return "nobody\n".to_owned() };
    let mut said = format!("capacity {} leased {} wants {}", status.capacity, status.leased, status.wants);
    said += if status.learning { " learning" } else { "" };
    said += if status.in_debt { " in debt" } else { "" };
    writeln!(said, " safe {}", status.safe_capacity).expect("a string takes it");
    for holder in &status.holders {
        let superseded = if holder.superseded { ", superseded" } else { "" };
        let line =
            format!("{} has {} wants {} share {}", holder.client, holder.has, holder.wants, holder.share);
        writeln!(said, "{line} ends in {:.1}s, {}{superseded}", holder.ends_in_seconds, holder.state)
            .expect("a string takes it");
    }
    said
}
