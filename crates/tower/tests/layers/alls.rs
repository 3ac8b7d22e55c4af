//! Several limits in one request.

use std::convert::Infallible;

use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use lessor_tower::{Global, Header, TogetherLayer};
use tower::{Layer, ServiceExt, service_fn};

use crate::house::House;

#[tokio::test]
async fn nothing_of_any_is_taken_where_one_denies() {
    let house = House::open(3, 1).await;
    let (requests, running) = (house.rate("requests").await, house.gauge("running", 1).await);
    let slow = house.rate("slow").await;
    let layer =
        TogetherLayer::new().rate(requests.clone(), Header::new("x-tenant"), 2).gauge(running.clone(), 1);
    let answer =
        service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("fine"))));
    let all = layer.clone().layer(answer);
    let ask = async |tenant: &str| {
        let request = Request::builder().header("x-tenant", tenant).body(()).unwrap();
        all.clone().oneshot(request).await.unwrap()
    };
    let left = |tenant: &str| requests.domain(tenant).peek(3, 1).granted;

    let first = ask("acme").await;
    assert_eq!((first.status(), left("acme")), (StatusCode::OK, 1));
    assert_eq!(first.headers()["ratelimit"], "\"requests\";r=1;t=3600");
    // The gauge denies: the tenant has lost nothing.
    let busy = ask("other").await;
    assert_eq!((busy.status(), left("other")), (StatusCode::SERVICE_UNAVAILABLE, 3));
    assert_eq!(
        (&busy.headers()[header::RETRY_AFTER], busy.headers().get("ratelimit")),
        (&"1".parse().unwrap(), None)
    );
    drop(first);
    // The tenant is denied: the worker is free.
    let denied = ask("acme").await;
    assert_eq!((denied.status(), left("acme")), (StatusCode::TOO_MANY_REQUESTS, 1));
    assert!(denied.headers()["ratelimit"].to_str().unwrap().starts_with("\"requests\";r=1;t="), "{denied:?}");
    assert_eq!(running.try_acquire(1).unwrap().units(), 1);
    let unkeyed = all.clone().oneshot(Request::new(())).await.unwrap();
    assert_eq!(unkeyed.status(), StatusCode::BAD_REQUEST);

    // A rate twice is a mistake of the service.
    let twice = TogetherLayer::new().rate(slow.clone(), Global, 1).rate(slow, Global, 1).layer(answer);
    let answer = twice.oneshot(Request::new(())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    house.close().await;
}
