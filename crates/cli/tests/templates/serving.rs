//! Servers that follow the templates: all tasks of all nodes have what was pushed, or say why not.

use crate::house::{eventually, everything};
use crate::site::{Site, has};

#[tokio::test]
async fn every_task_has_what_was_pushed_in_force_and_grants_by_it() {
    let Some(site) = Site::started().await else { return };
    let (root, leaf) = (site.templates(100.0), site.file("leaf.yaml", &everything(7.0, 30)));
    let (root, leaf) = (format!("root={root}"), format!("*={leaf}"));
    site.done(&["push", "--for", &root, "--for", &leaf, "-m", "the first", "--yes"]).await;
    let tasks = [site.task("root", &[]).await, site.task("root", &[]).await, site.alone("paris", &[]).await];
    for task in &tasks {
        has(task, 1.0).await;
    }
    eventually("one leads", async || {
        tasks[0].metric("lessor_leads").await + tasks[1].metric("lessor_leads").await > 0.5
    })
    .await;
    let out = site.done(&["set", "*", "capacity=40", "--for", "root", "-m", "a cut", "--yes"]).await;
    assert!(out.ends_with("in force at 3 of 3 tasks\n"), "{out}");
    for task in &tasks {
        has(task, 2.0).await;
        assert!(task.metric("lessor_config_sync_seconds").await < 60.0);
        assert!(
            task.metric("lessor_config_refused").await + task.metric("lessor_config_conflict").await < 0.5
        );
    }
    let page = tasks[2].page("/status").await.json();
    assert_eq!(page["templates"]["in_force"], 2);
    let leader = if tasks[0].metric("lessor_leads").await > 0.5 { &tasks[0] } else { &tasks[1] };
    assert_eq!(leader.page("/status").await.json()["status"]["config_version"], 2);
    let history = site.done(&["history"]).await;
    assert!(history.contains("3 of 3 tasks"), "{history}");
    // A task that ends is not waited for.
    let [first, second, paris] = tasks;
    second.stop().await;
    paris.stop().await;
    let out = site.done(&["rollback", "1", "-m", "back", "--yes"]).await;
    assert!(out.ends_with("in force at 1 of 1 tasks\n"), "{out}");
    first.stop().await;
}

#[tokio::test]
async fn what_a_task_refuses_is_not_pushed() {
    let Some(site) = Site::started().await else { return };
    let first = site.templates(100.0);
    site.done(&["push", &first, "-m", "the first", "--yes"]).await;
    let (root, paris) = (site.task("root", &[]).await, site.alone("paris", &[]).await);
    has(&root, 1.0).await;
    has(&paris, 1.0).await;
    // Nothing is there for paris.
    let only = format!("root={}", site.templates(40.0));
    let told = site.fails(4, &["push", "--for", &only, "-m", "x", "--yes"]).await;
    assert!(
        told.contains("of node \"paris\" refuses it: none of its 1 documents is for node \"paris\""),
        "{told}"
    );
    let told = site.fails(4, &["push", "--for", &only, "-m", "x", "--draft"]).await;
    assert!(told.contains("nothing was pushed"), "{told}");
    let out = site.done(&["push", &site.templates(40.0), "-m", "x", "--draft"]).await;
    assert!(out.ends_with("every task would take it; nothing is in force\n"), "{out}");
    assert_eq!(site.done(&["history", "--verify"]).await, "1 revisions are as they were made, from 1 down\n");
    has(&root, 1.0).await;
    // And in spite of that.
    let despite = ["push", "--for", &only, "-m", "x", "--yes", "--despite", "127.0.0.1:0", "--wait", "2s"];
    let told = site.fails(4, &despite).await;
    assert!(
        told.contains("in force at 1 of 2 tasks") && told.contains("and refuses: none of its 1"),
        "{told}"
    );
    has(&root, 2.0).await;
    has(&paris, 1.0).await;
    assert!(paris.metric("lessor_config_refused").await > 1.5);
    root.stop().await;
    paris.stop().await;
}

#[tokio::test]
async fn a_server_without_templates_waits_for_them_and_does_not_lead() {
    let Some(site) = Site::started().await else { return };
    let task = site.task("root", &[]).await;
    let page = task.page("/readyz?verbose").await;
    assert!(page.code == 503 && page.body.contains("no-templates"), "{page:?}");
    assert_eq!(task.page("/healthz").await.code, 200);
    assert!(task.metric("lessor_leads").await < 0.5);
    let out = site.push(&site.templates(10.0)).await;
    assert!(out.ends_with("in force at 1 of 1 tasks\n"), "{out}");
    eventually("it leads", async || task.metric("lessor_leads").await > 0.5).await;
    assert_eq!(task.page("/readyz").await.code, 200);
    task.stop().await;
}

/// The version of before does not know what the next revision needs.
#[tokio::test]
async fn a_leader_that_refuses_what_another_task_has_hands_over_to_it() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    let state = site.path("state").display().to_string();
    let flags = ["--state-dir", &state, "--advertise", "older:1"];
    let older = site.task("root", &flags).await;
    has(&older, 1.0).await;
    older.stop().await;
    let older = site.task("root", &[&flags[..], &["--pretend-features", "0"]].concat()).await;
    eventually("the older one leads", async || older.metric("lessor_leads").await > 0.5).await;
    let newer = site.task("root", &["--advertise", "newer:1"]).await;
    has(&newer, 1.0).await;
    let push = ["push", &site.templates(40.0), "-m", "x", "--yes"];
    let told = site.fails(4, &push).await;
    assert!(
        told.contains("task older:1 of node \"root\" refuses it: revision 2 needs templates of level 1"),
        "{told}"
    );
    let told = site.fails(4, &[&push[..], &["--despite", "older:1", "--wait", "1s"]].concat()).await;
    assert!(told.contains("in force at 1 of 2 tasks"), "{told}");
    has(&newer, 2.0).await;
    eventually("the newer one leads", async || newer.metric("lessor_leads").await > 0.5).await;
    assert!(older.metric("lessor_leads").await < 0.5 && older.metric("lessor_config_refused").await > 1.5);
    // Where nobody else stands it leads all the same, and grants nothing by what is older than was in force.
    newer.stop().await;
    eventually("the older one leads again", async || older.metric("lessor_leads").await > 0.5).await;
    assert!(older.metric("lessor_config_outdated").await > 0.5);
    older.stop().await;
}

#[tokio::test]
async fn flags_that_cannot_work_are_refused() {
    let faulty = async |code: i32, flags: &[&str], wanted: &str| {
        let outcome = crate::house::run(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat()).await;
        assert!(outcome.code == Some(code) && outcome.err.contains(wanted), "{flags:?}: {outcome:?}");
    };
    faulty(2, &["--config", "etcd:"], "is empty; wanted one as lessor-templates/prod").await;
    faulty(1, &["--config", "etcd:t"], "at which etcd? wanted --config-etcd URL,... or --etcd URL,...").await;
    let etcd = ["--etcd", "http://127.0.0.1:9"];
    let near = [&["--config", "etcd:lessor/x"], &etcd[..]].concat();
    faulty(1, &near, "is not apart from the prefix of elections, \"lessor\"").await;
    faulty(1, &["--config", "x.yaml", "--config-etcd", "http://127.0.0.1:9"], "wanted --config etcd:PREFIX")
        .await;
    let file = [&["--config", "x.yaml", "--state-dir", "x"], &etcd[..]].concat();
    faulty(2, &file, "cannot be used with '--state-dir <DIR>'").await;
    faulty(2, &["--config", "etcd:t", "--config-etcd-ca", "x"], "--config-etcd <URL,...>").await;
}
