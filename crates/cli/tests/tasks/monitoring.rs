//! Figures, alerts and dashboard: each figure is explained and there, what rules and dashboard name is there, every alert has
//! its part of the documentation and its cases, and a real Prometheus reads all of it.

mod expressions;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use crate::house::etcd::is_there;
use crate::house::prometheus::{Prometheus, RULES};
use crate::house::{eventually, page, repository_file};

use self::expressions::{Board, Cases, Rule, RuleFile, plain};
use self::tree::Tree;

/// Labels that Prometheus adds, or a join does.
const ADDED: [&str; 4] = ["job", "instance", "node", "le"];

/// All that promtool does not like about figures: a name that looks as if there were a summary beside it.
const DISLIKED: &str = "lessor_summary_age_seconds metric name should not include type 'summary'";

fn text(path: &str) -> String {
    std::fs::read_to_string(repository_file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rules() -> Vec<Rule> {
    let file: RuleFile = serde_saphyr::from_str(&text(RULES)).unwrap();
    file.groups.into_iter().flat_map(|group| group.rules).collect()
}

fn alerts() -> Vec<(String, Rule)> {
    rules().into_iter().filter_map(|rule| Some((rule.alert.clone()?, rule))).collect()
}

/// The expressions of the dashboard, with all variables set.
fn board() -> Vec<String> {
    let board: Board = serde_json::from_str(&text("deploy/grafana/lessor.json")).unwrap();
    let targets = board.panels.iter().flat_map(|panel| &panel.targets);
    targets.map(|target| plain(&target.expr)).collect()
}

/// The names in the first column of the tables of `docs/metrics.md`, but for those of clients.
fn documented() -> BTreeSet<String> {
    let page = text("docs/metrics.md");
    let page = page.split("\n## Of a client\n").next().unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let columns = rows.map(|line| line.trim_start_matches("| ").split(" |").next().unwrap());
    columns.flat_map(|column| column.split(", ")).map(|name| name.trim_matches('`').to_owned()).collect()
}

/// The family of a series: a histogram has three parts.
fn family(name: &str) -> &str {
    let parts = ["_bucket", "_sum", "_count"];
    parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name)
}

/// A leaf with tasks, whose clients tell each other of domains, a root with a state directory, and a server with TLS have all
/// figures there are.
#[tokio::test]
async fn every_figure_is_explained_and_every_figure_that_is_explained_is_there() {
    let Some(tree) = Tree::open().await else { return };
    tree.let_pass().await;
    let shown: BTreeSet<String> =
        tree.series().await.into_keys().map(|name| family(&name).to_owned()).collect();
    assert_eq!(shown, documented());
    assert!((tree.root.metric("lessor_state_healthy").await - 1.0).abs() < 1e-9);
    let leaf = tree.leaf.page("/metrics").await.body;
    assert!(!leaf.contains("lessor_state_healthy"), "it has no state directory");
    tree.close().await;
}

#[tokio::test]
async fn what_rules_and_dashboard_name_is_in_a_live_scrape() {
    let Some(tree) = Tree::open().await else { return };
    let there = tree.series().await;
    let recorded: BTreeSet<String> = rules().into_iter().filter_map(|rule| rule.record).collect();
    let all: Vec<String> = rules().into_iter().map(|rule| rule.expr).chain(board()).collect();
    assert!(all.len() > 70, "{} expressions", all.len());
    for expression in &all {
        let named = expressions::named(expression);
        let mut known: BTreeSet<&str> = ADDED.into();
        for (name, matchers) in &named.series {
            if recorded.contains(name) {
                known.extend(["resource"]);
                continue;
            }
            let labels = there.get(name).unwrap_or_else(|| panic!("{name} of {expression} is not there"));
            known.extend(labels.keys().map(String::as_str));
            for (label, value) in matchers {
                let values = labels.get(label);
                let is_there = values.is_some_and(|values| match value {
                    Some(value) => values.contains(value),
                    None => true,
                });
                assert!(is_there, "{label}={value:?} of {name} in {expression} is not there: {values:?}");
            }
        }
        for label in &named.labels {
            assert!(known.contains(label.as_str()), "nothing in {expression} has {label}");
        }
    }
    tree.close().await;
}

#[test]
fn every_alert_is_explained_and_every_alert_that_is_explained_is_there() {
    let page = text("docs/alerts.md");
    let explained: BTreeMap<String, &str> = page
        .split("\n## ")
        .skip(1)
        .map(|part| {
            let (title, body) = part.split_once('\n').unwrap();
            (title.trim().to_owned(), body)
        })
        .collect();
    let alerts = alerts();
    let names: BTreeSet<String> = alerts.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, explained.keys().cloned().collect());
    for (name, rule) in &alerts {
        let severity = rule.labels["severity"].as_str();
        assert!(["page", "warn", "ticket"].contains(&severity), "{name}: {severity}");
        assert!(rule.annotations.get("summary").is_some_and(|summary| summary.len() > 10), "{name}");
        // A title is its own anchor in lower case.
        let anchor = format!("docs/alerts.md#{}", name.to_lowercase());
        assert_eq!(rule.annotations.get("docs"), Some(&anchor), "{name}");
        let body = explained[name];
        assert!(body.contains(&format!("`{severity}`")), "{name}: the page has another severity");
        for part in ["**It means:** ", "**Look at:** ", "**Do:** "] {
            assert!(body.contains(part), "{name} lacks {part}");
        }
    }
}

