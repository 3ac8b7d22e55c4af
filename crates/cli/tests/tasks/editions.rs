//! A task with an older configuration than was in force comes to lead: it grants nothing, and leaves it to one that has it.

use lessor_client::Client;
use lessor_proto::Amount;
use tokio::time::timeout;

use crate::figures::until_it_has;
use crate::house::etcd::Etcd;
use crate::house::{AGES, House, eventually, everything};

fn edition(version: u32, capacity: f64) -> String {
    format!("version: {version}\n{}", everything(capacity, 300))
}

async fn task(etcd: &Etcd, config: &str) -> House {
    let url = etcd.url();
    let flags = ["--etcd", &url, "--ttl", "2s", "--authority", "500ms", "--keep-alive", "100ms"];
    House::open_with(config, &flags).await
}

async fn leads(house: &House, what: &str) {
    eventually(what, async || house.metric("lessor_leads").await > 0.0).await;
}

#[tokio::test]
async fn a_leader_that_is_behind_leaves_it_to_another() {
    let Some(etcd) = Etcd::started().await else { return };
    // What there is was cut, and the second task has not heard of it.
    let (before, cut) = (edition(6, 100.0), edition(7, 40.0));
    let mut first = task(&etcd, &cut).await;
    leads(&first, "the first one leads").await;
    let second = task(&etcd, &before).await;
    first.crash().await;
    eventually("the second one is behind", async || second.metric("lessor_config_outdated").await > 0.0)
        .await;

    let third = task(&etcd, &cut).await;
    let builder = Client::builder(second.address().to_string()).server(third.address().to_string());
    let client = builder.id("web").connect().await.unwrap();
    let mut rate = client.rate("db").wants(90.0).open().unwrap();
    leads(&third, "it leaves it to the third").await;
    until_it_has(&mut rate, Amount::from_units(40)).await;
    eventually("it sends on who asks it", async || second.metric("lessor_leads").await == 0.0).await;

    // It hears of the change, and may lead again.
    second.configure(&cut);
    third.stop().await;
    leads(&second, "the second one leads again").await;
    until_it_has(&mut rate, Amount::from_units(40)).await;
    assert!(second.metric("lessor_config_outdated").await < 0.5);
    timeout(AGES, client.close()).await.unwrap();
    second.stop().await;
}
