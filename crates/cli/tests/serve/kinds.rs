//! Rates and gauges over sockets: who takes one for the other hears of both, and a kind that is changed takes over when
//! nothing of the other is out.

use std::time::Duration;

use lessor_client::{Client, Resource, Rung};
use lessor_proto::Amount;
use tokio::time::timeout;

use crate::crash;
use crate::house::{AGES, House, eventually, template};

/// Nothing would end by itself within the test.
const PUSHED: &str = "{kind: FAIR_SHARE, lease_length: 7200, refresh_interval: 1, learning_mode_duration: 0}";

const NO_RATE: &str = "opens \"db\" as a rate; wanted a gauge, as template \"*\" says";

fn of_kind(kind: &str) -> String {
    template(&format!("*\"\n  kind: \"{kind}"), 10.0, PUSHED)
}

async fn until<E>(resource: &mut Resource<E>, units: u64) {
    crash::until(resource, &format!("{units} units"), |lease| crash::is(lease, Rung::Leased, units)).await;
}

fn fault<E>(resource: &Resource<E>) -> String {
    resource.lease().last_error.map(|fault| fault.to_string()).unwrap_or_default()
}

async fn client(house: &House, id: &str) -> Client {
    Client::builder(house.address().to_string()).id(id).connect().await.unwrap()
}

#[tokio::test]
async fn a_rate_that_becomes_a_gauge_is_given_back_first() {
    let root = House::open(&of_kind("rate")).await;
    let parent = root.address().to_string();
    let leaf = House::open_with(&of_kind("rate"), &["--node", "leaf", "--parent", &parent]).await;
    for house in [&root, &leaf] {
        let client = client(house, "queries").await;
        let mut rate = client.rate("db").wants(4.0).open().unwrap();
        until(&mut rate, 4).await;
        timeout(AGES, client.close()).await.unwrap();
    }
    let queries = client(&leaf, "queries").await;
    let mut rate = queries.rate("db").wants(8.0).open().unwrap();
    until(&mut rate, 8).await;

    root.configure(&of_kind("gauge"));
    leaf.configure(&of_kind("gauge"));
    let pool = client(&leaf, "pool").await;
    let mut gauge = pool.gauge("db").wants(5.0).open().unwrap();
    let waiting = async {
        loop {
            let lease = gauge.lease();
            let units = lease.capacity.map_or(0.0, Amount::as_f64);
            let rate = rate.lease().capacity.map_or(0.0, Amount::as_f64);
            assert!(units == 0.0 || rate == 0.0, "{units} units and {rate} a second");
            if crash::is(&lease, Rung::Leased, 5) {
                return;
            }
            // The other one may change as well.
            let _ = timeout(Duration::from_millis(20), gauge.changed()).await;
        }
    };
    timeout(AGES, waiting).await.expect("the gauge is served");
    eventually("the rate is refused", async || fault(&rate).contains(NO_RATE)).await;
    for house in [&root, &leaf] {
        assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    }
    for client in [queries, pool] {
        timeout(AGES, client.close()).await.unwrap();
    }
    for house in [leaf, root] {
        house.stop().await;
    }
}