#[test]
fn every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() {
    let cases: Cases = serde_saphyr::from_str(&text("deploy/prometheus/lessor.test.yaml")).unwrap();
    let mut seen = BTreeMap::<String, [bool; 2]>::new();
    for case in cases.tests.iter().flat_map(|test| &test.alert_rule_test) {
        seen.entry(case.alertname.clone()).or_default()[usize::from(case.exp_alerts.is_empty())] = true;
    }
    let expected = alerts().into_iter().map(|(name, _)| (name, [true, true])).collect();
    assert_eq!(seen, expected);
}

/// The exit code of promtool and all that it says; nothing, and it is said, if it is not installed.
fn promtool(arguments: &[&str], input: Option<std::fs::File>) -> Option<(i32, String)> {
    if !is_there("promtool", "--version", "prometheus") {
        return None;
    }
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(repository_file("."));
    let output = command.stdin(input.map_or(Stdio::null(), Stdio::from)).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.code().unwrap(), String::from_utf8(said).unwrap()))
}

#[test]
fn promtool_finds_no_fault_in_the_rules_and_all_cases_come_out() {
    let Some((code, said)) = promtool(&["check", "rules", RULES], None) else { return };
    assert!(code == 0 && said.contains(&format!("{} rules found", rules().len())), "{code}\n{said}");
    let (code, said) = promtool(&["test", "rules", "deploy/prometheus/lessor.test.yaml"], None).unwrap();
    assert!(code == 0 && said.contains("SUCCESS"), "{code}\n{said}");
}

#[tokio::test]
async fn promtool_reads_the_older_format() {
    let Some(tree) = Tree::open().await else { return };
    let directory = tempfile::tempdir().unwrap();
    for (number, target) in tree.targets().into_iter().enumerate() {
        let path = directory.path().join(number.to_string());
        std::fs::write(&path, page::get(target, "/metrics").await.body).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        // With 1 it cannot read it; with 3 it does not like a name.
        if let Some((code, said)) = promtool(&["check", "metrics"], Some(file)) {
            assert_eq!((code, said.trim()), (3, DISLIKED), "{target}");
        }
    }
    tree.close().await;
}

#[tokio::test]
async fn prometheus_has_a_series_for_every_panel_and_alerts_when_a_server_crashes() {
    let Some(mut tree) = Tree::open().await else { return };
    let Some(prometheus) = Prometheus::started(&tree.targets()).await else {
        return tree.close().await;
    };
    for expression in board() {
        let found = async || !prometheus.query(&expression).await.is_empty();
        eventually(&format!("a series for {expression}"), found).await;
    }
    let rules = prometheus.rules().await;
    assert_eq!(rules.len(), self::rules().len());
    let bad: Vec<_> = rules.iter().filter(|rule| rule["health"] != "ok").collect();
    assert!(bad.is_empty(), "{bad:#?}");
    let calm = prometheus.alerts().await;
    assert!(calm.iter().all(|alert| alert["state"] != "firing"), "{calm:#?}");

    let instance = tree.root.address().to_string();
    let started = format!("changes(process_start_time_seconds{{instance=\"{instance}\"}}[10m])");
    for times in 1..=2 {
        tree = tree.crash_root().await;
        let changes = times.to_string();
        let seen = async || {
            let series = prometheus.query(&started).await;
            series.iter().any(|one| one["value"][1] == changes.as_str())
        };
        eventually(&format!("start {times} is seen"), seen).await;
    }
    let fires = async || {
        let alerts = prometheus.alerts().await;
        alerts.iter().any(|alert| {
            alert["labels"]["alertname"] == "LessorCrashed"
                && alert["labels"]["instance"] == instance
                && alert["state"] == "firing"
        })
    };
    eventually("the crashes are an alert", fires).await;
    let alerts = prometheus.alerts().await;
    assert!(alerts.iter().all(|alert| alert["labels"]["alertname"] != "LessorOverCommitted"), "{alerts:#?}");
    drop(prometheus);
    tree.close().await;
}
