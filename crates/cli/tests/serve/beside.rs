//! A second limit that is tried: a client leases it when it is told to, and lets go of it when it is told so.

use lessor_client::Client;
use tokio::time::timeout;

use crate::house::{AGES, House, eventually, everything};

#[tokio::test]
async fn a_client_tries_a_second_limit_as_long_as_there_is_one_and_is_refused_nothing_by_it() {
    let plain = everything(1_000.0, 60);
    let tried = plain.replace("  capacity: 1000\n", "  capacity: 1000\n  beside: {capacity: 0}\n");
    let house = House::open(&tried).await;
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let rate = client.rate("db").wants(100.0).open().unwrap();
    let usage = || client.metrics().resources[0].beside;
    timeout(AGES, rate.acquire(1)).await.expect("a lease in time").unwrap();
    eventually("a second limit is tried", async || usage().is_tried).await;
    let before = usage();
    timeout(AGES, rate.acquire(1)).await.expect("nobody waits for the second").unwrap();
    let after = usage();
    assert_eq!((after.asked - before.asked, after.refused - before.refused), (1, 1));
    let row = house.resource("db|beside").await.expect("it is leased");
    assert_eq!(
        (&row["capacity"], &row["unenforced"], &row["beside"]),
        (&0.0.into(), &1.0.into(), &().into())
    );
    assert_eq!(house.resource("db").await.unwrap()["beside"], 0.0);

    house.configure(&plain);
    eventually("it is tried no more", async || !usage().is_tried).await;
    eventually("it is given back", async || {
        house.resource("db|beside").await.is_none_or(|row| row["clients"] == 0)
    })
    .await;
    client.close().await;
    house.stop().await;
}
