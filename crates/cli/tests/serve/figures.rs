//! The figures of a client as Prometheus reads them.

use lessor_client::{Client, Rung};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::timeout;

use crate::house::{AGES, House};

/// A rate whose tenants may do ten in an hour each, and a gauge.
const CONFIGURATION: &str = "resources:
- identifier_glob: slots
  kind: gauge
  capacity: 4
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5, learning_mode_duration: 0}
- identifier_glob: \"*\"
  capacity: 500
  burst: 1s
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5, learning_mode_duration: 0}
  domains:
    scope: client
    default: {tiers: [{limit: 10, window: 1h, active: 1h}]}
";

/// The page of all figures.
fn page(registry: &Registry) -> String {
    let mut page = String::new();
    encode(&mut page, registry).unwrap();
    page
}

/// The value of a figure with these labels; nothing if it is not there.
fn figure(registry: &Registry, name: &str) -> Option<f64> {
    let page = page(registry);
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("lessor_client_{name} ")));
    line.map(|value| value.parse().unwrap())
}

#[tokio::test]
async fn a_collector_has_the_figures_of_a_client_and_keeps_nothing_open() {
    let house = House::open(CONFIGURATION).await;
    let client = Client::builder(house.address().to_string()).connect().await.unwrap();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(client.collector(1)));
    assert_eq!(figure(&registry, "polls"), Some(0.0));
    assert_eq!(figure(&registry, "capacity{resource=\"searches\"}"), None, "nothing is open");

    let mut searches = client.rate("searches").wants(300.0).open().unwrap();
    let slots = client.gauge("slots").wants(3.0).open().unwrap();
    let leased = |lease: &lessor_client::LeaseState| lease.rung == Rung::Leased && lease.capacity.is_some();
    while !leased(&searches.lease()) {
        timeout(AGES, searches.changed()).await.expect("a lease in time").unwrap();
    }
    let permit = timeout(AGES, slots.acquire(2)).await.unwrap().unwrap();
    for (tenant, hits) in [("greedy", 12), ("modest", 3)] {
        for _ in 0..hits {
            // The lease has room for it in a moment; who is refused by a policy would have to wait for an hour.
            let _ = timeout(AGES, searches.domain(tenant).acquire(1)).await.expect("an answer in time");
        }
    }

    let expected = [
        ("capacity{resource=\"searches\"}", 300.0),
        ("wants{resource=\"searches\"}", 300.0),
        ("learning{resource=\"searches\"}", 0.0),
        ("rung{resource=\"searches\",rung=\"leased\"}", 1.0),
        ("rung{resource=\"searches\",rung=\"safe\"}", 0.0),
        ("granted_total{resource=\"searches\"}", 13.0),
        ("granted_total{resource=\"slots\"}", 1.0),
        ("in_use{resource=\"slots\"}", 2.0),
        ("domain_hits_granted_total{resource=\"searches\"}", 13.0),
        ("domain_granted{resource=\"searches\",domain=\"greedy\"}", 10.0),
        ("domain_remaining{resource=\"searches\",domain=\"greedy\"}", 0.0),
        ("domains{resource=\"searches\"}", 2.0),
        ("failures_total", 0.0),
    ];
    for (name, value) in expected {
        assert_eq!(figure(&registry, name), Some(value), "{name} in\n{}", page(&registry));
    }
    let refused = ["", "_by_lease"].map(|why| {
        figure(&registry, &format!("domain_requests_refused{why}_total{{resource=\"searches\"}}")).unwrap()
    });
    assert_eq!(refused[0] - refused[1], 2.0, "by the policy: {refused:?}");
    let ends = figure(&registry, "lease_seconds{resource=\"searches\"}").unwrap();
    assert!(ends > 0.0 && ends <= 60.0, "{ends}");
    let text = page(&registry);
    assert!(!text.contains("modest"), "one domain by name:\n{text}");
    assert!(!text.contains("in_use{resource=\"searches\"}"), "a rate has none in use:\n{text}");
    assert!(text.contains("# TYPE lessor_client_granted counter\n") && text.ends_with("# EOF\n"), "{text}");

    drop((permit, slots, searches));
    timeout(AGES, client.close()).await.unwrap();
    assert_eq!(page(&registry), "# EOF\n", "the client is gone");
    house.stop().await;
}
