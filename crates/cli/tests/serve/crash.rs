//! Our own client under a server that crashes and comes back.

use lessor_client::{Client, LeaseState, Resource, Rung};
use tokio::time::timeout;

use crate::house::{AGES, House, everything};

/// Waits until the lease is as wanted.
pub(crate) async fn until<E>(
    resource: &mut Resource<E>,
    what: &str,
    mut wanted: impl FnMut(&LeaseState) -> bool,
) {
    let waiting = async {
        while !wanted(&resource.lease()) {
            resource.changed().await.expect("the client is open");
        }
    };
    if timeout(AGES, waiting).await.is_err() {
        panic!("never {what}: {:?}", resource.lease());
    }
}

pub(crate) fn is(lease: &LeaseState, rung: Rung, units: u64) -> bool {
    lease.rung == rung && lease.capacity.is_some_and(|capacity| capacity.floor_units() == units)
}

#[tokio::test]
async fn a_client_goes_down_the_ladder_without_a_server_and_comes_back_by_itself() {
    // Connections are counted as they are open, everything else by the second.
    let gauge = everything(100.0, 2).replace("\"*\"", "connections\n  kind: gauge");
    let rates = everything(100.0, 2).replace("resources:\n", "");
    let mut house = House::open(&format!("{gauge}{rates}")).await;
    let client = Client::builder(house.address().to_string()).id("web").connect().await.unwrap();
    let mut rate = client.rate("queries").wants(40.0).open().unwrap();
    let mut gauge = client.gauge("connections").wants(3.0).open().unwrap();
    until(&mut rate, "leased", |lease| is(lease, Rung::Leased, 40)).await;
    until(&mut gauge, "leased", |lease| is(lease, Rung::Leased, 3)).await;
    timeout(AGES, rate.acquire(1)).await.unwrap().unwrap();

    for _ in 0..2 {
        house.crash().await;
        // While the lease lasts nothing changes; then it is the advice of the server that is gone.
        until(&mut rate, "on the safe capacity", |lease| is(lease, Rung::Safe, 5)).await;
        // No more than it had.
        until(&mut gauge, "on the safe capacity", |lease| is(lease, Rung::Safe, 3)).await;
        assert!(rate.lease().last_error.is_some(), "{:?}", rate.lease());
        timeout(AGES, rate.acquire(1)).await.unwrap().unwrap();

        house = house.start_again().await;
        until(&mut rate, "leased again", |lease| is(lease, Rung::Leased, 40)).await;
        until(&mut gauge, "leased again", |lease| is(lease, Rung::Leased, 3)).await;
        assert_eq!(rate.lease().last_error, None);
    }
    let resource = house.resource("queries").await.unwrap();
    assert_eq!((&resource["clients"], &resource["holders"][0]["client"]), (&1.into(), &"web".into()));

    timeout(AGES, client.close()).await.unwrap();
    assert_eq!(house.metric("lessor_leased{resource=\"queries\"}").await, 0.0, "all is given back");
    assert_eq!(house.metric("lessor_leased{resource=\"connections\"}").await, 0.0);
    house.stop().await;
}
