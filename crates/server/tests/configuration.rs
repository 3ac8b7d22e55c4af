//! Configurations as text: those in `configs/` are good, and faulty ones are told what is wrong with them.
#![cfg(feature = "shell")]

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use lessor_proto::{ResourceId, wire};
use lessor_server::access::Access;
use lessor_server::repository::{Domains, Fraction, Legacy, Repository, Template};
use lessor_server::shell::source::{self, LoadError};
use proptest::prelude::*;

fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn shown(template: &Template) -> String {
    let Template { glob, capacity, safe_capacity, kind, policy, .. } = template;
    let [lease, refresh, learning] =
        [template.lease_length, template.refresh_interval, template.learning].map(|time| time.as_secs());
    let turns = template.turns().map(|(rotate, quantum)| format!(" rotate={rotate:?} quantum={quantum:?}"));
    let usual = (Legacy::Expire, Fraction::ALL);
    let legacy = (template.legacy, template.legacy_max_fraction);
    let legacy = (legacy != usual).then(|| format!(" legacy={:?} most={}", legacy.0, legacy.1.as_f64()));
    let floor = if template.reserves() { floor(template) } else { String::new() };
    let mut burst = template.burst.map(|burst| format!(" burst={burst:?}")).unwrap_or_default();
    if let Some(small_leases) = template.small_leases {
        burst.push_str(&format!(" small leases: {small_leases:?}"));
    }
    for (name, cap) in
        [("priorities", template.most_priority), ("clients", template.most_clients.map(i64::from))]
    {
        burst.push_str(&cap.map_or(String::new(), |most| format!(" {name} up to {most}")));
    }
    if template.enforce < Fraction::ALL {
        burst.push_str(&format!(" enforced={}", template.enforce.as_f64()));
    }
    if let Some(beside) = template.beside {
        burst.push_str(&format!(" beside={beside}"));
    }
    if let Some(window) = template.window {
        burst.push_str(&format!(" window={window:?}"));
    }
    if template.workers_in_name {
        burst.push_str(" workers in the name");
    }
    let domains = template.domains.as_ref().map(domains).unwrap_or_default();
    format!(
        "{glob:?} capacity={capacity} safe={safe_capacity:?} {kind:?} {policy:?} \
         lease={lease} refresh={refresh} learning={learning}{}{}{} {:?}{domains}",
        turns.unwrap_or_default(),
        legacy.unwrap_or_default(),
        template.spare_to_nodes.map(|part| format!(" spare={}", part.as_f64())).unwrap_or_default()
            + &floor
            + &burst,
        template.description
    )
}

/// The terms that the floors of its resources follow.
fn floor(template: &Template) -> String {
    let (reserved, lease) = (template.reserved(), template.safe_lease().as_secs());
    format!(" reserved={reserved} of {} for {lease}", template.capacity)
}

/// The terms that the lease of a domain follows.
fn in_parts(template: &Template) -> String {
    let Some(part) = template.part else { return String::new() };
    let (refresh, quantum) = (template.refresh_interval, template.quantum.expect("it has turns"));
    format!(
        " {:?} {} in parts of {part}, lease={:?} refresh={refresh:?} quantum={quantum:?}",
        template.policy, template.capacity, template.lease_length
    )
}

/// Each contract a line, and what was made of it.
fn domains(domains: &Domains) -> String {
    let wire = domains.policies.to_wire();
    let mut text = String::new();
    let mut show = |name: &str, contract: &wire::DomainContract| {
        for policy in &contract.policy {
            let limits = [("hard", policy.hard_limit), ("global", policy.global_limit)];
            let limits =
                limits.map(|(name, limit)| limit.map_or(String::new(), |limit| format!(" {name}={limit}")));
            let tiers: String = policy.tier.iter().map(tier).collect();
            let windows =
                policy.windows.map_or(String::new(), |_| format!(" windows={:?}", policy.windows()));
            text += &format!("\n  {name}:{}{windows}{tiers}", limits.concat());
        }
    };
    wire.default.iter().for_each(|contract| show("default", contract));
    wire.r#override.iter().for_each(|each| show(&each.glob, &each.contract));
    if !wire.allow_unconfigured.is_empty() || !wire.ignore_configured.is_empty() {
        text += &format!("\n  allow {:?} ignore {:?}", wire.allow_unconfigured, wire.ignore_configured);
    }
    domains.changes.iter().for_each(|change| text += &format!("\n  note: {change}"));
    text
}

fn tier(tier: &wire::DomainTier) -> String {
    let time = Duration::from_nanos;
    let cooldown = time(tier.cooldown_nanos.unwrap_or(0));
    let skippable = if tier.is_skippable.unwrap_or(false) { " skippable" } else { "" };
    let slices = tier.slices.map_or(String::new(), |slices| format!("/{slices}"));
    let count = tier.count.map_or(String::new(), |_| format!(" {:?}{slices}", tier.count()).to_lowercase());
    let times = format!("{:?} {:?} {cooldown:?}", time(tier.window_nanos), time(tier.active_nanos));
    format!(" ({} {times}{skippable}{count})", tier.limit)
}

fn all(repository: &Repository) -> String {
    let mut text: String = repository.templates().iter().map(|template| shown(template) + "\n").collect();
    if repository.version() > 0 {
        text += &format!("version {}\n", repository.version());
    }
    for template in repository.shadowed() {
        text += &format!("shadowed: {}\n", template.glob);
    }
    text
}

