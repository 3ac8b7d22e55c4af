//! Limits on requests in flight: a unit is held until the body has ended, or is dropped.

use std::convert::Infallible;

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use lessor_client::Gauge;
use lessor_tower::{InFlightBody, InFlightLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::house::House;

type Body = Full<Bytes>;

/// Asks a service that answers at once, with a body that is not empty.
async fn ask(gauge: &Gauge) -> Response<InFlightBody<Body>> {
    let answer = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(Body::from("fine"))));
    InFlightLayer::new(gauge.clone()).layer(answer).oneshot(Request::new(())).await.unwrap()
}

/// Whether one more passes.
async fn passes(gauge: &Gauge) -> bool {
    ask(gauge).await.status() == StatusCode::OK
}

#[tokio::test]
async fn a_unit_is_held_until_the_body_has_ended_or_is_dropped() {
    let house = House::open(1, 2).await;
    let gauge = house.gauge("running", 2).await;
    let (mut first, second) = (ask(&gauge).await, ask(&gauge).await);
    assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::OK));
    let denied = ask(&gauge).await;
    assert_eq!(denied.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(denied.headers()[header::RETRY_AFTER], "1");

    // The denied one holds nothing, whatever becomes of its body.
    drop(denied);
    assert!(!passes(&gauge).await);
    // A frame has come, and the body is dropped half-way.
    let frame = first.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "fine");
    assert!(!passes(&gauge).await, "it has not ended");
    drop(first);
    assert!(passes(&gauge).await);
    // To the end, and not yet dropped.
    let mut body = second.into_body();
    while let Some(frame) = body.frame().await {
        frame.unwrap();
    }
    let (one, other) = (ask(&gauge).await, ask(&gauge).await);
    assert_eq!((one.status(), other.status()), (StatusCode::OK, StatusCode::OK));
    drop(body);
    house.close().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_gives_its_unit_back() {
    let house = House::open(1, 1).await;
    let gauge = house.gauge("running", 1).await;
    let never =
        service_fn(async |_: Request<()>| std::future::pending::<Result<Response<Body>, Infallible>>().await);
    let mut limited = InFlightLayer::new(gauge.clone()).layer(never);
    let call = limited.ready().await.unwrap().call(Request::new(()));
    assert!(!passes(&gauge).await, "it is in flight, though nobody has polled it");
    drop(call);
    assert!(passes(&gauge).await);
    house.close().await;
}
