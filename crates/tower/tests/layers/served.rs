//! The examples, served over loopback.

#[expect(dead_code, reason = "its main is for people, and connects to a server of its own")]
#[path = "../../examples/axum.rs"]
mod axum_example;
#[expect(dead_code, reason = "its main is for people, and connects to a server of its own")]
#[path = "../../examples/reqwest.rs"]
mod reqwest_example;
#[expect(dead_code, reason = "its main is for people, and connects to a server of its own")]
#[path = "../../examples/tonic.rs"]
mod tonic_example;

use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use lessor_client::Denied;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::house::{House, soon};

#[tokio::test]
async fn tenants_of_the_axum_service_keep_to_their_policy_and_workers_are_free_again() {
    let house = House::open(5, 1).await;
    let (queries, workers) = (house.rate("requests").await, house.gauge("running", 1).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = axum_example::app(queries, workers.clone());
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let http = HttpClient::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let search = async |tenant: &str| -> Response<Incoming> {
        let builder = Request::get(format!("http://{address}/search")).header("x-tenant", tenant);
        soon(http.request(builder.body(Empty::new()).unwrap())).await.unwrap()
    };
    // Each search turns out to cost two: of five there are three.
    for _ in 0..3 {
        let answer = search("acme").await;
        assert_eq!(answer.status(), StatusCode::OK);
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, "two were found\n");
        // The answer has been sent, and its worker is free.
        drop(soon(workers.acquire(1)).await.unwrap());
    }
    let denied = search("acme").await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(denied.headers().contains_key(header::RETRY_AFTER), "{denied:?}");
    assert!(denied.headers()["ratelimit"].to_str().unwrap().starts_with("\"tenant\";r=0;t="), "{denied:?}");
    let busy = soon(workers.acquire(1)).await.unwrap();
    assert_eq!(search("another").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(busy);
    assert_eq!(search("another").await.status(), StatusCode::OK);

    server.abort();
    house.close().await;
}

#[tokio::test]
async fn callers_of_the_grpc_service_hear_that_it_is_exhausted_and_when_to_come_again() {
    let house = House::open(2, 1).await;
    let calls = house.rate("requests").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(tonic_example::serve(listener, calls, async { drop(stopped.await) }));

    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut health = HealthClient::new(soon(endpoint.connect()).await.unwrap());
    for _ in 0..2 {
        soon(health.check(HealthCheckRequest::default())).await.unwrap();
    }
    let denied = soon(health.check(HealthCheckRequest::default())).await.unwrap_err();
    assert_eq!(denied.code(), Code::ResourceExhausted, "{denied:?}");
    let after = denied.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(after > Duration::ZERO && after <= crate::house::HOUR, "{after:?}");
    drop((stop, health));
    soon(server).await.unwrap().unwrap();
    house.close().await;
}

#[tokio::test]
async fn what_is_sent_with_reqwest_waits_for_its_unit() {
    let house = House::open(100, 1).await;
    let queries = house.rate("requests").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/search", listener.local_addr().unwrap());
    let app = axum_example::app(queries, house.gauge("running", 1).await);
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let http = reqwest_example::http(house.rate("requests").await);
    let answer = soon(http.get(&url).header("x-tenant", "acme").send()).await.unwrap();
    assert_eq!(soon(answer.text()).await.unwrap(), "two were found\n");
    soon(house.client.clone().close()).await;
    let error = soon(http.get(&url).send()).await.unwrap_err();
    let reqwest_middleware::Error::Middleware(error) = error else { panic!("{error:?}") };
    assert_eq!(error.downcast_ref::<Denied>(), Some(&Denied::Closed));

    server.abort();
    house.close().await;
}

#[tokio::test]
async fn the_timeout_of_what_is_sent_with_reqwest_holds_for_its_waits() {
    let house = House::open(2, 1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let url = format!("http://{authority}/search");
    let app = axum_example::app(house.rate("requests").await, house.gauge("running", 1).await);
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let timeout = Duration::from_millis(20);
    let middleware = async |request: reqwest_middleware::RequestBuilder| {
        let error = soon(request.timeout(timeout).send()).await.unwrap_err();
        let reqwest_middleware::Error::Middleware(error) = error else { panic!("{error:?}") };
        error
    };

    // A unit of ten a second is a tenth of a second away.
    let slow = house.client.rate("slow").wants(10.0).max_wait(Duration::from_secs(20)).open().unwrap();
    let http = reqwest_example::http(slow.clone());
    soon(slow.acquire(1)).await.unwrap();
    let before = slow.clone();
    let before = tokio::spawn(async move { before.acquire(3).await });
    tokio::task::yield_now().await;
    let error = middleware(http.get(&url)).await;
    assert!(error.downcast_ref::<Denied>().is_some_and(Denied::is_over_limit), "{error}");
    before.abort();

    // The first search costs all that the tenant has, and the second is told to come again in an hour.
    let http = reqwest_example::http(house.rate("requests").await);
    let ask = || http.get(&url).header("x-tenant", "acme");
    assert_eq!(soon(ask().send()).await.unwrap().status(), 200);
    assert_eq!(soon(ask().send()).await.unwrap().status(), 429);
    let error = middleware(ask()).await;
    let held = lessor_tower::reqwest::HeldBack { authority, timeout };
    assert_eq!(error.downcast_ref(), Some(&held));
    server.abort();
    house.close().await;
}