/// `parse`: the repository, or all faults. `find`: which template each name follows, names above `---`.
#[test]
fn stories() {
    datadriven::walk(here("tests/configuration/").to_str().unwrap(), |file| {
        file.run(|case| match case.directive.as_str() {
            "parse" => match source::parse("x.yaml", &case.input) {
                Ok(repository) => all(&repository),
                Err(faults) => format!("{faults}\n"),
            },
            "find" => {
                let (names, text) = case.input.split_once("---\n").expect("names, ---, a configuration");
                let repository = source::parse("x.yaml", text).unwrap();
                let follows = |name: &str| {
                    let found = repository.find(&ResourceId::new(name, 256).unwrap());
                    found.map_or("none".into(), |template| {
                        format!("{:?}{}", template.glob, in_parts(&template))
                    })
                };
                names.lines().map(|name| format!("{name} -> {}\n", follows(name))).collect()
            }
            other => panic!("no directive {other}"),
        });
    });
}

#[test]
fn every_file_in_configs_is_good() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(here("../../configs")).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("doors") {
            // The rules there are for doors, whose tests read them; before their first start stands this one.
            source::load(path.join("first.yaml")).unwrap_or_else(|error| panic!("{error}"));
            continue;
        }
        if path.ends_with("access.yaml") {
            let rules: Access = source::load_document(&path).unwrap_or_else(|error| panic!("{error}"));
            assert!(!rules.clients.is_empty() && !rules.nodes.is_empty() && !rules.operators.is_empty());
            continue;
        }
        let repository = source::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(!repository.templates().is_empty(), "{} is empty", path.display());
        assert_eq!(repository.shadowed().count(), 0, "{} has templates out of reach", path.display());
        assert!(repository.templates().iter().all(|template| !template.description.is_empty()));
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(
        names,
        [
            "doorman.yaml",
            "leaf.yaml",
            "orders.yaml",
            "quickstart.yaml",
            "root.yaml",
            "tenants.yaml",
            "windows.yaml"
        ]
    );
}

#[test]
fn what_is_no_text_is_told_apart_from_a_fault() {
    let directory = tempfile::tempdir().unwrap();
    let load = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        source::load(path).unwrap_err()
    };
    assert!(matches!(load("bytes", b"a: \xff"), LoadError::NotText { at: 3, .. }));
    assert!(matches!(load("large", &vec![b'\n'; (16 << 20) + 1]), LoadError::TooLarge { .. }));
    assert!(matches!(load("faulty", b"a: 1"), LoadError::Faulty(faults) if faults.count() == 2));
    let absent = source::load(directory.path().join("absent")).unwrap_err();
    assert!(absent.to_string().contains("absent: No such file"), "{absent}");
}

#[test]
fn alias_bomb_is_refused() {
    let mut text = String::from("a: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let row = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{row}]").unwrap();
    }
    let faults = source::parse("bomb.yaml", &text).unwrap_err();
    assert_eq!(faults.count(), 1);
    assert!(faults.to_string().contains("aliases repeat more than 250000 values"), "{faults}");
}

#[test]
fn hostile_shapes_are_refused() {
    for (text, told) in [
        ("[".repeat(100_000), "recursion limit"),
        ("a: &a [*a]".to_owned(), "within what it stands for"),
        ("- ".repeat(100) + "x", "nested deeper than 64 levels"),
        (format!("[{}]", "1,".repeat(1_000_001)), "more than 1000000 values"),
        (format!("? {}1{}\n: 1", "[".repeat(90), "]".repeat(90)), "nested deeper"),
    ] {
        let faults = source::parse("hostile.yaml", &text).unwrap_err();
        assert!(faults.to_string().contains(told), "{faults}");
    }
}

#[test]
fn thousands_of_templates_are_read() {
    let mut text = String::from(
        "x-usual: &usual {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}\nresources:\n",
    );
    for index in 0..20_000 {
        writeln!(text, "- {{identifier_glob: \"db-{index}\", capacity: {index}, algorithm: *usual}}")
            .unwrap();
    }
    let repository = source::parse("many.yaml", &text).unwrap();
    let name = ResourceId::new("db-19999", 256).unwrap();
    assert_eq!(repository.find(&name).unwrap().capacity.floor_units(), 19_999);
}

#[test]
fn faults_beyond_a_thousand_are_counted() {
    let text = format!("resources:\n{}", "- 1\n".repeat(1_234));
    let faults = source::parse("many.yaml", &text).unwrap_err();
    assert_eq!((faults.iter().count(), faults.count()), (1_000, 1_234));
    assert!(faults.to_string().ends_with("many.yaml: and 234 more"));
}

const WHOLE: &str = include_str!("../../../configs/orders.yaml");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_slip_of_the_pen_is_read_or_told_with_its_place(
        slips in prop::collection::vec((0..WHOLE.len(), 0usize..4, "[-:*&!<>{}\\[\\]\"'#|?,~ \n\t\u{0}a1ö]{0,2}"), 1..4),
    ) {
        let mut text = WHOLE.to_owned();
        for (at, length, replacement) in slips {
            let start = text.floor_char_boundary(at);
            let end = text.floor_char_boundary(start + length);
            text.replace_range(start..end, &replacement);
        }
        if let Err(faults) = source::parse("slips.yaml", &text) {
            prop_assert!(faults.count() > 0);
            for fault in &faults {
                prop_assert!(fault.line >= 1 && fault.line <= text.split('\n').count() + 1, "{fault:?}");
                prop_assert_eq!(fault.snippet.lines().count(), 2, "{:?}", fault);
            }
        }
    }
}
