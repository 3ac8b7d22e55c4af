//! Overrides: what is frozen, drained and capped at a leader whose templates are in a file, by commands and by calls.

use std::time::Duration;

use lessor_client::{Amount, Client};
use serde_json::json;

use crate::desk::Desk;
use crate::gate::Gate;
use crate::house::{Outcome, eventually, run};

const CAPACITY: f64 = 1000.0;

async fn open(rules: &str) -> (Gate, Desk, String) {
    let gate = Gate::open_with(rules, &["--admin", "127.0.0.1:0"]).await;
    let admin = gate.house.admin().unwrap().to_owned();
    let desk = Desk::new(&admin);
    (gate, desk, admin)
}

/// The output of a command that goes through.
async fn done(admin: &str, arguments: &[&str]) -> String {
    let Outcome { code, out, err } = run(&[arguments, &["--admin", admin]].concat()).await;
    assert_eq!(code, Some(0), "{arguments:?}: {err}");
    out
}

async fn fails(admin: &str, arguments: &[&str]) -> String {
    let Outcome { code, err, .. } = run(&[arguments, &["--admin", admin]].concat()).await;
    assert_ne!(code, Some(0), "{arguments:?}");
    err
}

#[tokio::test]
async fn a_resource_is_frozen_capped_and_drained_by_commands_and_each_is_lifted() {
    let (gate, _, admin) = open("default: audit\n").await;
    let (mut web, mut other) = (gate.stranger().await, gate.stranger().await);
    assert_eq!(web.get("web-1", "db", 400.0).await.unwrap(), 400.0);
    let out = done(&admin, &["freeze", "db", "--for", "1h", "--reason", "the disk is full"]).await;
    assert!(
        out.contains(": db is frozen, for 1h\n")
            && out.ends_with("this leader knows of it, and no later one\n"),
        "{out}"
    );
    assert_eq!(web.get("web-1", "db", 900.0).await.unwrap(), 400.0);
    assert_eq!(other.get("x", "db", 100.0).await.unwrap(), 0.0, "a newcomer gets nothing");
    let listed = done(&admin, &["overrides"]).await;
    assert!(
        listed.contains("db is frozen")
            && listed.contains("plain (unverified)")
            && listed.contains("the disk is full"),
        "{listed}"
    );
    let status = gate.house.resource("db").await.unwrap();
    assert_eq!((&status["frozen"], status["overrides"].as_array().unwrap().len()), (&true.into(), 1));
    let server = gate.house.address().to_string();
    let why = run(&["explain", "db", "x", "--server", &server]).await;
    assert!(why.out.contains("an override") && why.out.contains("the disk is full"), "{why:?}");

    let id = status["overrides"][0].as_str().unwrap();
    assert_eq!(done(&admin, &["lift", id]).await, format!("override {id} is lifted\n"));
    assert!(fails(&admin, &["lift", id]).await.contains("it may have ended"));
    done(&admin, &["cap", "d*", "300", "--for", "1h", "--reason", "half of it is broken"]).await;
    let row = gate.house.resource("db").await.unwrap();
    assert_eq!(
        (&row["capacity"], &row["in_debt"]),
        (&300.0.into(), &true.into()),
        "what is out stays charged: {row}"
    );
    eventually("each keeps to its part of that", async || {
        let both = [web.get("web-1", "db", 900.0).await.unwrap(), other.get("x", "db", 100.0).await.unwrap()];
        both == [200.0, 100.0]
    })
    .await;

    done(
        &admin,
        &[
            "drain",
            "client",
            "web-*",
            "--resource",
            "db",
            "--deny",
            "--for",
            "1h",
            "--reason",
            "it floods us",
        ],
    )
    .await;
    assert_eq!(web.get("web-1", "db", 900.0).await.unwrap(), 0.0);
    // As long as it may have some it is heard, for it is to give that up.
    eventually("it is refused", async || web.get("web-1", "db", 900.0).await.is_err()).await;
    let refused = web.get("web-1", "db", 900.0).await.unwrap_err();
    assert!(
        refused.message().contains("it floods us") && refused.code() == tonic::Code::PermissionDenied,
        "{refused:?}"
    );
    let listed: serde_json::Value =
        serde_json::from_str(&done(&admin, &["overrides", "--json"]).await).unwrap();
    assert_eq!(
        (listed["place"].as_str(), listed["overrides"].as_array().unwrap().len()),
        (Some("leader"), 2)
    );
    for (kind, count) in [("freeze", 0.0), ("cap", 1.0), ("drain_client", 1.0), ("drain_node", 0.0)] {
        assert_eq!(gate.house.metric(&format!("lessor_overrides{{kind=\"{kind}\"}}")).await, count, "{kind}");
    }
    gate.house.stop().await;
}

