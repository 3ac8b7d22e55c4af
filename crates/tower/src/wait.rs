//! Limits on what a client sends: each request waits for units of a rate before it is sent.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lessor_client::{Denied, Rate};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

/// The error of whatever lies behind, or a [`Denied`].
type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A wait in the queue of a rate.
type Waiting = Pin<Box<dyn Future<Output = Result<(), Denied>> + Send>>;

/// A layer for clients: each request waits, in order, for a unit of a rate, and is sent then. It works with requests of any
/// kind.
///
/// It waits no longer than the rate was [opened](lessor_client::Opening::max_wait) for. Its error is that of the service behind
/// it, or the [`Denied`] of a request that was not sent.
#[derive(Clone, Debug)]
#[must_use = "a layer limits nothing by itself"]
pub struct WaitLayer {
    rate: Rate,
}

/// A service behind a [`WaitLayer`].
#[derive(Clone, Debug)]
pub struct Wait<S> {
    inner: S,
    rate: Rate,
}

pin_project! {
    /// The answer of a [`Wait`].
    pub struct WaitFuture<S: Service<Q>, Q> {
        #[pin]
        stage: Stage<S, Q>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S: Service<Q>, Q> {
        Waiting { wait: Waiting, inner: S, request: Option<Q> },
        Sent { #[pin] answer: S::Future },
    }
}

// === impl WaitLayer ===

impl WaitLayer {
    /// Each request waits for a unit of `rate`.
    pub fn new(rate: Rate) -> WaitLayer {
        WaitLayer { rate }
    }
}

impl<S> Layer<S> for WaitLayer {
    type Service = Wait<S>;

    fn layer(&self, inner: S) -> Wait<S> {
        Wait { inner, rate: self.rate.clone() }
    }
}

// === impl Wait ===

impl<S, Q> Service<Q> for Wait<S>
where
    S: Service<Q> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = WaitFuture<S, Q>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Q) -> Self::Future {
        if self.rate.try_acquire(1).is_ok() {
            return WaitFuture { stage: Stage::Sent { answer: self.inner.call(request) } };
        }
        let rate = self.rate.clone();
        let wait = Box::pin(async move { rate.acquire(1).await });
        // The one that is ready waits, and its clone, which may not be, stays.
        let clone = self.inner.clone();
        let inner = mem::replace(&mut self.inner, clone);
        WaitFuture { stage: Stage::Waiting { wait, inner, request: Some(request) } }
    }
}

// === impl WaitFuture ===

impl<S, Q> Future for WaitFuture<S, Q>
where
    S: Service<Q>,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let answer = match this.stage.as_mut().project() {
                StageProjection::Waiting { wait, inner, request } => {
                    ready!(wait.as_mut().poll(cx))?;
                    inner.call(request.take().expect("a request is sent once"))
                }
                StageProjection::Sent { answer } => return answer.poll(cx).map_err(Into::into),
            };
            this.stage.set(Stage::Sent { answer });
        }
    }
}
