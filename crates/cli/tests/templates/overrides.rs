//! Overrides at a real etcd: every task goes by them, the next leader too, and each ends.

use crate::house::{House, eventually, run};
use crate::site::{Site, has};

/// Waits until a client of that id gets so much of `db` there.
async fn gets(task: &House, id: &str, amount: &str) {
    let server = task.address().to_string();
    let told = format!("db: {amount}/s of 900/s wanted");
    eventually(&format!("{id} gets {amount}"), async || {
        run(&["get", "db", "--wants", "900", "--id", id, "--server", &server]).await.out.contains(&told)
    })
    .await;
}

#[tokio::test]
async fn an_override_counts_at_every_task_and_at_the_next_leader_and_ends() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    assert_eq!(site.done(&["overrides"]).await, "no override is in force\n");
    let out = site.done(&["cap", "db", "40", "--for", "1h", "--reason", "half is down"]).await;
    assert!(out.ends_with("every task that follows these templates goes by it\n"), "{out}");
    // A task that begins when it is there goes by it from the first grant on.
    let first = site.task("root", &["--admin", "127.0.0.1:0"]).await;
    has(&first, 1.0).await;
    eventually("it leads", async || first.metric("lessor_leads").await > 0.5).await;
    // Not before: of two that begin at once either may lead.
    let second = site.task("root", &[]).await;
    gets(&first, "a", "40").await;
    let listed = site.done(&["overrides"]).await;
    assert!(listed.contains("db has no more than 40") && listed.contains("(unverified)"), "{listed}");

    // Through a task, which has no proof of who calls either.
    let admin = first.admin().unwrap().to_owned();
    let told = run(&["drain", "client", "b*", "--for", "1h", "--reason", "x", "--admin", &admin]).await;
    assert!(told.out.ends_with("every task that follows these templates goes by it\n"), "{told:?}");
    gets(&first, "b", "0").await;
    eventually("both are counted", async || {
        first.metric("lessor_overrides{kind=\"cap\"}").await
            + first.metric("lessor_overrides{kind=\"drain_client\"}").await
            > 1.5
    })
    .await;

    first.stop().await;
    eventually("the other leads", async || second.metric("lessor_leads").await > 0.5).await;
    gets(&second, "a", "40").await;
    gets(&second, "b", "0").await;

    let json: serde_json::Value = serde_json::from_str(&site.done(&["overrides", "--json"]).await).unwrap();
    let ids: Vec<&str> =
        json["overrides"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    site.done(&["lift", ids[1]]).await;
    assert!(site.fails(1, &["lift", ids[1]]).await.contains("it may have ended"));
    site.done(&["cap", "db", "70", "--for", "3s", "--reason", "for a moment"]).await;
    gets(&second, "a", "70").await;
    gets(&second, "a", "40").await;
    site.done(&["lift", ids[0]]).await;
    gets(&second, "a", "100").await;
    second.stop().await;
}

#[tokio::test]
async fn an_override_that_cannot_be_read_is_said_and_others_count() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    let task = site.alone("root", &[]).await;
    has(&task, 1.0).await;
    site.etcd.put("templates/prod/head/override/odd", "{\"form\":1,\"kind\":\"melt\"}").await;
    site.done(&["cap", "db", "40", "--for", "1h", "--reason", "x"]).await;
    gets(&task, "a", "40").await;
    eventually("it is said", async || task.has_logged_part("an override is not in force")).await;
    let listed = site.done(&["overrides"]).await;
    assert!(
        listed.starts_with("note: key \"templates/prod/head/override/odd\": ") && listed.contains("db has"),
        "{listed}"
    );
    task.stop().await;
}
