//! Statuses of gRPC.

use std::convert::Infallible;

use http::{Request, Response};
use lessor_client::Client;
use lessor_tower::{Grpc, Header, LimitLayer};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use tower::{Layer, ServiceExt, service_fn};

use crate::house::House;

/// The status of a call, as a client of gRPC reads it.
async fn status(
    layer: LimitLayer<Header, lessor_tower::One, lessor_tower::Keep, Grpc>,
    tenant: &str,
) -> Option<Status> {
    let echo = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(Body::default())));
    let request = Request::builder().header("x-tenant", tenant).body(()).unwrap();
    let answer = layer.layer(echo).oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200, "gRPC has its own");
    Status::from_header_map(answer.headers())
}

#[tokio::test]
async fn a_denial_is_exhausted_and_says_when_to_come_again() {
    let house = House::open(1, 1).await;
    let layer = LimitLayer::new(house.rate("requests").await, Header::new("x-tenant")).answer(Grpc);
    assert!(status(layer.clone(), "acme").await.is_none());
    let denied = status(layer, "acme").await.unwrap();
    assert_eq!(denied.code(), Code::ResourceExhausted);
    let after = denied.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!((1..=3_600).contains(&after.as_secs()), "{after:?}");
    assert!(denied.message().starts_with("bound by its tiers"), "{denied:?}");
    house.close().await;
}

#[tokio::test]
async fn without_a_lease_it_is_unavailable() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::builder(gone.to_string()).build().unwrap();
    let layer =
        LimitLayer::new(client.rate("requests").open().unwrap(), Header::new("x-tenant")).answer(Grpc);
    assert_eq!(status(layer, "acme").await.unwrap().code(), Code::Unavailable);
}