#[tokio::test]
async fn clients_let_everything_pass_for_a_while_and_count_what_they_would_refuse() {
    let (gate, _, admin) = open("default: audit\n").await;
    let client = Client::builder(gate.house.address().to_string()).id("web-1").build().unwrap();
    let rate = client.rate("db").wants(5.0).open().unwrap();
    eventually("it has a lease", async || rate.lease().capacity == Some(Amount::from_units(5))).await;
    assert!(rate.try_acquire(100).is_err());
    let out =
        done(&admin, &["unenforce", "d*", "--for", "1h", "--reason", "OPS-9: it refuses too much"]).await;
    assert!(out.contains(": clients let everything of d* pass, for 1h\n"), "{out}");
    eventually("it is told", async || rate.lease().unenforced).await;
    rate.try_acquire(100).unwrap();
    rate.acquire_within(200, Duration::ZERO).await.unwrap();
    let metrics = client.metrics();
    let [db] = &metrics.resources[..] else { panic!("{metrics:?}") };
    assert_eq!((db.unenforced, db.denied, db.lets_pass), (300, 100, true), "{db:?}");
    assert_eq!(db.capacity, Some(Amount::from_units(5)), "the lease is as ever");

    assert_eq!(gate.house.metric("lessor_unenforced{resource=\"db\"}").await, 1.0);
    assert_eq!(gate.house.metric("lessor_overrides{kind=\"unenforce\"}").await, 1.0);
    eventually("it is said", async || gate.house.resource("db").await.unwrap()["unenforced_passed"] == 300)
        .await;
    assert_eq!(gate.house.metric("lessor_unenforced_passed_total{resource=\"db\"}").await, 300.0);
    assert_eq!(gate.house.metric("lessor_unenforced_silent{resource=\"db\"}").await, 0.0);
    let status = run(&["status", "db", "--server", &gate.house.address().to_string()]).await;
    assert!(status.out.contains("NOT ENFORCED"), "{status:?}");
    let line = "  not enforced: of 300 units that were asked for 300 would have been refused (100.0%)\n";
    assert!(status.out.contains(line), "{status:?}");
    let row = gate.house.resource("db").await.unwrap();
    done(&admin, &["lift", row["overrides"][0].as_str().unwrap()]).await;
    eventually("it is kept to again", async || rate.try_acquire(100).is_err()).await;
    assert_eq!(gate.house.metric("lessor_unenforced{resource=\"db\"}").await, 0.0);
    client.close().await;
    gate.house.stop().await;
}

