//! Limits on requests: what passes, what is answered, what it costs.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use lessor_client::{Bound, Client, Denied, Rate};
use lessor_tower::{Global, Header, Key, LimitLayer, Name, Rejection, Unkeyed, Unleased};
use sfv::{BareItem, Item, List, ListEntry, Parser};
use tokio::task::JoinSet;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::house::{House, soon};

type Body = Full<Bytes>;

/// A service that answers what `answer` makes of the request.
fn service(
    answer: impl Fn(&Request<()>) -> Response<Body> + Clone,
) -> impl Service<Request<()>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone {
    service_fn(move |request| std::future::ready(Ok(answer(&request))))
}

fn fine(_: &Request<()>) -> Response<Body> {
    Response::new(Body::from("fine"))
}

fn of(tenant: &str) -> Request<()> {
    Request::builder().header("x-tenant", tenant).body(()).unwrap()
}

async fn ask<S>(service: &S, request: Request<()>) -> Response<Body>
where
    S: Service<Request<()>, Response = Response<Body>, Error = Infallible> + Clone,
{
    service.clone().oneshot(request).await.unwrap()
}

/// The only member of a list field, by an independent parser: its string, and its integers by name.
fn field(headers: &HeaderMap, name: &str) -> Option<(String, Vec<(String, i64)>)> {
    let list: List = Parser::new(headers.get(name)?.as_bytes()).parse().unwrap();
    let [ListEntry::Item(Item { bare_item: BareItem::String(text), params })] = &list[..] else {
        panic!("{list:?}")
    };
    let numbers = params.iter().map(|(name, value)| match value {
        BareItem::Integer(number) => (name.as_str().to_owned(), i64::from(*number)),
        other => panic!("{other:?}"),
    });
    Some((text.as_str().to_owned(), numbers.collect()))
}

fn numbers(numbers: &[(&str, i64)]) -> Vec<(String, i64)> {
    numbers.iter().map(|&(name, number)| (name.to_owned(), number)).collect()
}

