//! The safe capacity of a client that reaches no server, by default and where a template asks for more; and the return
//! of the server.

use std::time::Duration;

use lessor_client::{Client, Rung};
use lessor_proto::Amount;
use tokio::time::{interval, timeout};

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
    let answered = client.metrics().counts.received;
    let newcomer = Client::builder(house.address().to_string()).id("batch").connect().await.unwrap();
    let other = newcomer.rate("queries").wants(90.0).open().unwrap();
    let (mut heard, mut served) = (0, 0);
    let mut timer = interval(Duration::from_millis(20));
    let learning = async {
        loop {
            let (ours, theirs) = (rate.lease(), other.lease());
            // What was read before is of while it learned, or of before it was there.
            match house.resource("queries").await {
                Some(resource) if resource["learning"] == false => break,
                _ => {}
            }
            assert!(is(&ours, Rung::Safe, 5), "neither less than while nobody answered, nor more: {ours:?}");
            assert_eq!(theirs.capacity, Some(Amount::ZERO), "what is out is not known: {theirs:?}");
            heard += u32::from(ours.last_error.is_none());
            served += u32::from(theirs.rung == Rung::Leased);
            timer.tick().await;
        }
    };
    timeout(AGES, learning).await.expect("it has learned");
    assert!(heard > 0 && served > 0, "both hear of it while it learns: {heard}, {served}");
    let five = Some(Amount::from_units(5));
    until(&mut rate, "leased again", |lease| {
        assert!(lease.capacity >= five, "it has less than while nobody answered: {lease:?}");
        is(lease, Rung::Leased, 40)
    })
    .await;
    assert!(client.metrics().counts.received > answered);
    for client in [client, newcomer] {
        timeout(AGES, client.close()).await.unwrap();
    }
    house.stop().await;
}
