//! Limits on what a client sends: each request waits for units of a rate before it is sent.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use lessor_client::internals::clock;
use lessor_client::{Denied, Rate, Time};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::deadline::{Deadline, NoDeadline};

/// The error of whatever lies behind, or a [`Denied`].
type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A wait in the queue of a rate.
type Waiting = Pin<Box<dyn Future<Output = Result<(), Denied>> + Send>>;

/// A layer for clients: each request waits, in order, for a unit of a rate, and is sent then. It works with requests of any
/// kind.
///
/// It waits no longer than the rate was [opened](lessor_client::Opening::max_wait) for, nor past the
/// [deadline](WaitLayer::deadline) of the request: one that would be granted its unit too late is denied, at once where that
/// is known, and leaves its place to others. Its error is that of the service behind it, or the [`Denied`] of a request that was not sent.
///
/// ```
/// # use lessor_client::Rate;
/// # use std::time::Duration;
/// use lessor_tower::{GrpcTimeout, WaitLayer};
///
/// # fn layers(calls: Rate) {
/// // In front of a channel of tonic: what is left of the timeout of each request.
/// let layer = WaitLayer::new(calls.clone()).deadline(GrpcTimeout);
/// // Or for all of them.
/// let layer = WaitLayer::new(calls).deadline(|_: &http::Request<String>| Some(Duration::from_millis(200)));
/// # drop(layer);
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer limits nothing by itself"]
pub struct WaitLayer<D = NoDeadline> {
    rate: Rate,
    deadline: D,
}

/// A service behind a [`WaitLayer`].
#[derive(Debug)]
pub struct Wait<S, D = NoDeadline> {
    inner: S,
    rate: Rate,
    deadline: Arc<D>,
}

pin_project! {
    /// The answer of a [`Wait`].
    pub struct WaitFuture<S: Service<Q>, Q, D = NoDeadline> {
        #[pin]
        stage: Stage<S, Q, D>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S: Service<Q>, Q, D> {
        Waiting { wait: Waiting, inner: S, request: Option<Q>, until: Option<Until<D>> },
        Sent { #[pin] answer: S::Future },
    }
}

/// The end of a request, as its deadline says.
#[derive(Debug)]
struct Until<D> {
    at: Time,
    deadline: Arc<D>,
}

// === impl WaitLayer ===

impl WaitLayer {
    /// Each request waits for a unit of `rate`.
    pub fn new(rate: Rate) -> WaitLayer {
        WaitLayer { rate, deadline: NoDeadline }
    }
}

impl<D> WaitLayer<D> {
    /// The deadline of a request, past which it is not worth sending; none without it.
    pub fn deadline<E>(self, deadline: E) -> WaitLayer<E> {
        WaitLayer { rate: self.rate, deadline }
    }
}

impl<S, D: Clone> Layer<S> for WaitLayer<D> {
    type Service = Wait<S, D>;

    fn layer(&self, inner: S) -> Wait<S, D> {
        Wait { inner, rate: self.rate.clone(), deadline: Arc::new(self.deadline.clone()) }
    }
}

// === impl Wait ===

impl<S: Clone, D> Clone for Wait<S, D> {
    fn clone(&self) -> Wait<S, D> {
        Wait { inner: self.inner.clone(), rate: self.rate.clone(), deadline: Arc::clone(&self.deadline) }
    }
}

impl<S, Q, D> Service<Q> for Wait<S, D>
where
    S: Service<Q> + Clone,
    S::Error: Into<BoxError>,
    D: Deadline<Q>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = WaitFuture<S, Q, D>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Q) -> Self::Future {
        if self.rate.try_acquire(1).is_ok() {
            return WaitFuture { stage: Stage::Sent { answer: self.inner.call(request) } };
        }
        let (rate, left) = (self.rate.clone(), self.deadline.left(&request));
        let until = left.map(|left| Until { at: clock::now() + left, deadline: Arc::clone(&self.deadline) });
        let longest = left.map_or(rate.max_wait(), |left| left.min(rate.max_wait()));
        let wait = Box::pin(async move { rate.acquire_within(1, longest).await });
        // The one that is ready waits, and its clone, which may not be, stays.
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        WaitFuture { stage: Stage::Waiting { wait, inner, request: Some(request), until } }
    }
}

// === impl Until ===

impl<D> Until<D> {
    /// Tells the request what is left for it.
    fn note<Q>(&self, request: &mut Q)
    where
        D: Deadline<Q>,
    {
        self.deadline.set_left(request, self.at.since(clock::now()));
    }
}

// === impl WaitFuture ===

impl<S, Q, D> Future for WaitFuture<S, Q, D>
where
    S: Service<Q>,
    S::Error: Into<BoxError>,
    D: Deadline<Q>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let answer = match this.stage.as_mut().project() {
                StageProjection::Waiting { wait, inner, request, until } => {
                    ready!(wait.as_mut().poll(cx))?;
                    let mut request = request.take().expect("a request is sent once");
                    if let Some(until) = until {
                        until.note(&mut request);
                    }
                    inner.call(request)
                }
                StageProjection::Sent { answer } => return answer.poll(cx).map_err(Into::into),
            };
            this.stage.set(Stage::Sent { answer });
        }
    }
}
