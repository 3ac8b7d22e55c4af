//! Etcd away, compacted, restored from an older copy, and damaged, in the middle of it all.

use etcd_client::{Client, CompactionOptions};
use rustix::process::Signal;

use crate::house::eventually;
use crate::site::{Site, has};

async fn client(site: &Site) -> Client {
    Client::connect([site.etcd.url()], None).await.unwrap()
}

#[tokio::test]
async fn what_was_in_force_is_there_without_etcd_and_after_a_start_without_it() {
    let Some(mut site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    site.push(&site.templates(40.0)).await;
    let state = site.path("state").display().to_string();
    let flags = ["--state-dir", &state];
    let paris = site.alone("paris", &flags).await;
    has(&paris, 2.0).await;
    site.etcd.kill();
    assert_eq!(paris.page("/readyz").await.code, 200);
    paris.stop().await;
    let paris = site.alone("paris", &flags).await;
    has(&paris, 2.0).await;
    assert_eq!(paris.page("/status").await.json()["status"]["config_version"], 2);
    assert!(paris.has_logged("the last good revision is in force until etcd is heard of"));
    let told = site.fails(1, &["push", &site.templates(1.0), "-m", "x", "--yes"]).await;
    assert!(told.contains("etcd"), "{told}");
    assert!(site.etcd.start().await);
    // The process before could not say that it ends, and its report is there for a while.
    let last = site.templates(1.0);
    let told = site.fails(4, &["push", &last, "-m", "x", "--yes"]).await;
    assert!(
        told.contains("has said nothing in 5s: if it has ended, so will its report within 30s"),
        "{told}"
    );
    let despite = ["push", &last, "-m", "x", "--yes", "--despite", "127.0.0.1:0", "--wait", "0s"];
    let out = site.done(&despite).await;
    assert!(out.contains("revision 3 is in force"), "{out}");
    has(&paris, 3.0).await;
    paris.stop().await;
    // Of another node it is not believed.
    let root = site.alone("root", &flags).await;
    assert!(root.has_logged("the last good revision cannot be put in force"));
    has(&root, 3.0).await;
    root.stop().await;
}

#[tokio::test]
async fn a_task_that_was_stopped_while_etcd_was_compacted_finds_the_head() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    let paris = site.alone("paris", &[]).await;
    has(&paris, 1.0).await;
    paris.signal(Signal::STOP);
    let first = site.templates(1.0);
    site.fails(4, &["push", &first, "-m", "x", "--yes"]).await;
    // It says nothing, and is known to.
    let despite = ["push", &first, "-m", "x", "--yes", "--despite", "127.0.0.1:0", "--wait", "0s"];
    site.done(&despite).await;
    let mut client = client(&site).await;
    let revision = client.get("x", None).await.unwrap().header().unwrap().revision();
    client.compact(revision, Some(CompactionOptions::new().with_physical())).await.unwrap();
    paris.signal(Signal::CONT);
    has(&paris, 2.0).await;
    assert_eq!(site.push(&site.templates(2.0)).await.lines().last(), Some("in force at 1 of 1 tasks"));
    paris.stop().await;
}

#[tokio::test]
async fn an_etcd_that_was_restored_takes_nothing_back() {
    let Some(mut site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    site.etcd.kill();
    site.etcd.keep_copy();
    assert!(site.etcd.start().await);
    let paris = site.alone("paris", &[]).await;
    has(&paris, 1.0).await;
    // A cut, which is not in the copy.
    site.push(&site.templates(40.0)).await;
    has(&paris, 2.0).await;
    site.etcd.kill();
    site.etcd.put_copy_back();
    assert!(site.etcd.start().await);
    eventually("it sees the older head", async || {
        paris.has_logged("the head at etcd is below the revision in force, which stays")
    })
    .await;
    has(&paris, 2.0).await;
    eventually("its report is there again", async || {
        site.done(&["history", "--json"]).await.contains("\"tasks\":1")
    })
    .await;
    let out = site.push(&site.templates(70.0)).await;
    assert!(out.contains("revision 3 is in force") && out.ends_with("in force at 1 of 1 tasks\n"), "{out}");
    has(&paris, 3.0).await;
    assert_eq!(site.done(&["history", "--verify"]).await, "2 revisions are as they were made, from 3 down\n");
    paris.stop().await;
}

#[tokio::test]
async fn what_is_damaged_is_refused_and_named() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    let paris = site.alone("paris", &[]).await;
    has(&paris, 1.0).await;
    let mut client = client(&site).await;
    let key = "templates/prod/revision/0000000001";
    let record = client.get(key, None).await.unwrap().kvs()[0].value_str().unwrap().to_owned();
    client.put(key, record.replace("why", "another reason"), None).await.unwrap();
    let told = site.fails(1, &["history", "--verify"]).await;
    assert!(told.contains("as what came after it says: it was changed"), "{told}");
    client.put("templates/prod/head", "7", None).await.unwrap();
    eventually("it refuses that", async || {
        paris.page("/status").await.json()["templates"]["refused"]["why"][0]
            .as_str()
            .is_some_and(|why| why.starts_with("key \"templates/prod/head\": "))
    })
    .await;
    has(&paris, 1.0).await;
    let told = site.fails(1, &["push", &site.templates(1.0), "-m", "x", "--yes"]).await;
    assert!(
        told.contains("key \"templates/prod/head\": ") && told.contains("wanted a head in JSON"),
        "{told}"
    );
    paris.stop().await;
}
