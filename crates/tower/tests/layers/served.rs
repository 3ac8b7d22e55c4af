//! The example in axum, served over loopback.

#[expect(dead_code, reason = "its main is for people, and connects to a server of its own")]
#[path = "../../examples/axum.rs"]
mod example;

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;

use crate::house::{House, soon};

#[tokio::test]
async fn tenants_of_the_example_keep_to_their_policy_and_workers_are_free_again() {
    let house = House::open(5, 1).await;
    let (queries, workers) = (house.rate("requests").await, house.gauge("running", 1).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = example::app(queries.clone(), workers.clone());
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
    }
    let denied = search("acme").await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(denied.headers().contains_key(header::RETRY_AFTER), "{denied:?}");
    assert!(denied.headers()["ratelimit"].to_str().unwrap().starts_with("\"tenant\";r=0;t="), "{denied:?}");
    // The answers were sent, and their worker is free.
    assert_eq!(search("other").await.status(), StatusCode::OK);
    let busy = soon(workers.acquire(1)).await.unwrap();
    assert_eq!(search("another").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(busy);
    assert_eq!(search("another").await.status(), StatusCode::OK);

    server.abort();
    house.close().await;
}
