//! Units on request, over sockets and with what templates say by default: clients with too little to save a unit up.

use lessor_client::internals::clock;
use lessor_client::{Client, Denied, Rate};
use lessor_proto::Time;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::house::{AGES, House, eventually};

const ALGORITHM: &str =
    "{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 1, learning_mode_duration: 0}";

async fn house(capacity: u32) -> House {
    let template =
        format!("resources:\n- {{identifier_glob: \"*\", capacity: {capacity}, algorithm: {ALGORITHM}}}\n");
    House::open(&template).await
}

async fn lease(house: &House, wants: f64) -> (Client, Rate) {
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let mut rate = client.rate("db").wants(wants).max_wait(AGES).open().unwrap();
    while rate.lease().capacity.is_none_or(|capacity| capacity.as_f64() <= 0.0) {
        timeout(AGES, rate.changed()).await.expect("a lease in time").unwrap();
    }
    (client, rate)
}

/// Opens so many clients, each with its lease.
async fn leases(house: &House, clients: usize, wants: f64) -> Vec<(Client, Rate)> {
    let mut leases = Vec::new();
    for _ in 0..clients {
        leases.push(lease(house, wants).await);
    }
    leases
}

/// From `begin` on, when nobody had asked yet, no more than `capacity` brings, and `saved`. Windows that begin later are the
/// simulator's: here a loaded machine may hold up what has been sent, and let it arrive at once.
fn check(begin: Time, mut passes: Vec<Time>, capacity: f64, saved: f64) {
    passes.sort();
    for (count, end) in (1_u32..).zip(&passes) {
        let most = capacity * end.since(begin).as_secs_f64() + saved;
        assert!(f64::from(count) <= most, "{count} in {:?}", end.since(begin));
    }
}

/// Units a second from the first to the last.
fn rate(passes: &[Time]) -> f64 {
    let (first, last) = (passes.iter().min().unwrap(), passes.iter().max().unwrap());
    (passes.len() - 1) as f64 / last.since(*first).as_secs_f64()
}

#[tokio::test]
async fn units_are_had_by_asking_and_two_clients_together_keep_to_the_rate() {
    let house = house(10).await;
    let begin = clock::now();
    let ((one, first), (other, second)) = (lease(&house, 10.0).await, lease(&house, 10.0).await);
    assert!(matches!(first.try_acquire(1), Err(Denied::Spent { .. })), "nothing is saved up");
    eventually("the next attempt finds what the first has asked for", async || first.try_acquire(1).is_ok())
        .await;

    let acquire = async |rate: &Rate| {
        let mut passes = Vec::new();
        for _ in 0..6 {
            timeout(AGES, rate.acquire(1)).await.expect("a unit in time").unwrap();
            passes.push(clock::now());
        }
        passes
    };
    let (mut passes, others) = tokio::join!(acquire(&first), acquire(&second));
    passes.extend(others);
    assert_eq!(passes.len(), 12, "both are served");
    check(begin, passes, 10.0, 1.5);
    timeout(AGES, one.close()).await.unwrap();
    timeout(AGES, other.close()).await.unwrap();
    house.stop().await;
}

#[tokio::test]
async fn two_hundred_clients_that_come_at_one_instant_are_served_one_after_the_other() {
    let house = house(100).await;
    let leases = leases(&house, 200, 100.0).await;
    let begin = clock::now();
    let granted = leases.iter().filter(|(_, rate)| rate.try_acquire(1).is_ok()).count();
    assert_eq!(granted, 0, "nothing is saved up by anybody");

    let mut waiters = JoinSet::new();
    for (_, rate) in &leases {
        let rate = rate.clone();
        waiters.spawn(async move { rate.acquire(1).await.map(|()| clock::now()) });
    }
    let passes: Result<Vec<Time>, _> = timeout(AGES, waiters.join_all()).await.unwrap().into_iter().collect();
    let passes = passes.expect("everybody who waits has a unit in turn");
    println!("{} of 200 clients, {:.1} a second of 100", passes.len(), rate(&passes));
    check(begin, passes, 100.0, 6.0);
    house.stop().await;
}

#[tokio::test]
async fn clients_that_never_wait_come_again_when_they_are_told_and_have_units() {
    let house = house(38).await;
    let leases = leases(&house, 2, 38.0).await;
    let begin = clock::now();
    let mut pollers = JoinSet::new();
    for (_, rate) in &leases {
        let rate = rate.clone();
        pollers.spawn(async move {
            let mut passes = Vec::new();
            while passes.len() < 60 {
                match rate.try_acquire(1) {
                    Ok(()) => passes.push(clock::now()),
                    Err(denied) => {
                        let again = denied.retry_after().expect("it has a lease");
                        clock::sleep_until(clock::now() + again).await;
                    }
                }
            }
            passes
        });
    }
    let passes = timeout(AGES, pollers.join_all()).await.expect("units in time").concat();
    println!("{:.1} a second of 38", rate(&passes));
    check(begin, passes, 38.0, 0.05 * 38.0 + 1.0);
    house.stop().await;
}
