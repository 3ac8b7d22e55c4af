//! Units on request: two clients with too little to save a unit up, over sockets.

use std::time::Duration;

use lessor_client::limiter::{Denied, Limiter};
use lessor_client::shell::clock;
use lessor_client::{Client, Resource};
use lessor_proto::Time;
use tokio::time::timeout;

use crate::house::{AGES, House, eventually};

/// Less than a unit comes in the burst for all together.
const CONFIG: &str = "resources:
- identifier_glob: \"*\"
  capacity: 10
  small_leases: request
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 1, learning_mode_duration: 0}
";
const CAPACITY: f64 = 10.0;
/// Units for each client.
const EACH: usize = 6;
/// The units of the burst, one more, and those that come in while a loaded machine is late to look.
const SAVED: f64 = 0.05 * CAPACITY + 1.0 + 0.25 * CAPACITY;

async fn lease(house: &House) -> (Client, Resource<Limiter>) {
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let mut rate = client.rate("db").wants(CAPACITY).open().unwrap();
    while rate.lease().capacity.is_none_or(|capacity| capacity.as_f64() <= 0.0) {
        timeout(AGES, rate.changed()).await.expect("a lease in time").unwrap();
    }
    (client, rate)
}

/// Waits for so many units, and says when each came.
async fn acquire(rate: &Resource<Limiter>) -> Vec<Time> {
    let mut passes = Vec::new();
    for _ in 0..EACH {
        timeout(AGES, rate.acquire(1)).await.expect("a unit in time").unwrap();
        passes.push(clock::now());
    }
    passes
}

#[tokio::test]
async fn units_are_had_by_asking_and_two_clients_together_keep_to_the_rate() {
    let house = House::open(CONFIG).await;
    let ((one, first), (other, second)) = (lease(&house).await, lease(&house).await);
    assert!(matches!(first.try_acquire(1), Err(Denied::Spent { .. })), "nothing is saved up");
    eventually("the next attempt finds what the first has asked for", async || first.try_acquire(1).is_ok())
        .await;

    let (mut passes, others) = tokio::join!(acquire(&first), acquire(&second));
    passes.extend(others);
    passes.sort();
    assert_eq!(passes.len(), 2 * EACH, "both are served");
    for (index, begin) in passes.iter().enumerate() {
        for (count, end) in (1_u32..).zip(&passes[index..]) {
            let most = CAPACITY * end.since(*begin).as_secs_f64() + SAVED;
            assert!(f64::from(count) <= most, "{count} in {:?}", end.since(*begin));
        }
    }
    assert!(passes[2 * EACH - 1].since(passes[0]) > Duration::from_millis(700), "at ten a second");
    timeout(AGES, one.close()).await.unwrap();
    timeout(AGES, other.close()).await.unwrap();
    house.stop().await;
}
