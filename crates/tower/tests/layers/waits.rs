//! Waits of a client before it sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Request;
use lessor_client::Denied;
use lessor_tower::{GrpcTimeout, WaitLayer};
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

#[tokio::test]
async fn a_request_waits_no_longer_than_its_deadline_and_its_place_is_free_for_others() {
    let house = House::open(1, 1).await;
    let rate = house.client.rate("slow").wants(10.0).max_wait(Duration::from_secs(20)).open().unwrap();
    soon(rate.acquire(1)).await.unwrap();
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    let echo = service_fn(move |left: Option<Duration>| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok::<_, std::io::Error>(left))
    });
    let waiting = WaitLayer::new(rate.clone()).deadline(|left: &Option<Duration>| *left).layer(echo);
    // Five units a tenth of a second apart are waited for: who has a twentieth is told, and not sent.
    let patient: Vec<_> = (0..5).map(|_| tokio::spawn(waiting.clone().oneshot(None))).collect();
    tokio::task::yield_now().await;
    let hasty = soon(waiting.clone().oneshot(Some(Duration::from_millis(50)))).await.unwrap_err();
    assert!(hasty.downcast_ref::<Denied>().is_some_and(Denied::is_over_limit), "{hasty}");
    assert!(soon(waiting.clone().oneshot(Some(Duration::ZERO))).await.is_err());
    for call in patient {
        soon(call).await.unwrap().unwrap();
    }
    assert_eq!(sent.load(Ordering::Relaxed), 5);
    // A deadline that lies behind the wait changes nothing, and the bound of the opening holds for longer ones.
    assert!(soon(waiting.clone().oneshot(Some(Duration::MAX))).await.is_ok());
    house.close().await;
}

#[tokio::test]
async fn who_is_asked_after_a_wait_is_told_what_is_left_of_the_timeout() {
    let house = House::open(1, 1).await;
    let rate = house.client.rate("slow").wants(10.0).max_wait(Duration::from_secs(20)).open().unwrap();
    soon(rate.acquire(1)).await.unwrap();
    let timeout = |request: &Request<()>| request.headers().get("grpc-timeout").cloned();
    let echo = service_fn(move |request| std::future::ready(Ok::<_, std::io::Error>(timeout(&request))));
    let waiting = WaitLayer::new(rate.clone()).deadline(GrpcTimeout).layer(echo);
    let ask = |text: &str| {
        let request = Request::builder().header("grpc-timeout", text).body(()).unwrap();
        soon(waiting.clone().oneshot(request))
    };
    let mut told = Vec::new();
    for _ in 0..3 {
        let text = ask("20S").await.unwrap().unwrap();
        let micros = text.to_str().unwrap().strip_suffix('u').map(|digits| digits.parse::<u64>().unwrap());
        told.extend(micros);
        assert!(micros.is_some_and(|micros| micros < 20_000_000) || text == "20S", "{text:?}");
    }
    assert!(told.len() >= 2, "two of them have waited: {told:?}");
    let hasty = ask("1m").await.unwrap_err();
    assert!(hasty.downcast_ref::<Denied>().is_some_and(Denied::is_over_limit), "{hasty}");
    // What is no timeout is none.
    assert_eq!(ask("soon").await.unwrap().unwrap(), "soon");
    house.close().await;
}
