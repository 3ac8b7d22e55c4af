//! `lessor sim tiers` as people and scripts run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::house::{Outcome, run};

/// The post's "Penalties", asked for twenty a second.
const PENALTIES: [&str; 6] = ["--tier", "5/1s", "--tier", "50/5s:5s:15s", "--arrive", "20/s"];

const TENANTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/tenants.yaml");

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

async fn tiers(arguments: &[&str]) -> Outcome {
    run(&[&["sim", "tiers"], arguments].concat()).await
}

async fn succeed(arguments: &[&str]) -> String {
    let Outcome { code, out, err } = tiers(arguments).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?} printed {out}");
    out
}

async fn json(arguments: &[&str]) -> Value {
    let out = succeed(&[arguments, &["--json"]].concat()).await;
    assert_eq!(out.lines().count(), 1, "{out}");
    serde_json::from_str(&out).unwrap()
}

#[tokio::test]
async fn a_run_is_one_line_of_json() {
    let mut line = json(&PENALTIES).await;
    assert_eq!((&line["scenario"], &line["policy"]), (&"tiers".into(), &"5/1s, 50/5s:5s:15s".into()));
    // Three bursts a minute of fifty, and sixteen times as long without.
    let burst = &line["tiers"][1];
    assert_eq!(
        (&burst["entered"], &burst["hits"], &burst["active_s"]),
        (&3.into(), &150.into(), &15.0.into())
    );
    let sum = |of: &str| {
        line["tiers"].as_array().unwrap().iter().map(|tier| tier[of].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((&line["asked"], &line["granted"]), (&1200.into(), &sum("hits").into()));
    assert_eq!(line["refused"]["tiers"], sum("refused"));
    assert_eq!(sum("hits") + sum("refused"), 1200);
    line.as_object_mut().unwrap().remove("wall_s").unwrap();
}

#[tokio::test]
async fn a_run_is_a_picture_of_characters_and_a_table() {
    let out = succeed(&PENALTIES).await;
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[1].starts_with("tier 2   ") && lines[1].ends_with(" 50 in 5s"), "{out}");
    assert!(
        lines[2].starts_with("         ↑████░░░░░░░░░░░░↑") && lines[2].ends_with("5s, rests 15s"),
        "{out}"
    );
    assert!(lines[3].starts_with("tier 1   ") && lines[4].contains('▒'), "{out}");
    assert!(lines.iter().all(|line| line.chars().count() <= 100) && !out.contains('\x1b'), "{out}");
    assert!(out.contains("1200 requests for 1200 hits: 376 granted, 824 refused, 824 by tiers\n"), "{out}");
    assert!(out.lines().any(|line| line.contains("tier 2") && line.contains("50 of 50")), "{out}");
}

#[tokio::test]
async fn out_gets_a_table_and_a_picture() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("made/by/it");
    let contract = ["--tier", "20/1h", "--and", "30/1day", "--for", "36h", "--arrive", "6/h"];
    succeed(&[&contract[..], &["--out", out.to_str().unwrap()]].concat()).await;
    let table = fs::read_to_string(out.join("tiers.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 6 * 36);
    // The thirty-first is the first that the second policy refuses.
    let refused = table.lines().find(|row| row.split(',').nth(3) == Some("0")).unwrap();
    assert!(refused.starts_with("18000,1,1,0,tiers,2,1,30,30,"), "{refused}");
    let picture = fs::read_to_string(out.join("tiers.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains(">policy 2: 30/1day<"), "{picture}");
}

#[tokio::test]
async fn a_domain_of_a_file_follows_what_the_file_says() {
    let of = |domain| {
        ["--config", TENANTS, "--resource", "search/queries", "--domain", domain, "--arrive", "burst 200"]
    };
    let usual = json(&of("tenant-1")).await;
    assert_eq!(usual["policy"], "20/1s, 400/10s:1m:2m, hard 80");
    assert_eq!((&usual["granted"], &usual["refused"]["hard"]), (&80.into(), &120.into()));
    let trial = json(&of("trial-7")).await;
    assert_eq!((&trial["granted"], &trial["tiers"][1]["policy"]), (&20.into(), &2.into()));
    assert_eq!(json(&of("tenant-666")).await["granted"], 0);
}

/// Five late in a second are followed by five early in the next one, or are not.
#[tokio::test]
async fn windows_are_kept_or_reset() {
    let asked =
        ["--tier", "5/1s", "--arrive", "burst 1", "--arrive", "burst 4@900ms", "--arrive", "burst 5@1s"];
    let kept = json(&[&asked[..], &["--windows", "keep"]].concat()).await;
    assert_eq!((&kept["policy"], &kept["granted"]), (&"5/1s".into(), &5.into()));
    let reset = json(&[&asked[..], &["--windows", "reset"]].concat()).await;
    assert_eq!((&reset["policy"], &reset["granted"]), (&"5/1s, windows reset".into(), &10.into()));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reset.yaml");
    let template = "resources:\n  - identifier_glob: db\n    capacity: 9\n    algorithm: {kind: FAIR_SHARE, lease_length: 60, \
        refresh_interval: 5}\n    domains: {default: {windows: reset, tiers: [{limit: 5, window: 1s, active: 1s}]}}\n";
    fs::write(&path, template).unwrap();
    let of_file = ["--config", path.to_str().unwrap(), "--resource", "db", "--domain", "a"];
    assert_eq!(json(&[&of_file[..], &asked[2..]].concat()).await["granted"], 10);
}

#[tokio::test]
async fn requests_come_from_a_table_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("requests.csv");
    let table = path.to_str().unwrap();
    fs::write(&path, "t,copies,min\n0.5,7,1\n2,3,3\n2.5,4,4\n").unwrap();
    let line = json(&["--tier", "5/1s", "--arrivals", table, "--for", "10s"]).await;
    assert_eq!((&line["requests"], &line["asked"], &line["granted"]), (&3.into(), &14.into(), &8.into()));
    let both = json(&["--tier", "5/1s", "--arrivals", table, "--arrive", "burst 2@9s", "--for", "10s"]).await;
    assert_eq!((&both["requests"], &both["granted"]), (&5.into(), &10.into()));
    let Outcome { code, err, .. } = tiers(&["--tier", "5/1s", "--arrivals", table, "--for", "2s"]).await;
    assert_eq!(code, Some(0));
    assert!(err.contains("requests.csv: 2 of 3 rows are later than --for 2s"), "{err}");

    fs::write(&path, "0\n1,many\n").unwrap();
    let Outcome { code, err, .. } = tiers(&["--tier", "5/1s", "--arrivals", table]).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("requests.csv:2: copies: found \"many\", wanted a whole number from 1 to"), "{err}");
}

#[tokio::test]
async fn what_is_at_random_depends_on_the_seed_alone() {
    let draw = async |seed| {
        let mut line = json(&["--tier", "5/1s", "--arrive", "poisson 9/s", "--seed", seed]).await;
        line.as_object_mut().unwrap().remove("wall_s");
        line
    };
    let first = draw("4").await;
    assert_eq!(first, draw("4").await);
    assert_ne!(first["asked"], draw("5").await["asked"]);
}

#[tokio::test]
async fn others_use_what_all_may_have() {
    let alone = ["--tier", "8/1s", "--global", "10", "--arrive", "burst 20@1s", "--for", "3s"];
    assert_eq!(json(&alone).await["granted"], 8);
    let beside = json(&[&alone[..], &["--others", "4/s"]].concat()).await;
    assert_eq!((&beside["granted"], &beside["refused"]["global"]), (&5.into(), &15.into()));
}

/// Commands in docs/tiers.md with what is shown of their output, and the picture beside it.
#[tokio::test]
async fn the_page_about_tiers_shows_what_is_printed() {
    let page = fs::read_to_string(Path::new(DOCS).join("tiers.md")).unwrap();
    let shown: Vec<&str> = page.split("```console\n$ lessor sim tiers ").skip(1).collect();
    assert_eq!(shown.len(), 4, "the post has four configurations");
    for shown in &shown {
        let (command, rest) = shown.split_once('\n').unwrap();
        let (lines, _) = rest.split_once("```").unwrap();
        let out = succeed(&command.split(' ').collect::<Vec<_>>()).await;
        assert!(out.starts_with(lines), "lessor sim tiers {command} prints\n{out}");
    }
    let out = tempfile::tempdir().unwrap();
    succeed(&[&PENALTIES[..], &["--out", out.path().to_str().unwrap()]].concat()).await;
    let drawn = fs::read_to_string(out.path().join("tiers.svg")).unwrap();
    let path = Path::new(DOCS).join("penalties.svg");
    assert!(fs::read_to_string(&path).unwrap() == drawn, "{} is another picture", path.display());
}

/// A policy is what a server would make of it.
#[tokio::test]
async fn what_is_changed_about_a_policy_is_said() {
    let Outcome { code, out, err } =
        tiers(&["--tier", "5/10s:3s", "--arrive", "1/s", "--for", "2s", "--json"]).await;
    assert_eq!(code, Some(0));
    assert_eq!(err, "note: policy 1: tier 1: window 10s is cut to the active time, 3s\n");
    assert!(out.contains("\"policy\":\"5/3s\""), "{out}");
}

#[tokio::test]
async fn what_is_wrong_is_named_with_what_was_wanted() {
    for (arguments, complaint) in [
        (&["--arrive", "5/s"][..], "--tier <TIER>|--config <FILE>"),
        (&["--tier", "5/1s"], "--arrive <PATTERN>|--arrivals <FILE.csv>"),
        (&["--tier", "5/1s:soon", "--arrive", "5/s"], "found \"soon\", wanted a time as in 3s"),
        (&["--tier", "5/1s", "--arrive", "often"], "found \"often\", wanted a number and a time as in 5/s"),
        (
            &["--tier", "5/1s", "--arrive", "5/s", "--for", "0s"],
            "found \"0s\", wanted a time from 1ns to 584 years",
        ),
        (&["--tier", "5/1s", "--arrive", "5/s", "--min", "2"], "--min: found 2, wanted at most --copies, 1"),
        (
            &["--tier", "5/1s", "--arrive", "5/s", "--hard", "0"],
            "hard limit 0 grants nothing, at least 1 is wanted",
        ),
        (
            &["--tier", "5/1s", "--arrive", "5/s", "--others", "5/s"],
            "--others means nothing without a global limit",
        ),
        (&["--tier", "5/1s", "--arrive", "5/us"], "more than 1000000 requests"),
        (
            &["--config", TENANTS, "--resource", "search", "--domain", "a", "--arrive", "5/s"],
            "--resource: found \"search\", wanted one that a template of",
        ),
        (
            &["--config", TENANTS, "--resource", "partners/calls", "--domain", "me", "--arrive", "5/s"],
            "--domain: found \"me\", which is refused, as no policy is for it",
        ),
    ] {
        let Outcome { code, err, .. } = tiers(arguments).await;
        assert!(code == Some(1) || code == Some(2), "{arguments:?}: {code:?}");
        assert!(err.contains(complaint), "{arguments:?}: {err}, wanted {complaint}");
    }
}
