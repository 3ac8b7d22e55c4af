//! The first second of a program, and the first one after a pause: with nothing said but `open()`, and capacity that nobody wants.

use std::time::Duration;

use lessor_client::limiter::{Limiter, Refused};
use lessor_client::shell::clock;
use lessor_client::{Client, Resource};
use lessor_proto::Time;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::house::{AGES, House};

const SECOND: Duration = Duration::from_secs(1);

/// 5,000 a second of which nobody wants any.
const IDLE: &str = "resources:\n- identifier_glob: \"*\"\n  capacity: 5000\n  algorithm: {kind: FAIR_SHARE, lease_length: 60, \
                    refresh_interval: 5, learning_mode_duration: 0}\n";

/// A program with a lease, and nothing attempted yet.
async fn program(client: &Client) -> Resource<Limiter> {
    let mut rate = client.rate("db").open().unwrap();
    while rate.lease().capacity.is_none_or(|capacity| capacity.as_f64() <= 0.0) {
        timeout(AGES, rate.changed()).await.expect("a lease in time").unwrap();
    }
    rate
}

/// Attempts `batch` units at once, so many times, `pause` apart. Returns how many were refused.
async fn attempt(rate: &Resource<Limiter>, batch: usize, times: u32, pause: Duration) -> usize {
    let begin: Time = clock::now();
    let mut refused = 0;
    for time in 0..times {
        clock::sleep_until(begin + pause * time).await;
        refused += (0..batch).filter(|_| rate.try_acquire(1).is_err()).count();
    }
    refused
}

#[tokio::test]
async fn a_steady_rate_is_granted_from_the_first_second_and_after_a_pause() {
    let house = House::open(IDLE).await;
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let rate = program(&client).await;
    let step = SECOND / 200;
    clock::sleep_until(clock::now() + step).await;
    let first = attempt(&rate, 1, 1_000, step).await;
    assert!(first <= 1, "{first} of 1,000 were refused from the first second on");
    // Longer than anything is remembered of what was attempted.
    clock::sleep_until(clock::now() + SECOND * 6).await;
    let again = attempt(&rate, 1, 1_000, step).await;
    assert!(again <= 1, "{again} of 1,000 were refused after a pause");
}

#[tokio::test]
async fn twenty_at_once_each_second_are_granted() {
    let house = House::open(IDLE).await;
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let rate = program(&client).await;
    clock::sleep_until(clock::now() + SECOND / 20).await;
    let refused = attempt(&rate, 20, 8, SECOND).await;
    assert!(refused <= 1, "{refused} of 160 were refused");
}

#[tokio::test]
async fn nobody_is_refused_a_wait_because_its_demand_is_not_known_yet() {
    let house = House::open(IDLE).await;
    let other = Client::builder(house.address().to_string()).build().unwrap();
    let mut whole = other.rate("db").wants(4_999.0).open().unwrap();
    while whole.lease().capacity.is_none_or(|capacity| capacity.as_f64() < 4_998.0) {
        timeout(AGES, whole.changed()).await.expect("a lease in time").unwrap();
    }
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let rate = program(&client).await;
    assert!(rate.lease().capacity.unwrap().as_f64() < 2.0, "there is no more to be had");
    // The other stops; that this one may have more nobody has told it.
    whole.set_wants(1.0);
    let mut waits = JoinSet::new();
    for _ in 0..50 {
        let rate = rate.clone();
        waits.spawn(async move { timeout(AGES, rate.acquire(1)).await.expect("an answer in time") });
    }
    let got: Vec<Result<(), Refused>> = waits.join_all().await;
    assert!(got.iter().all(Result::is_ok), "{got:?}");
}
