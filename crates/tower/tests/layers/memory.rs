//! Memory: a layer takes none for a request that passes, and its services go to any thread.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use http::{Request, Response, StatusCode};
use lessor_tower::{
    BodyBytes, Global, Header, InFlightLayer, LimitLayer, RetryAfterLayer, TogetherLayer, WaitLayer,
};
use tower::{Layer, Service};

use crate::house::House;

/// A service that takes no memory either.
#[derive(Clone)]
struct Silent;

impl Service<Request<()>> for Silent {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(String::new())))
    }
}

fn of(tenant: &'static str) -> Request<()> {
    Request::builder().header("x-tenant", tenant).body(()).unwrap()
}

/// Allocations of one request that passes, once the first have found their places.
fn taken_by<S, R>(mut service: S) -> u64
where
    S: Service<Request<()>, Response = Response<R>, Error = Infallible>,
{
    let mut taken = 0;
    // At most once in so many a lease is drawn from, which may move something.
    for _ in 0..20 {
        let (request, mut cx) = (of("acme"), Context::from_waker(Waker::noop()));
        let mut answer = None;
        let allocations = measure(|| {
            let mut called = pin!(service.call(request));
            if let Poll::Ready(Ok(passed)) = called.as_mut().poll(&mut cx) {
                answer = Some(passed);
            }
        });
        let answer = answer.expect("it is answered at once");
        assert_eq!(answer.status(), StatusCode::OK);
        taken = allocations.count_total;
    }
    taken
}

#[tokio::test]
async fn a_request_that_passes_takes_no_memory_of_its_layer() {
    let house = House::open(1_000, 100).await;
    let (rate, gauge) = (house.rate("requests").await, house.gauge("running", 100).await);
    assert_eq!(taken_by(LimitLayer::new(rate.clone(), Global).layer(Silent)), 0);
    let tenant = LimitLayer::new(rate, Header::new("x-tenant"));
    assert_eq!(taken_by(tenant.without_fields().layer(Silent)), 0);
    assert!(taken_by(InFlightLayer::new(gauge).layer(Silent)) <= 1, "the permit");
    house.close().await;
}

#[tokio::test]
async fn layers_and_their_services_are_shared_by_threads() {
    fn check<L>(layer: &L)
    where
        L: Layer<Silent, Service: Clone + Send + Sync> + Clone + Send + Sync,
    {
        fn is_shared(_: &(impl Clone + Send + Sync)) {}
        is_shared(&layer.layer(Silent));
    }
    let house = House::open(1, 1).await;
    let rate = house.client.rate("requests").open().unwrap();
    let gauge = house.client.gauge("running").open().unwrap();
    check(&LimitLayer::new(rate.clone(), Header::new("x-tenant")));
    check(&LimitLayer::new(rate.clone(), Global).settle(BodyBytes));
    check(&InFlightLayer::new(gauge.clone()));
    check(&TogetherLayer::<()>::new().gauge(gauge, 1).rate(rate.clone(), Global, 1));
    check(&WaitLayer::new(rate));
    check(&RetryAfterLayer::new());
    house.close().await;
}
