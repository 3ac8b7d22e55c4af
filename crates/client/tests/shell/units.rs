//! Permits of gauges: how long they last.

use std::time::Duration;

use lessor_client::Rung;
use lessor_client::internals::clock;
use lessor_proto::Amount;

use crate::town::{Town, answer, grant, soon, until};

#[tokio::test]
async fn a_permit_ends_with_its_lease_also_where_safe_capacity_is_advised() {
    // The first answer asks for a report at once; that one hangs.
    let town = Town::start(|number, request| {
        (number == 0).then(|| {
            Ok(answer(number, request, |number, resource| {
                let mut response = grant(number, resource);
                response.gets.duration_ms = Some(500);
                response.gets.ack_wanted = Some(true);
                response.safe_capacity = Some(2.0);
                response
            }))
        })
    })
    .await;
    let client = town.client();
    let mut pool = client.gauge("pool").wants(10.0).open().unwrap();
    let leased = until(&mut pool, |lease| lease.rung == Rung::Leased).await;
    let permit = pool.try_acquire(1).unwrap();
    assert_eq!((permit.deadline(), permit.is_expired()), (leased.until, false));
    soon(permit.expired()).await;
    assert!(Some(clock::now()) >= leased.until && permit.is_expired());

    let fallen = until(&mut pool, |lease| lease.rung == Rung::Safe).await;
    assert_eq!(fallen.capacity, Some(Amount::from_units(2)));
    assert_eq!((permit.deadline(), permit.is_expired()), (leased.until, true));
    // One more besides the one that is still out, and it has no end.
    let safe = pool.try_acquire(1).unwrap();
    assert_eq!((safe.deadline(), safe.is_expired()), (None, false));
    assert!(pool.try_acquire(1).is_err(), "two are out");
    drop(permit);
    assert!(pool.try_acquire(1).is_ok());
}

#[tokio::test]
async fn a_permit_that_outlasts_its_handle_lasts_as_long_as_the_lease_is_renewed() {
    let mut town = Town::start(|number, request| {
        Some(Ok(answer(number, request, |number, resource| {
            let mut response = grant(number, resource);
            response.gets.duration_ms = Some(3_000);
            response.gets.refresh_interval = Some(1);
            response
        })))
    })
    .await;
    let client = town.client();
    let mut pool = client.gauge("pool").wants(4.0).open().unwrap();
    let permit = soon(pool.acquire(1)).await.unwrap();
    let leased = until(&mut pool, |lease| lease.rung == Rung::Leased).await;
    drop(pool);
    // The lease is renewed for the permit alone.
    soon(async {
        while permit.deadline() <= leased.until {
            assert!(!permit.is_expired(), "it is in use");
            town.hear_ask().await;
            tokio::time::timeout(Duration::from_millis(20), permit.expired()).await.unwrap_err();
        }
    })
    .await;
    drop(permit);
    assert_eq!(town.hear_release().await.resource_id, ["pool"]);
}
