//! Costs in bytes: what was sent of an answer is settled when its body has ended, or is dropped.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use lessor_client::{Bound, Denied, Rate};
use lessor_tower::{BodyBytes, CountedBody, Header, LimitLayer, Rejection};
use tower::{Layer, ServiceExt, service_fn};

use crate::house::{House, soon};

/// The part of a body: a hundred bytes, trailers, or an error.
#[derive(Clone, Copy, Debug)]
enum Part {
    Hundred,
    Trailers,
    Broken,
}

/// A body of such parts.
#[derive(Debug)]
struct Parts(VecDeque<Part>);

impl Body for Parts {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.0.pop_front().map(|part| match part {
            Part::Hundred => Ok(Frame::data(Bytes::from_static(&[7; 100]))),
            Part::Trailers => Ok(Frame::trailers(HeaderMap::new())),
            Part::Broken => Err("broken"),
        }))
    }
}

/// The answer to a request of `tenant` that is estimated at `estimate` bytes. A million a second comes in: who is early for
/// that asks again.
async fn ask(rate: &Rate, tenant: &str, estimate: u32, parts: &[Part]) -> Response<CountedBody<Parts>> {
    let layer = LimitLayer::new(rate.clone(), Header::new("x-tenant"))
        .cost(move |_: &Request<()>| estimate)
        .answer(|rejection: &Rejection| {
            let mut answer = Response::new(Parts([Part::Hundred].into()));
            let decision = rejection.denial().and_then(Denied::decision).expect("a decision on the tenant");
            let is_early = decision.bound == Some(Bound::Lease);
            *answer.status_mut() = if is_early { StatusCode::TOO_EARLY } else { rejection.status() };
            answer
        })
        .settle(BodyBytes);
    let inner = service_fn(|_: Request<()>| {
        let body = Parts(parts.iter().copied().collect());
        std::future::ready(Ok::<_, Infallible>(Response::new(body)))
    });
    let limited = layer.layer(inner);
    let again = async {
        loop {
            let request = Request::builder().header("x-tenant", tenant).body(()).unwrap();
            let answer = limited.clone().oneshot(request).await.unwrap();
            if answer.status() != StatusCode::TOO_EARLY {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(again).await
}

#[tokio::test]
async fn a_download_costs_what_was_sent_of_it() {
    let house = House::open(1_000, 1).await;
    let rate = house.rate("requests").await;
    let left = |tenant: &str| rate.domain(tenant).peek(1_000, 1).granted;

    // To the end, trailers aside: three hundred, of which one was taken before.
    let three = [Part::Hundred, Part::Hundred, Part::Hundred];
    let answer = ask(&rate, "whole", 1, &[&three[..], &[Part::Trailers]].concat()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().contains_key("ratelimit"), "{:?}", answer.headers());
    assert_eq!(left("whole"), 999, "nothing is settled before it is sent");
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        frame.unwrap();
    }
    let owed = rate.domain("whole").peek(1, 1).debt;
    assert_eq!((left("whole"), owed), (700, 0), "though it is not dropped yet");
    drop(body);
    assert_eq!(left("whole"), 700, "it is settled once");

    // Given up half-way: what was estimated beyond that comes back.
    let mut body = ask(&rate, "half", 500, &three).await.into_body();
    body.frame().await.unwrap().unwrap();
    body.frame().await.unwrap().unwrap();
    assert_eq!(left("half"), 500);
    drop(body);
    assert_eq!(left("half"), 800);

    // Broken off by an error.
    let mut body = ask(&rate, "broken", 1, &[Part::Hundred, Part::Broken, Part::Hundred]).await.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(body.frame().await.unwrap().unwrap_err(), "broken");
    assert_eq!(left("broken"), 900);

    // Never read at all, and empty.
    drop(ask(&rate, "unread", 10, &[Part::Hundred]).await);
    drop(ask(&rate, "empty", 10, &[]).await);
    assert_eq!((left("unread"), left("empty")), (1_000, 1_000));
    house.close().await;
}

#[tokio::test]
async fn who_has_sent_more_than_it_may_pays_before_it_sends_again() {
    let house = House::open(250, 1).await;
    let rate = house.rate("requests").await;
    let body = ask(&rate, "acme", 1, &[Part::Hundred; 3]).await.into_body();
    assert_eq!(body.collect().await.unwrap().to_bytes().len(), 300);
    let denied = ask(&rate, "acme", 1, &[]).await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS, "fifty are owed");
    let before = rate.domain("acme").peek(1, 1).debt;
    assert_eq!(denied.into_body().collect().await.unwrap().to_bytes().len(), 100);
    assert_eq!(rate.domain("acme").peek(1, 1).debt, before, "a denial is not paid for");
    assert_eq!(ask(&rate, "another", 1, &[]).await.status(), StatusCode::OK);
    house.close().await;
}
