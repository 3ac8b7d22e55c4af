//! The history in the console: who pushed what, what it changed, and which tasks have it in force.

use serde_json::{Value, json};

use crate::house::{eventually, everything};
use crate::site::{Site, has};

/// The connections of processes of this machine to a port of it.
fn connections_to(url: &str) -> usize {
    let port: u16 = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let (there, established) = (format!("0100007F:{port:04X}"), "01");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|line| line[2] == there && line[3] == established).count()
}

#[tokio::test]
async fn the_console_reads_at_etcd_over_the_connections_that_the_task_has_anyway() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    let house = site.alone("root", &[]).await;
    has(&house, 1.0).await;
    let before = connections_to(&site.etcd.url());
    for path in ["/v1/history", "/v1/tasks", "/v1/revision?number=1", "/v1/diff?from=1&to=1"] {
        house.page(path).await.json();
    }
    let after = connections_to(&site.etcd.url());
    assert!(before > 0 && after == before, "{before} connections before, and {after} after");
    house.stop().await;
}

#[tokio::test]
async fn the_console_says_who_pushed_what_and_what_it_changed() {
    let Some(site) = Site::started().await else { return };
    let before = site.file("before.yaml", &everything(100.0, 60));
    site.done(&["push", &before, "-m", "the first", "--yes"]).await;
    let house = site.alone("root", &[]).await;
    has(&house, 1.0).await;
    // The file has another name, and is for the same nodes.
    let after = site.file("after.yaml", &everything(80.0, 60));
    site.done(&["push", &after, "-m", "a cut", "--ticket", "OPS-3", "--yes"]).await;
    has(&house, 2.0).await;
    eventually("the history has both", async || {
        let history = house.page("/v1/history").await.json();
        history["rows"][0]["number"] == 2 && history["rows"][0]["tasks_in_force"] == 1
    })
    .await;
    let history = house.page("/v1/history").await.json();
    assert_eq!(history["prefix"], "templates/prod", "{history}");
    let told: Vec<[&Value; 4]> = history["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| [&row["number"], &row["message"], &row["ticket"], &row["by"]["verified"]])
        .collect();
    let wanted = [
        [json!(2), json!("a cut"), json!("OPS-3"), json!(false)],
        [json!(1), json!("the first"), Value::Null, json!(false)],
    ];
    assert_eq!(json!(told), json!(wanted));
    let page = house.page("/v1/history?limit=1").await.json();
    assert_eq!((page["rows"].as_array().map(Vec::len), &page["next"]), (Some(1), &json!(2)));
    let page = house.page("/v1/history?after=2").await.json();
    assert_eq!((&page["rows"][0]["number"], &page["next"]), (&json!(1), &Value::Null));

    let changed = house.page("/v1/diff?from=1&to=2").await.json();
    assert_eq!(changed["documents"].as_array().map(Vec::len), Some(1), "{changed}");
    assert_eq!(changed["documents"][0]["document"], "after.yaml for *");
    let lines = changed["documents"][0]["lines"].as_array().unwrap();
    let lines: Vec<(&str, &str)> = lines
        .iter()
        .filter(|line| line["what"] != "same")
        .map(|line| (line["what"].as_str().unwrap(), line["text"].as_str().unwrap().trim()))
        .collect();
    assert_eq!(lines, [("gone", "capacity: 100"), ("new", "capacity: 80")]);
    let whole = house.page("/v1/revision?number=1").await.json();
    assert!(whole["texts"][0].as_str().unwrap().contains("capacity: 100"), "{whole}");
    assert_eq!(house.page("/v1/diff?from=1&to=9").await.code, 404);

    let tasks = house.page("/v1/tasks").await.json();
    let task = &tasks["rows"][0];
    assert_eq!(
        (&tasks["are_all"], &task["node"], &task["in_force"]),
        (&json!(true), &json!("root"), &json!(2))
    );
    house.stop().await;
}
