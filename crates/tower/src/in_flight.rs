//! Limits on requests in flight: each holds units of a gauge until its answer has been sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use lessor_client::{Gauge, Permit};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{Answer, Problem, Rejection};
use crate::fields;

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

pin_project! {
    /// The answer of an [`InFlight`].
    #[derive(Debug)]
    #[project = FutureProjection]
    pub enum InFlightFuture<F, R> {
        /// Nothing was granted.
        #[doc(hidden)]
        Denied { answer: Option<Response<R>> },
        /// The service works on it.
        #[doc(hidden)]
        Granted { #[pin] inner: F, permit: Option<Permit> },
    }
}

pin_project! {
    /// The body of an answer, which holds the units of its request until it has ended or is dropped.
    #[derive(Debug)]
    pub struct InFlightBody<R> {
        #[pin]
        inner: R,
        permit: Option<Permit>,
    }
}

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
            Ok(permit) => InFlightFuture::Granted { inner: self.inner.call(request), permit: Some(permit) },
            Err(denied) => {
                let layer = &self.layer;
                let rejection = Rejection::denied(denied, &layer.policy, StatusCode::SERVICE_UNAVAILABLE);
                let mut answer = layer.answer.answer(&rejection);
                fields::finish(None, answer.headers_mut(), &rejection);
                InFlightFuture::Denied { answer: Some(answer) }
            }
        }
    }
}

// === impl InFlightFuture ===

impl<F, R, E> Future for InFlightFuture<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<InFlightBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (answer, permit) = match self.project() {
            FutureProjection::Denied { answer } => {
                (answer.take().expect("a future is not polled after it has ended"), None)
            }
            FutureProjection::Granted { inner, permit } => (ready!(inner.poll(cx))?, permit.take()),
        };
        Poll::Ready(Ok(answer.map(|inner| InFlightBody { inner, permit })))
    }
}

// === impl InFlightBody ===

impl<R: Body> Body for InFlightBody<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        let this = self.project();
        let frame = ready!(this.inner.poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            *this.permit = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
