//! Limits on requests in flight: each holds units of a gauge until its answer has been sent.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response, StatusCode};
use lessor_client::{Gauge, Permit};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{Answer, Problem, Rejection};
use crate::fields;
use crate::held::{HeldBody, HeldFuture};

/// A layer that lets as many requests pass at a time as a gauge allows.
///
/// A request holds a unit from its call until the body of its answer has ended or is dropped: an answer that is still being
/// sent is work in flight. Requests beyond that are answered at once, with 503: see [`Answer`].
///
/// A unit ends with the lease that it was taken under, which is renewed as long as a server answers. When none does, requests
/// that are in flight then go on, though their units may be somebody else's after that.
#[derive(Clone, Debug)]
#[must_use = "a layer limits nothing by itself"]
pub struct InFlightLayer<A = Problem> {
    gauge: Gauge,
    answer: A,
    policy: Arc<str>,
}

/// A service behind an [`InFlightLayer`].
#[derive(Clone, Debug)]
pub struct InFlight<S, A = Problem> {
    inner: S,
    layer: InFlightLayer<A>,
}

/// The answer of an [`InFlight`].
pub type InFlightFuture<F, R> = HeldFuture<F, R, Permit>;

/// The body of an answer, which holds the units of its request until it has ended or is dropped.
pub type InFlightBody<R> = HeldBody<R, Permit>;

// === impl InFlightLayer ===

impl InFlightLayer {
    /// Each request holds a unit of `gauge`.
    pub fn new(gauge: Gauge) -> InFlightLayer {
        let policy = gauge.name().as_str().into();
        InFlightLayer { gauge, answer: Problem, policy }
    }
}

impl<A> InFlightLayer<A> {
    /// The answer to what is not granted; [`Problem`] without it.
    pub fn answer<D>(self, answer: D) -> InFlightLayer<D> {
        InFlightLayer { gauge: self.gauge, answer, policy: self.policy }
    }

    /// The name of the policy in problems; that of the resource without it.
    pub fn name(self, policy: &str) -> InFlightLayer<A> {
        InFlightLayer { policy: policy.into(), ..self }
    }
}

impl<S, A: Clone> Layer<S> for InFlightLayer<A> {
    type Service = InFlight<S, A>;

    fn layer(&self, inner: S) -> InFlight<S, A> {
        InFlight { inner, layer: self.clone() }
    }
}

// === impl InFlight ===

impl<S, B, R, A> Service<Request<B>> for InFlight<S, A>
where
    S: Service<Request<B>, Response = Response<R>>,
    A: Answer<R>,
{
    type Response = Response<InFlightBody<R>>;
    type Error = S::Error;
    type Future = InFlightFuture<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.layer.gauge.try_acquire(1) {
            Ok(permit) => HeldFuture::granted(self.inner.call(request), permit, HeaderMap::new()),
            Err(denied) => {
                let layer = &self.layer;
                let rejection = Rejection::denied(denied, &layer.policy, StatusCode::SERVICE_UNAVAILABLE);
                let mut answer = layer.answer.answer(&rejection);
                fields::finish(None, answer.headers_mut(), &rejection);
                HeldFuture::denied(answer)
            }
        }
    }
}
