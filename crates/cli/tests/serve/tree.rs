//! Servers below a server: what clients of one give up, clients of another get.

use lessor_client::{Client, Rate, Rung};
use lessor_proto::wire::{
    DemandBucket, GetServerCapacityRequest, PriorityBandAggregate, ServerCapacityResourceRequest,
};
use tokio::time::timeout;

use crate::crash;
use crate::house::relay::Relay;
use crate::house::{AGES, House, eventually, run, template};

/// Nobody who polls would hear of anything within the test.
const PUSHED: &str =
    "{kind: FAIR_SHARE, lease_length: 7200, refresh_interval: 3600, learning_mode_duration: 0}";

async fn leaf(name: &str, parents: &str) -> House {
    House::open_with(&template("*", 100.0, PUSHED), &["--node", name, "--parent", parents]).await
}

async fn open(house: &House, id: &str, wants: f64) -> (Client, Rate) {
    let client = Client::builder(house.address().to_string()).id(id).connect().await.unwrap();
    let resource = client.rate("db").wants(wants).open().unwrap();
    (client, resource)
}

async fn until(resource: &mut Rate, units: u64) {
    crash::until(resource, &format!("{units} units"), |lease| crash::is(lease, Rung::Leased, units)).await;
}

/// A node that poses below a leaf.
fn posing(name: &str, bands: Vec<PriorityBandAggregate>) -> GetServerCapacityRequest {
    GetServerCapacityRequest {
        server_id: Some(name.to_owned()),
        holder_epoch: Some(1),
        resource: vec![ServerCapacityResourceRequest {
            resource_id: Some("db".to_owned()),
            wants: bands,
            ..ServerCapacityResourceRequest::default()
        }],
        ..GetServerCapacityRequest::default()
    }
}

/// One priority of those that it says are below it, in so many buckets of as many clients each.
fn crowd(first_bucket: i32, buckets: i32, clients: i64) -> PriorityBandAggregate {
    let wants = |index: i32| 2_f64.powf((f64::from(index) + 0.5) / 8.0) * clients as f64;
    let bucket =
        |index| DemandBucket { index: Some(index), subclients: Some(clients), wants: Some(wants(index)) };
    let bucket: Vec<DemandBucket> = (first_bucket..first_bucket + buckets).map(bucket).collect();
    PriorityBandAggregate {
        priority: Some(0),
        num_clients: Some(i64::from(buckets) * clients),
        wants: Some(bucket.iter().filter_map(|bucket| bucket.wants).sum()),
        bucket,
    }
}

#[tokio::test]
async fn whatever_is_said_below_a_leaf_the_root_takes_its_reports() {
    let everybody = i64::from(u32::MAX);
    let lies = [
        vec![crowd(-400, 1, everybody), crowd(-300, 1, everybody)],
        vec![crowd(-1_400, 700, 1), crowd(-700, 700, 1)],
    ];
    for lies in lies {
        let root = House::open(&template("*", 100.0, PUSHED)).await;
        let leaf = leaf("leaf", &root.address().to_string()).await;
        let mut below = leaf.capacity().await;
        for (number, lie) in lies.into_iter().enumerate() {
            below.get_server_capacity(posing(&format!("false-{number}"), vec![lie])).await.unwrap();
        }
        // Their wants are next to nothing: there is enough for everybody, if the root hears of it.
        let (client, mut resource) = open(&leaf, "honest", 60.0).await;
        until(&mut resource, 60).await;
        resource.set_wants(40.0);
        until(&mut resource, 40).await;
        assert_eq!(root.metric("lessor_stream_reports_refused_total").await, 0.0);
        timeout(AGES, client.close()).await.unwrap();
        leaf.stop().await;
        root.stop().await;
    }
}