#[tokio::test]
async fn a_node_and_a_domain_are_drained_and_an_override_ends_by_itself() {
    let (gate, _, admin) = open("default: audit\n").await;
    let mut web = gate.stranger().await;
    assert_eq!(web.get("web-1", "db", 400.0).await.unwrap(), 400.0);
    done(&admin, &["drain", "node", "paris", "--for", "1h", "--reason", "x"]).await;
    done(&admin, &["drain", "domain", "acme", "--resource", "db", "--for", "1h", "--reason", "x"]).await;
    done(&admin, &["drain", "client", "web-1", "--for", "2s", "--reason", "x"]).await;
    assert_eq!(web.get("web-1", "db", 400.0).await.unwrap(), 0.0);
    eventually("its time is over", async || web.get("web-1", "db", 400.0).await.unwrap() == 400.0).await;
    let listed = done(&admin, &["overrides"]).await;
    assert!(
        listed.contains("node paris gets nothing") && listed.contains("db is closed to domain acme"),
        "{listed}"
    );
    assert!(!listed.contains("web-1"), "{listed}");
    gate.house.stop().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_field() {
    let (gate, desk, admin) = open("default: audit\n").await;
    for (body, told) in [
        (json!({"kind": "freeze", "resource": "db", "for": "1h"}), "the body: missing field `reason`"),
        (json!({"kind": "freeze", "resource": "db", "reason": "x"}), "the body: missing field `for`"),
        (
            json!({"kind": "melt", "resource": "db", "reason": "x", "for": "1h"}),
            "the body: unknown variant `melt`",
        ),
        (
            json!({"kind": "freeze", "resource": "db", "reason": "x", "for": "1h", "colour": 1}),
            "the body: unknown field `colour`",
        ),
        (
            json!({"kind": "freeze", "resource": "db", "reason": "x", "for": "25h"}),
            "for: found \"25h\"; wanted a time from 1s to 24h",
        ),
        (json!({"kind": "freeze", "resource": "d[b", "reason": "x", "for": "1h"}), "resource \"d[b\": "),
        (
            json!({"kind": "freeze", "resource": "db", "reason": 7, "for": "1h"}),
            "reason: found 7; wanted text",
        ),
        (
            json!({"kind": "cap", "resource": "db", "capacity": -1, "reason": "x", "for": "1h"}),
            "capacity -1 is negative",
        ),
        (
            json!({"kind": "drain_node", "node": "", "reason": "x", "for": "1h"}),
            "node: \"\"; wanted 1 to 1024 bytes",
        ),
    ] {
        let detail = desk.call("POST", "/admin/override", Some(&body.to_string())).await.detail(400);
        assert!(detail.starts_with(told), "{body}: {detail}");
    }
    for (arguments, told) in [
        (&["freeze", "db", "--reason", "x"][..], "--for <DURATION>"),
        (&["freeze", "db", "--for", "1h"], "--reason <TEXT>"),
        (&["freeze", "db", "--for", "2days", "--reason", "x"], "for: 172800 s; wanted a time from 1s to 24h"),
        (&["cap", "db", "many", "--for", "1h", "--reason", "x"], "invalid value 'many'"),
    ] {
        assert!(fails(&admin, arguments).await.contains(told), "{arguments:?}");
    }
    let Outcome { err, .. } = run(&["overrides"]).await;
    assert!(
        err.contains("wanted --admin HOST:PORT|unix:PATH, or --config etcd:PREFIX and --etcd URL"),
        "{err}"
    );
    for number in 0..100 {
        let body = json!({"kind": "freeze", "resource": format!("r{number}"), "reason": "x", "for": "1h"});
        desk.call("POST", "/admin/override", Some(&body.to_string())).await.done();
    }
    let body = json!({"kind": "freeze", "resource": "more", "reason": "x", "for": "1h"}).to_string();
    let full = desk.call("POST", "/admin/override", Some(&body)).await.detail(409);
    assert!(full.starts_with("100 overrides are in force; wanted fewer"), "{full}");
    gate.house.stop().await;
}

#[tokio::test]
async fn a_team_overrides_what_is_its_own() {
    let rules =
        "default: deny\noperators:\n  - {identity: plain, may: [override, see], resources: [\"team/*\"]}\n";
    let (gate, desk, _) = open(rules).await;
    let freeze = async |resource: &str| {
        let body = json!({"kind": "freeze", "resource": resource, "reason": "x", "for": "1h"}).to_string();
        desk.call("POST", "/admin/override", Some(&body)).await
    };
    freeze("team/db").await.done();
    for other in ["db", "team/*", "*"] {
        freeze(other).await.problem(403);
    }
    let body = json!({"kind": "drain_node", "node": "paris", "reason": "x", "for": "1h"}).to_string();
    desk.call("POST", "/admin/override", Some(&body)).await.problem(403);
    gate.house.stop().await;
}

#[tokio::test]
async fn what_is_seized_is_free_at_once_and_said_to_be_at_risk() {
    let (gate, desk, admin) = open("default: audit\n").await;
    let (mut dead, mut other) = (gate.stranger().await, gate.stranger().await);
    assert_eq!(dead.get("cron", "db", 700.0).await.unwrap(), 700.0);
    assert_eq!(other.get("x", "db", CAPACITY).await.unwrap(), 300.0);
    for missing in [&["--now"][..], &["--i-have-fenced-it"]] {
        let line = [&["seize", "client", "cron", "--resource", "db"], missing].concat();
        assert!(fails(&admin, &line).await.contains("required arguments were not provided"));
    }
    let body = json!({"resource": "db", "client": "cron", "i_have_fenced_it": false}).to_string();
    assert!(
        desk.call("POST", "/admin/seize", Some(&body))
            .await
            .detail(400)
            .starts_with("i_have_fenced_it: false; wanted true")
    );
    let line = ["seize", "client", "cron", "--resource", "db", "--now", "--i-have-fenced-it"];
    let out = done(&admin, &line).await;
    assert!(
        out.starts_with("700.0 of db are free; at risk for ")
            && out.ends_with("this leader knows of it, and no later one\n"),
        "{out}"
    );
    assert_eq!(other.get("x", "db", CAPACITY).await.unwrap(), CAPACITY);
    assert_eq!(gate.house.metric("lessor_at_risk{resource=\"db\"}").await, 700.0);
    assert!(fails(&admin, &line).await.contains("404: nobody called \"cron\" holds or wants \"db\""));
    gate.house.stop().await;
}
