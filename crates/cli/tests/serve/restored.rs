//! An etcd that was restored from a backup: its record is an old one, and says nothing of what was granted since. Nobody is
//! granted by it what others have.

use lessor_client::internals::clock;
use lessor_proto::Amount;
use lessor_proto::wire::capacity_client::CapacityClient;
use tonic::transport::Channel;

use crate::house::etcd::Etcd;
use crate::house::holder::{Holder, Nature};
use crate::house::{House, eventually, template};

const CAPACITY: f64 = 100.0;
/// Leases that outlast the test: who knows nothing of what is out would learn until its end.
const NOTHING_BEFORE: &str = ", learning_mode_duration: 0";

fn leases(learning: &str) -> String {
    let algorithm = format!("{{kind: FAIR_SHARE, lease_length: 40, refresh_interval: 1{learning}}}");
    template("*", CAPACITY, &algorithm)
}

/// An etcd that has been started twice, so that its second term has begun.
async fn etcd() -> Option<Etcd> {
    let mut etcd = Etcd::started().await?;
    etcd.kill();
    assert!(etcd.start().await, "etcd does not start");
    Some(etcd)
}

async fn task(etcd: &Etcd, more: &[&str]) -> House {
    let url = etcd.url();
    let flags = ["--etcd", &url, "--ttl", "2s", "--authority", "1s", "--keep-alive", "200ms"];
    House::open_with(&leases(NOTHING_BEFORE), &[&flags, more].concat()).await
}

fn holder(name: &str, wants: f64) -> Holder {
    Holder::new(name, Nature::Knows, "db", wants)
}

/// Asks, and adopts what is granted, if anything is.
async fn ask(holder: &mut Holder, server: &mut CapacityClient<Channel>) {
    let (sent, request) = (clock::now(), holder.request());
    let answer = server.get_capacity(request).await.unwrap().into_inner();
    if let [response] = &answer.response[..] {
        holder.adopt(sent, response.gets.clone());
    }
}

async fn until_it_has_all(holder: &mut Holder, server: &mut CapacityClient<Channel>) {
    eventually("all that is wanted is granted", async || {
        ask(holder, server).await;
        holder.holds() == Amount::from_f64(holder.wants)
    })
    .await;
}

#[track_caller]
fn check(holders: &[&Holder]) {
    let sum = holders.iter().map(|holder| holder.holds()).fold(Amount::ZERO, Amount::saturating_add);
    assert!(sum <= Amount::from_f64(CAPACITY), "{sum} of {CAPACITY} is believed: {holders:?}");
}

/// Two holders of what `house` grants, of which one came after a backup of its etcd; then that is restored, as a cluster that is
/// set up with `token`. The house is to be started again.
async fn goes_back(house: &mut House, etcd: &mut Etcd, token: &str) -> [Holder; 2] {
    let mut server = house.capacity().await;
    let (mut told, mut untold) = (holder("told", 10.0), holder("untold", 70.0));
    until_it_has_all(&mut told, &mut server).await;
    let backup = etcd.backup().await;
    until_it_has_all(&mut untold, &mut server).await;
    house.crash().await;
    let is_same = etcd.restore(backup, token).await;
    assert_eq!(is_same, token == TOKENS[1], "of the token, and the address of the member");
    [told, untold]
}

const NOT_BELIEVED: &str = "the record at etcd is not believed";

/// Clusters with another token have another id. One with the same has the id of before, and counts its terms from the beginning.
const TOKENS: [&str; 2] = ["restored", "etcd-cluster"];

async fn a_root_learns(token: &str) {
    let Some(mut etcd) = etcd().await else { return };
    let mut house = task(&etcd, &[]).await;
    let [mut told, mut untold] = goes_back(&mut house, &mut etcd, token).await;
    house.configure(&leases(""));
    let house = house.start_again().await;
    let (mut server, mut newcomer) = (house.capacity().await, holder("newcomer", 100.0));
    eventually("it is told of", async || {
        ask(&mut newcomer, &mut server).await;
        check(&[&told, &untold, &newcomer]);
        house.has_logged_part(NOT_BELIEVED)
    })
    .await;
    for _ in 0..10 {
        for holder in [&mut newcomer, &mut untold, &mut told] {
            ask(holder, &mut server).await;
        }
        check(&[&told, &untold, &newcomer]);
    }
    assert_eq!(newcomer.holds(), Amount::ZERO, "nobody knows what is free");
    eventually("who shows a lease keeps it", async || {
        ask(&mut untold, &mut server).await;
        ask(&mut told, &mut server).await;
        house.resource("db").await.is_some_and(|db| db["leased"] == 80.0)
    })
    .await;
    assert_eq!((told.capacity(), untold.capacity()), (10.0, 70.0));
    assert_eq!(house.metric("lessor_learning{resource=\"db\"}").await, 1.0);
    assert_eq!(house.metric("lessor_records_distrusted_total").await, 1.0);
    house.stop().await;
}

async fn a_leaf_is_another_holder(token: &str) {
    let Some(mut etcd) = etcd().await else { return };
    let root = House::open(&leases(NOTHING_BEFORE)).await;
    let parent = root.address().to_string();
    let mut leaf = task(&etcd, &["--node", "leaf", "--parent", &parent]).await;
    let [told, untold] = goes_back(&mut leaf, &mut etcd, token).await;
    let leaf = leaf.start_again().await;
    let (mut server, mut newcomer) = (leaf.capacity().await, holder("newcomer", 100.0));
    eventually("the newcomer has what was never out", async || {
        ask(&mut newcomer, &mut server).await;
        check(&[&told, &untold, &newcomer]);
        newcomer.holds() > Amount::ZERO
    })
    .await;
    for _ in 0..10 {
        ask(&mut newcomer, &mut server).await;
        check(&[&told, &untold, &newcomer]);
    }
    assert!(untold.holds() > Amount::ZERO, "too slow: what is tested was over");
    assert!(leaf.has_logged_part(NOT_BELIEVED));
    assert_eq!(leaf.metric("lessor_records_distrusted_total").await, 1.0);
    assert_eq!(root.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    leaf.stop().await;
    root.stop().await;
}

#[tokio::test]
async fn a_root_whose_etcd_was_restored_learns_what_is_out() {
    let [other, same] = TOKENS;
    tokio::join!(a_root_learns(other), a_root_learns(same));
}

#[tokio::test]
async fn a_leaf_whose_etcd_was_restored_is_another_holder_above() {
    let [other, same] = TOKENS;
    tokio::join!(a_leaf_is_another_holder(other), a_leaf_is_another_holder(same));
}
