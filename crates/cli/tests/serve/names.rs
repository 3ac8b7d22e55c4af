//! Names of nodes: one that is given twice, one that is not given, and one that stands above itself.

use lessor_client::{Client, Rate, Rung};
use tokio::time::timeout;

use crate::crash;
use crate::house::relay::Relay;
use crate::house::{AGES, House, eventually, run, template};

/// Nobody who polls would hear of anything within the test.
const PUSHED: &str =
    "{kind: FAIR_SHARE, lease_length: 7200, refresh_interval: 3600, learning_mode_duration: 0}";

async fn leaf(name: &str, parent: &str) -> House {
    House::open_with(&template("*", 100.0, PUSHED), &["--node", name, "--parent", parent]).await
}

async fn open(house: &House, id: &str, wants: f64) -> (Client, Rate) {
    let client = Client::builder(house.address().to_string()).id(id).connect().await.unwrap();
    let resource = client.rate("db").wants(wants).open().unwrap();
    (client, resource)
}

async fn until(resource: &mut Rate, units: u64) {
    crash::until(resource, &format!("{units} units"), |lease| crash::is(lease, Rung::Leased, units)).await;
}

fn believed(resource: &Rate) -> f64 {
    resource.lease().capacity.unwrap_or_default().as_f64()
}

#[tokio::test]
async fn two_leaves_of_one_name_are_charged_by_themselves() {
    let root = House::open(&template("*", 100.0, PUSHED)).await;
    let parent = root.address().to_string();
    let first = leaf("paris", &parent).await;
    let (first_client, mut of_first) = open(&first, "a", 80.0).await;
    until(&mut of_first, 80).await;
    let second = leaf("paris", &parent).await;
    let (second_client, mut of_second) = open(&second, "b", 80.0).await;
    eventually("each of the two is served", async || {
        let sum = believed(&of_first) + believed(&of_second);
        assert!(sum <= 100.0, "{sum} are believed");
        believed(&of_first) == 50.0 && believed(&of_second) == 50.0
    })
    .await;
    until(&mut of_first, 50).await;
    until(&mut of_second, 50).await;
    let resource = root.resource("db").await.unwrap();
    let holders = resource["holders"].as_array().unwrap();
    let names: Vec<_> = holders.iter().map(|holder| holder["client"].as_str().unwrap()).collect();
    assert_eq!(names, ["paris", "paris"]);
    assert_eq!(root.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);

    eventually("the root says so", async || root.metric("lessor_duplicate_node_names").await == 1.0).await;
    assert!(root.has_logged_of("two processes claim the name of one node", "paris"));
    for leaf in [&first, &second] {
        eventually("each leaf says so", async || leaf.metric("lessor_node_name_taken").await == 1.0).await;
        assert!(leaf.has_logged("another process holds the name of this node"));
    }
    for client in [first_client, second_client] {
        timeout(AGES, client.close()).await.unwrap();
    }
    for house in [first, second, root] {
        house.stop().await;
    }
}

#[tokio::test]
async fn a_server_with_a_parent_needs_a_name() {
    let outcome = run(&["serve", "--config", "none.yaml", "--parent", "127.0.0.1:1"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.err.contains("--node") && outcome.err.contains("--parent"), "{}", outcome.err);
}

/// The loop that a server says it stands in.
async fn circle(house: &House) -> Option<String> {
    let status = house.page("/status").await.json();
    status["status"]["names"]["loop"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn nodes_in_a_loop_say_so_and_one_of_them_breaks_it() {
    let relay = Relay::start().await;
    let root = leaf("root", &relay.address.to_string()).await;
    let paris = leaf("paris", &root.address().to_string()).await;
    let louvre = leaf("louvre", &paris.address().to_string()).await;
    relay.lead_to(&louvre);
    let houses = [&root, &paris, &louvre];
    // Sessions begin when somebody wants something.
    let (client, resource) = open(&louvre, "a", 10.0).await;
    let loops = [
        "the nodes form a loop: root -> paris -> louvre -> root",
        "the nodes form a loop: paris -> louvre -> root -> paris",
        "the nodes form a loop: louvre -> root -> paris -> louvre",
    ];
    eventually("one of them says so", async || {
        let mut found = false;
        for house in houses {
            if let Some(why) = circle(house).await {
                assert!(loops.contains(&why.as_str()), "{why}");
                let page = house.page("/readyz").await;
                found |= (page.code, page.body) == (503, format!("not ready: {why}\n"))
                    && house.metric("lessor_node_loop").await == 1.0
                    && house.has_logged("this node stands above itself");
            }
        }
        found
    })
    .await;
    assert_ne!(resource.lease().rung, Rung::Leased, "there is nothing to grant");
    timeout(AGES, client.close()).await.unwrap();
    for house in [root, paris, louvre] {
        house.stop().await;
    }
}

#[tokio::test]
async fn a_node_that_is_its_own_parent_is_served_when_it_has_another() {
    let root = House::open(&template("*", 100.0, PUSHED)).await;
    let relay = Relay::start().await;
    let paris = leaf("paris", &relay.address.to_string()).await;
    relay.lead_to(&paris);
    let (client, mut resource) = open(&paris, "a", 10.0).await;
    let why = "the nodes form a loop: paris -> paris";
    eventually("it says so", async || circle(&paris).await.as_deref() == Some(why)).await;
    assert!(paris.has_logged("a node that stands above this one is refused"));
    assert!(paris.metric("lessor_node_loops_refused_total").await >= 1.0);
    assert_ne!(resource.lease().rung, Rung::Leased);

    relay.lead_to(&root);
    until(&mut resource, 10).await;
    assert_eq!((circle(&paris).await, paris.page("/readyz").await.code), (None, 200));
    let status = paris.page("/status").await.json();
    assert_eq!(status["status"]["names"]["path"], serde_json::json!(["root", "paris"]));
    timeout(AGES, client.close()).await.unwrap();
    for house in [paris, root] {
        house.stop().await;
    }
}