#[tokio::test]
async fn a_tenant_has_what_its_policy_says_and_the_fields_say_what_is_left() {
    let house = House::open(2, 1).await;
    let limited = LimitLayer::new(house.rate("requests").await, Header::new("x-tenant")).layer(service(fine));
    for left in [1, 0] {
        let answer = ask(&limited, of("acme")).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let policy = field(answer.headers(), "ratelimit-policy").unwrap();
        assert_eq!(policy, ("requests".to_owned(), numbers(&[("q", 2), ("w", 3_600)])));
        let limit = field(answer.headers(), "ratelimit").unwrap();
        assert_eq!(limit, ("requests".to_owned(), numbers(&[("r", left), ("t", 3_600)])));
        assert_eq!(answer.headers().get(header::RETRY_AFTER), None);
    }
    let denied = ask(&limited, of("acme")).await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    let after: i64 = denied.headers()[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((1..=3_600).contains(&after), "{after}");
    let limit = field(denied.headers(), "ratelimit").unwrap();
    assert_eq!(limit, ("requests".to_owned(), numbers(&[("r", 0), ("t", after)])));
    assert_eq!(denied.headers()[header::CONTENT_TYPE], "application/problem+json");
    let text = denied.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((&problem["status"], &problem["violated-policies"][0]), (&429.into(), &"requests".into()));

    assert_eq!(ask(&limited, of("other")).await.status(), StatusCode::OK, "others have their own");
    let unkeyed = ask(&limited, Request::new(())).await;
    assert_eq!(
        (unkeyed.status(), unkeyed.headers().get(header::RETRY_AFTER)),
        (StatusCode::BAD_REQUEST, None)
    );
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_at_the_same_time_exactly_as_many_pass_as_may() {
    let house = House::open(100, 1).await;
    let served = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&served);
    let inner = service(move |request: &Request<()>| {
        count.fetch_add(1, Ordering::Relaxed);
        fine(request)
    });
    // A million a second comes in: who is early for that asks again.
    let bound_by = |rejection: &Rejection| {
        let mut answer = Response::new(Body::default());
        let decision = rejection.denial().and_then(Denied::decision).expect("a decision on the tenant");
        let is_early = decision.bound == Some(Bound::Lease);
        *answer.status_mut() = if is_early { StatusCode::TOO_EARLY } else { rejection.status() };
        answer
    };
    let layer = LimitLayer::new(house.rate("requests").await, Header::new("x-tenant")).answer(bound_by);
    let limited = layer.layer(inner);
    let mut tasks = JoinSet::new();
    for _ in 0..10_000 {
        let limited = limited.clone();
        tasks.spawn(async move {
            loop {
                match ask(&limited, of("acme")).await.status() {
                    StatusCode::TOO_EARLY => tokio::task::yield_now().await,
                    status => return status,
                }
            }
        });
    }
    let statuses = soon(tasks.join_all()).await;
    let passed = statuses.iter().filter(|&&status| status == StatusCode::OK).count();
    assert_eq!((passed, served.load(Ordering::Relaxed)), (100, 100));
    assert!(
        statuses.iter().all(|&status| status == StatusCode::OK || status == StatusCode::TOO_MANY_REQUESTS)
    );
    house.close().await;
}

#[tokio::test]
async fn what_is_ready_and_never_called_costs_nothing() {
    let house = House::open(1, 1).await;
    let limited = LimitLayer::new(house.rate("requests").await, Header::new("x-tenant")).layer(service(fine));
    for _ in 0..5 {
        limited.clone().ready().await.unwrap();
    }
    assert_eq!(ask(&limited, of("acme")).await.status(), StatusCode::OK);
    assert_eq!(ask(&limited, of("acme")).await.status(), StatusCode::TOO_MANY_REQUESTS);
    house.close().await;
}

#[tokio::test]
async fn costs_are_taken_before_the_answer_and_settled_after_it() {
    let house = House::open(10, 1).await;
    let rate = house.rate("requests").await;
    let answer = |request: &Request<()>| {
        let mut answer = fine(request);
        if let Some(cost) = request.headers().get("x-costs") {
            answer.headers_mut().insert("x-cost", cost.clone());
        }
        answer
    };
    let number =
        |headers: &HeaderMap, name: &str| -> Option<u32> { headers.get(name)?.to_str().ok()?.parse().ok() };
    let limited = LimitLayer::new(rate.clone(), Header::new("x-tenant"))
        .cost(move |request: &Request<()>| number(request.headers(), "x-weight").unwrap_or(1))
        .settle(move |answer: &http::response::Parts| number(&answer.headers, "x-cost").unwrap_or(4))
        .layer(service(answer));
    let costing = |tenant: &str, before: &str, after: &str| {
        let builder = Request::builder().header("x-tenant", tenant).header("x-weight", before);
        builder.header("x-costs", after).body(()).unwrap()
    };
    let left = |tenant: &str| rate.domain(tenant).peek(10, 1).granted;
    assert_eq!(ask(&limited, costing("acme", "4", "1")).await.status(), StatusCode::OK);
    assert_eq!(left("acme"), 9, "three of four came back");
    assert_eq!(ask(&limited, costing("acme", "10", "10")).await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(left("acme"), 9, "what is denied costs nothing");
    assert_eq!(ask(&limited, costing("acme", "9", "19")).await.status(), StatusCode::OK);
    assert!(rate.domain("acme").try_acquire(1).unwrap_err().decision().unwrap().debt > 0, "ten are owed");
    assert_eq!(ask(&limited, costing("free", "0", "0")).await.status(), StatusCode::OK);
    assert_eq!(left("free"), 10);
    house.close().await;
}

#[tokio::test]
async fn without_a_lease_it_is_503_or_passes_as_was_chosen() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::builder(gone.to_string()).build().unwrap();
    let rate = client.rate("requests").open().unwrap();
    let layer = LimitLayer::new(rate, Header::new("x-tenant"));
    let denied = ask(&layer.clone().layer(service(fine)), of("acme")).await;
    assert_eq!(denied.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(denied.headers()[header::RETRY_AFTER], "1");
    assert_eq!(denied.headers().get("ratelimit"), None, "it is no limit that says no");
    let text = denied.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");

    let passing = layer.unleased(Unleased::Pass).settle(|_: &http::response::Parts| 5).layer(service(fine));
    assert_eq!(ask(&passing, of("acme")).await.status(), StatusCode::OK);
    soon(client.close()).await;
    assert_eq!(ask(&passing, of("acme")).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn all_share_the_whole_and_answers_are_for_the_service_to_choose() {
    async fn check(rate: Rate, key: impl Key<()> + Clone) {
        let teapot = |rejection: &Rejection| {
            let mut answer = Response::new(Body::from(rejection.policy().to_owned()));
            *answer.status_mut() = StatusCode::IM_A_TEAPOT;
            answer
        };
        let limited = LimitLayer::new(rate, key).answer(teapot).name("of \"all\"").layer(service(fine));
        let mut denied = None;
        for _ in 0..1_000 {
            denied =
                denied.or(Some(ask(&limited, Request::new(())).await).filter(|it| !it.status().is_success()));
        }
        let denied = denied.expect("more than ten a second");
        assert_eq!(
            (denied.status(), &denied.headers()[header::RETRY_AFTER]),
            (StatusCode::IM_A_TEAPOT, &"1".parse().unwrap())
        );
        let limit = field(denied.headers(), "ratelimit").unwrap();
        assert_eq!(limit, ("of \"all\"".to_owned(), numbers(&[("r", 0), ("t", 1)])));
    }
    let house = House::open(1, 1).await;
    check(house.rate("slow").await, Global).await;
    check(house.rate("slow").await, |_: &Request<()>, _: &mut Name| Ok::<(), Unkeyed>(())).await;
    house.close().await;
}
