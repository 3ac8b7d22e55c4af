//! What a client uses that reaches no server, by default and where a template asks for more; and when the server comes back.

use lessor_client::Client;
use lessor_client::holding::Rung;
use lessor_proto::Amount;
use tokio::time::timeout;

use crate::crash::{is, until};
use crate::house::{AGES, House};

fn config(safe: &str, learning: u32) -> String {
    let algorithm = format!(
        "{{kind: FAIR_SHARE, lease_length: 2, refresh_interval: 1, learning_mode_duration: {learning}}}"
    );
    format!("resources:\n- identifier_glob: \"*\"\n  capacity: 100\n{safe}  algorithm: {algorithm}\n")
}

#[tokio::test]
async fn a_default_client_that_is_cut_off_under_a_default_template_stops() {
    let mut house = House::open(&config("", 0)).await;
    let client = Client::builder(house.address().to_string()).id("web").connect().await.unwrap();
    let mut rate = client.rate("queries").wants(80.0).open().unwrap();
    until(&mut rate, "leased", |lease| is(lease, Rung::Leased, 80)).await;
    assert_eq!(house.metric("lessor_safe_capacity_out{resource=\"queries\"}").await, 0.0);
    house.crash().await;
    until(&mut rate, "out of its lease", |lease| lease.rung != Rung::Leased).await;
    let lease = rate.lease();
    assert_eq!((lease.rung, lease.capacity), (Rung::Pessimistic, Some(Amount::ZERO)));
    assert!(rate.try_acquire(1).is_err(), "what it had may be somebody else's");
    let house = house.start_again().await;
    until(&mut rate, "leased again", |lease| is(lease, Rung::Leased, 80)).await;
    timeout(AGES, client.close()).await.unwrap();
    house.stop().await;
}

#[tokio::test]
async fn a_server_that_comes_back_and_learns_leaves_a_client_what_is_safe() {
    let mut house = House::open(&config("  safe_capacity: 5\n", 4)).await;
    let client = Client::builder(house.address().to_string()).id("web").connect().await.unwrap();
    let mut rate = client.rate("queries").wants(40.0).open().unwrap();
    until(&mut rate, "leased", |lease| is(lease, Rung::Leased, 40)).await;
    assert_eq!(house.metric("lessor_safe_capacity_out{resource=\"queries\"}").await, 5.0);
    house.crash().await;
    until(&mut rate, "on the safe capacity", |lease| is(lease, Rung::Safe, 5)).await;

    let house = house.start_again().await;
    let five = Some(Amount::from_units(5));
    let answered = client.metrics().counts.received;
    let mut has_learned = false;
    until(&mut rate, "leased again", |lease| {
        assert!(lease.capacity >= five, "it has less than while nobody answered: {lease:?}");
        // It hears of the server, without a fault, and lives on what is safe.
        has_learned |= lease.rung == Rung::Safe && lease.last_error.is_none();
        is(lease, Rung::Leased, 40)
    })
    .await;
    assert!(client.metrics().counts.received > answered);
    assert!(has_learned, "the server was learning");
    timeout(AGES, client.close()).await.unwrap();
    house.stop().await;
}