#[tokio::test]
async fn capacity_moves_from_one_leaf_to_another() {
    let root = House::open(&template("*", 100.0, PUSHED)).await;
    // The first of the servers above is not there; the next is asked.
    let parents = format!("127.0.0.1:1,{}", root.address());
    let (left, right) = (leaf("left", &parents).await, leaf("right", &root.address().to_string()).await);
    let (first_client, mut first) = open(&left, "a", 80.0).await;
    until(&mut first, 80).await;
    let (second_client, mut second) = open(&right, "b", 80.0).await;
    until(&mut second, 50).await;
    until(&mut first, 50).await;

    first.set_wants(30.0);
    until(&mut first, 30).await;
    until(&mut second, 70).await;
    second.set_wants(10.0);
    first.set_wants(95.0);
    until(&mut second, 10).await;
    until(&mut first, 90).await;

    let resource = root.resource("db").await.unwrap();
    let holders = resource["holders"].as_array().unwrap();
    let known: Vec<_> =
        holders.iter().map(|holder| (holder["client"].as_str().unwrap(), &holder["kind"])).collect();
    assert_eq!(known, [("left", &"node".into()), ("right", &"node".into())]);
    assert_eq!(root.metric("lessor_streams").await, 2.0);
    for house in [&root, &left, &right] {
        assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    }

    timeout(AGES, first_client.close()).await.unwrap();
    second.set_wants(100.0);
    until(&mut second, 100).await;
    timeout(AGES, second_client.close()).await.unwrap();
    eventually("nobody wants anything", async || root.metric("lessor_wants{resource=\"db\"}").await == 0.0)
        .await;
    // Each leaf keeps a quarter for who comes next, or half as much more.
    eventually("the rest is given back", async || {
        root.metric("lessor_leased{resource=\"db\"}").await <= 75.0
    })
    .await;
    for house in [left, right, root] {
        house.stop().await;
    }
}

/// Nobody has asked the leaf for anything yet.
#[tokio::test]
async fn a_leaf_is_ready_when_one_of_those_above_it_has_answered() {
    let relay = Relay::start().await;
    let above = relay.address.to_string();
    let leaf = leaf("leaf", &format!("127.0.0.1:1,{above}")).await;
    let silent = "a server of the node above does not answer";
    eventually("it says that nobody answers", async || {
        ["127.0.0.1:1", &above].iter().all(|server| leaf.has_logged_of(silent, server))
    })
    .await;
    let page = leaf.page("/readyz").await;
    assert_eq!(page.code, 503, "{page:?}");
    assert!(
        page.body.starts_with("not ready: no server of the node above has answered yet: 127.0.0.1:1: "),
        "{page:?}"
    );
    assert!(page.body.contains(&format!("; {above}: ")), "{page:?}");
    assert_eq!(leaf.metric("lessor_ready").await, 0.0);
    assert_eq!(leaf.metric("lessor_parent_reached").await, 0.0);
    assert_eq!(leaf.page("/status").await.json()["ready"], false);

    relay.lead_to(&leaf);
    eventually("it says whom it has met", async || {
        leaf.page("/readyz").await.body.contains(&format!("{above}: a server of this node itself, \"leaf\""))
    })
    .await;

    let root = House::open(&template("*", 100.0, PUSHED)).await;
    relay.lead_to(&root);
    eventually("it is ready", async || leaf.page("/readyz").await.code == 200).await;
    assert!(leaf.has_logged_of("a server of the node above answers", "root"));
    assert_eq!((leaf.metric("lessor_ready").await, leaf.metric("lessor_parent_reached").await), (1.0, 1.0));
    // It lives on its leases when there is nobody above any more.
    root.stop().await;
    assert_eq!(leaf.page("/readyz").await.code, 200);
    leaf.stop().await;
}

#[tokio::test]
async fn a_leaf_says_that_nobody_is_above_it() {
    let leaf = leaf("leaf", "127.0.0.1:1").await;
    let (client, resource) = open(&leaf, "a", 80.0).await;
    eventually("it says so", async || leaf.has_logged("the node above does not serve")).await;
    assert_ne!(resource.lease().rung, Rung::Leased, "there is nothing to grant");
    timeout(AGES, client.close()).await.unwrap();
    leaf.stop().await;
}

#[tokio::test]
async fn flags_that_cannot_be_meant_are_refused() {
    for (flags, wanted) in [
        (["--parent", "10.0.0.1"], "wanted HOST:PORT"),
        (["--parent", "two words:1"], "wanted HOST:PORT"),
        (["--node", ""], "wanted 1 to 256 bytes"),
    ] {
        let outcome = run(&["serve", "--config", "none.yaml", flags[0], flags[1]]).await;
        assert_eq!(outcome.code, Some(2), "{flags:?}");
        assert!(outcome.err.contains(wanted), "{flags:?}: {}", outcome.err);
    }
}
