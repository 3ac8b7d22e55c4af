//! Each check beside a tree that is well, and beside one where that very thing is wrong.

use serde_json::{Value, json};

use super::*;
use crate::doctor::finding::Severity;
use crate::doctor::task::figures;

const NOON: f64 = 1_795_000_000.0;

/// Two tasks of a leaf that are well.
fn well() -> Vec<TaskFacts> {
    let page = |leads: bool| {
        json!({
            "leads": leads, "leader": "paris-1:1", "state_fault": null,
            "status": {
                "node": "paris", "config_version": 7, "later_config": null,
                "names": {"loop": null, "name_taken": false, "duplicates": []},
                "resources": if leads { json!([row()]) } else { json!([]) },
            },
        })
    };
    let text = "# HELP x y\nlessor_build_info{version=\"1\",commit=\"a\"} 1\nlessor_etcd_healthy 1\n\
                lessor_config_last_reload_successful 1.0\nlessor_parent_up 1\nlessor_claims_forged_total 0\n\
                lessor_certificate_expiry_timestamp_seconds{use=\"server\"} 1797592000\n\
                process_open_fds 17\nprocess_max_fds 1024\n";
    let task = |server: &str, leads| TaskFacts {
        server: server.to_owned(),
        status: page(leads),
        figures: figures(text),
        asked_at: NOON,
        ahead_seconds: Some(0.0),
        ..TaskFacts::default()
    };
    vec![task("paris-1:1", true), task("paris-2:1", false)]
}

fn row() -> Value {
    json!({
        "resource": "db", "template": "*", "capacity": 100.0, "outstanding": 60.0, "wants": 60.0,
        "overcommitment": 0.0, "duplicate_client_ids": 0, "lease_ends_in_seconds": 20.0,
    })
}

/// The findings where `spoil` has changed something about the task that leads.
fn found(spoil: impl Fn(&mut TaskFacts)) -> Vec<(String, Severity, String)> {
    let mut tasks = well();
    spoil(&mut tasks[0]);
    let outcomes = run(&tasks);
    let findings = outcomes.into_iter().flat_map(|CheckOutcome { check, findings }| {
        findings.into_iter().map(move |finding| (check.clone(), finding.severity, finding.what))
    });
    findings.collect()
}

/// One finding and no other, by that check, of that severity, which says this.
fn check(name: &str, severity: Severity, says: &str, spoil: impl Fn(&mut TaskFacts)) {
    let found = found(spoil);
    let [(check, how_bad, what)] = &found[..] else { panic!("{name}: {found:?}") };
    assert!((check.as_str(), *how_bad) == (name, severity) && what.contains(says), "{name}: {found:?}");
}

fn set(task: &mut TaskFacts, figure: &str, value: f64) {
    assert!(
        task.figures.insert(figure.to_owned(), value).is_some(),
        "{figure} is not there in a tree that is well"
    );
}

#[test]
fn a_tree_that_is_well_has_no_findings() {
    assert_eq!(found(|_| {}), []);
    assert_eq!(run(&well()).len(), CHECKS.len() + 1);
}

#[test]
fn every_check_finds_what_it_is_for() {
    use Severity::{Fault, Warning};
    check("tasks answer", Fault, "refused", |task| task.away = Some("connection refused".into()));
    check("healthy and ready", Fault, "stands still", |task| task.sick = Some("it stands still".into()));
    check("healthy and ready", Fault, "drains", |task| task.unready = Some("it drains".into()));
    check("one program", Warning, "2 programs", |task| {
        task.figures.retain(|name, _| !name.starts_with("lessor_build_info"));
        task.figures.insert("lessor_build_info{version=\"2\"}".into(), 1.0);
    });
    check("one configuration", Fault, "version 7 is here, and 8", |task| {
        task.status["status"]["later_config"] = 8.into();
    });
    check("one configuration", Warning, "is not in force", |task| {
        set(task, "lessor_config_last_reload_successful", 0.0);
    });
    check("one configuration", Warning, "versions 6 and 7", |task| {
        task.status["status"]["config_version"] = 6.into();
    });
    check("clocks", Warning, "5 s ahead of paris-2:1", |task| task.ahead_seconds = Some(5.0));
    check("etcd and state", Warning, "does not answer paris-1:1", |task| {
        set(task, "lessor_etcd_healthy", 0.0);
    });
    check("etcd and state", Fault, "disk is full", |task| task.status["state_fault"] = "disk is full".into());
    check("names", Fault, "stands above itself", |task| {
        task.status["status"]["names"]["loop"] = "a > b > a".into();
    });
    check("names", Fault, "holds the name", |task| {
        task.status["status"]["names"]["name_taken"] = true.into();
    });
    check("names", Warning, "two processes below", |task| {
        task.status["status"]["names"]["duplicates"] = json!(["lyon"]);
    });
    let in_row = |field: &'static str, value: Value| {
        move |task: &mut TaskFacts| task.status["status"]["resources"][0][field] = value.clone()
    };
    check("names", Warning, "one client id, of db", in_row("duplicate_client_ids", 2.into()));
    check("lease from above", Fault, "of db", in_row("lease_ends_in_seconds", 0.0.into()));
    check("lease from above", Fault, "does not answer", |task| set(task, "lessor_parent_up", 0.0));
    check("promise kept", Fault, "of db", in_row("overcommitment", 1.0.into()));
    check("promise kept", Warning, "seals", |task| set(task, "lessor_claims_forged_total", 3.0));
    check("promise kept", Warning, "any more db", in_row("template", Value::Null));
    check("enough for all", Warning, "of db", |task| {
        let row = &mut task.status["status"]["resources"][0];
        (row["outstanding"], row["wants"]) = (100.0.into(), 150.0.into());
    });
    let certificate = "lessor_certificate_expiry_timestamp_seconds{use=\"server\"}";
    check("certificates and files", Fault, "0.5 days", |task| set(task, certificate, NOON + DAY / 2.0));
    check("certificates and files", Warning, "3.0 days", |task| set(task, certificate, NOON + DAY * 3.0));
    check("certificates and files", Warning, "1000 of 1024", |task| set(task, "process_open_fds", 1000.0));
}

#[test]
fn two_leaders_of_a_node_and_none_are_faults() {
    let leaders = |first: bool, second: bool, known: Value| {
        let mut tasks = well();
        for (task, leads) in tasks.iter_mut().zip([first, second]) {
            (task.status["leads"], task.status["leader"]) = (leads.into(), known.clone());
        }
        let led = run(&tasks).into_iter().find(|outcome| outcome.check == "each node is led");
        led.expect("there is such a check").findings
    };
    assert_eq!(leaders(true, false, "paris-1:1".into()), []);
    assert_eq!(leaders(false, false, "paris-3:1".into()), [], "a third one leads");
    for (findings, says) in [
        (leaders(true, true, "paris-1:1".into()), "each say that they lead"),
        (leaders(false, false, Value::Null), "nobody leads"),
    ] {
        assert!(findings.len() == 1 && findings[0].severity == Severity::Fault, "{findings:?}");
        assert!(findings[0].what.contains(says), "{findings:?}");
    }
}

#[test]
fn an_etcd_that_answers_nobody_is_a_fault() {
    let mut tasks = well();
    tasks.iter_mut().for_each(|task| set(task, "lessor_etcd_healthy", 0.0));
    let severities = run(&tasks).into_iter().flat_map(|outcome| outcome.findings).map(|found| found.severity);
    assert_eq!(severities.collect::<Vec<_>>(), [Severity::Fault]);
}
