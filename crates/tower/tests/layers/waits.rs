//! Waits of a client before it sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lessor_client::Denied;
use lessor_tower::WaitLayer;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::house::{House, soon};

#[tokio::test]
async fn requests_wait_in_order_and_none_is_sent_that_may_not() {
    let house = House::open(1, 1).await;
    let rate = house.client.rate("slow").wants(10.0).max_wait(Duration::from_millis(250)).open().unwrap();
    soon(rate.acquire(1)).await.unwrap();
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    let echo = service_fn(move |text: &'static str| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok::<_, std::io::Error>(text))
    });
    let waiting = WaitLayer::new(rate.clone()).layer(echo);
    assert_eq!(soon(waiting.clone().oneshot("waited")).await.unwrap(), "waited");
    // Of many at once those have a unit that wait a quarter of a second at most; the others are told, and not sent.
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(waiting.clone().oneshot("one of many"))).collect();
    let mut passed = 1;
    for call in calls {
        match soon(call).await.unwrap() {
            Ok(_) => passed += 1,
            Err(error) => {
                assert!(error.downcast_ref::<Denied>().is_some_and(Denied::is_over_limit), "{error}");
            }
        }
    }
    assert!((2..20).contains(&passed), "{passed} passed");
    assert_eq!(sent.load(Ordering::Relaxed), passed);

    soon(house.client.clone().close()).await;
    let closed = soon(waiting.clone().ready().await.unwrap().call("late")).await.unwrap_err();
    assert_eq!(closed.downcast_ref::<Denied>(), Some(&Denied::Closed));
    house.close().await;
}

#[tokio::test]
async fn errors_of_the_service_stay_what_they_are() {
    let house = House::open(1, 1).await;
    let rate = house.rate("requests").await;
    let broken = service_fn(async |(): ()| Err::<(), _>(std::io::Error::other("broken")));
    let error = soon(WaitLayer::new(rate).layer(broken).oneshot(())).await.unwrap_err();
    assert_eq!(error.downcast_ref::<std::io::Error>().map(ToString::to_string), Some("broken".to_owned()));
    house.close().await;
}
