//! Clients that heed `Retry-After`.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use crate::hold_back::HoldBack;

/// A layer for clients: when an authority answers 429 or 503 with `Retry-After`, or a `RateLimit` of which nothing is left,
/// requests to it wait for so long, a minute at most, and are then sent one at a time, until one is answered otherwise.
///
/// The answer itself is passed on as it is, and nothing is sent twice. Services made by the same layer heed the same answers.
#[derive(Clone, Default, Debug)]
#[must_use = "a layer heeds nothing by itself"]
pub struct RetryAfterLayer {
    held: HoldBack,
}

/// A service behind a [`RetryAfterLayer`].
#[derive(Clone, Debug)]
pub struct RetryAfter<S> {
    inner: S,
    held: HoldBack,
}

/// The answer of a [`RetryAfter`].
pub type RetryAfterFuture<R, E> = Pin<Box<dyn Future<Output = Result<R, E>> + Send>>;

// === impl RetryAfterLayer ===

impl RetryAfterLayer {
    /// Nobody is held back yet.
    pub fn new() -> RetryAfterLayer {
        RetryAfterLayer::default()
    }
}

impl<S> Layer<S> for RetryAfterLayer {
    type Service = RetryAfter<S>;

    fn layer(&self, inner: S) -> RetryAfter<S> {
        RetryAfter { inner, held: self.held.clone() }
    }
}

// === impl RetryAfter ===

impl<S, B, R> Service<Request<B>> for RetryAfter<S>
where
    S: Service<Request<B>, Response = Response<R>, Future: Send> + Clone + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = RetryAfterFuture<Response<R>, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let held = self.held.clone();
        // The one that is ready waits, and its clone, which may not be, stays.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
            let turn = held.turn(authority).await;
            let answer = inner.call(request).await?;
            held.answered(turn, answer.status(), answer.headers());
            Ok(answer)
        })
    }
}
