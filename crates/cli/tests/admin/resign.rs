//! Resignation: the leader leaves its node to another task, and stands again.

use crate::desk::Desk;
use crate::house::etcd::Etcd;
use crate::house::{House, eventually, everything};

async fn task(etcd: &Etcd) -> House {
    let url = etcd.url();
    let flags = ["--etcd", &url, "--ttl", "2s", "--authority", "500ms", "--keep-alive", "100ms"];
    House::open_with(&everything(100.0, 60), &[&flags[..], &["--admin", "127.0.0.1:0"]].concat()).await
}

async fn leads(house: &House) -> bool {
    house.metric("lessor_leads").await > 0.0
}

#[tokio::test]
async fn a_leader_that_resigns_is_succeeded_at_once_and_stands_again() {
    let Some(etcd) = Etcd::started().await else { return };
    let first = task(&etcd).await;
    eventually("the first one leads", async || leads(&first).await).await;
    let second = task(&etcd).await;
    let knows =
        async || second.page("/status").await.json()["leader"] == first.address().to_string().as_str();
    eventually("the second one follows", knows).await;
    let (first_desk, second_desk) = (Desk::new(first.admin().unwrap()), Desk::new(second.admin().unwrap()));

    let refused = second_desk.call("POST", "/admin/resign", Some("{}")).await.problem(409);
    assert_eq!(refused["leader"], first.address().to_string().as_str(), "{refused}");
    let refused =
        second_desk.call("POST", "/admin/recall", Some(r#"{"resource":"db","holder":"a","for":"1m"}"#)).await;
    assert_eq!(refused.problem(409)["leader"], first.address().to_string().as_str());

    let epoch = first.metric("lessor_epoch").await;
    let resigned = first_desk.call("POST", "/admin/resign", Some("{}")).await.done();
    assert_eq!(resigned["leader"], second.address().to_string().as_str(), "{resigned}");
    assert_eq!(resigned["stands_again_after_seconds"], 2.0);
    eventually("the second one leads", async || leads(&second).await).await;
    assert!(second.metric("lessor_epoch").await > epoch);
    assert!(!leads(&first).await);
    // Nobody had to wait: the record says that the first one has stopped.
    assert_eq!(first.metric("lessor_resignations_total").await, 1.0);

    // And back, when it stands again.
    eventually("the first one leads again", async || {
        let resigned = second_desk.call("POST", "/admin/resign", Some("{}")).await;
        assert!([200, 409].contains(&resigned.code), "{resigned:?}");
        leads(&first).await
    })
    .await;
    for house in [first, second] {
        house.stop().await;
    }
}

#[tokio::test]
async fn where_there_is_no_election_nobody_resigns() {
    let house = House::open_with(&everything(100.0, 60), &["--admin", "127.0.0.1:0"]).await;
    let refused =
        Desk::new(house.admin().unwrap()).call("POST", "/admin/resign", Some("{}")).await.detail(409);
    assert!(refused.contains("the only task of its node"), "{refused}");
    assert!(house.page("/readyz").await.code == 200, "and goes on");
    house.stop().await;
}
