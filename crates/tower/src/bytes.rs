//! Costs in bytes: what an answer has turned out to be long, once it has been sent.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use lessor_client::Rate;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::answer::Answer;
use crate::cost::{Cost, Settling};
use crate::key::Key;
use crate::limit::{Grant, Limit, LimitFuture, StageProjection};

/// The settlement of as many units as the body of an answer had bytes, when it has ended or is dropped.
///
/// A unit of the rate is a byte then. What [`cost`](crate::LimitLayer::cost) says is taken before, an estimate, a unit without
/// it; what was sent beyond that is a debt, which the next request of the same domain pays first, and what was not sent comes
/// back to the tiers of the domain. An answer that is given up half-way costs what was sent of it. The bodies of answers that
/// deny, and trailers, cost nothing.
///
/// ```
/// # use http::Request;
/// # use lessor_client::Rate;
/// # use lessor_tower::{Header, LimitLayer};
/// use lessor_tower::BodyBytes;
///
/// # fn layer(downloads: Rate) {
/// let layer = LimitLayer::new(downloads, Header::new("x-tenant"))
///     .cost(|_: &Request<String>| 16_384) // most answers are about so long
///     .settle(BodyBytes);
/// # drop(layer);
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BodyBytes;

pin_project! {
    /// The body of an answer, whose bytes are settled when it has ended or is dropped.
    #[derive(Debug)]
    pub struct CountedBody<R> {
        #[pin]
        inner: R,
        bill: Option<Bill>,
    }
}

/// The bytes that were sent of an answer. They are settled when it is dropped.
#[derive(Debug)]
struct Bill {
    rate: Rate,
    domain: Option<String>,
    granted: u32,
    bytes: u64,
}

// === impl BodyBytes ===

impl Settling for BodyBytes {
    const IS_NEEDED: bool = true;
}

impl<S, B, R, K, C, A> Service<Request<B>> for Limit<S, K, C, BodyBytes, A>
where
    S: Service<Request<B>, Response = Response<R>>,
    K: Key<B>,
    C: Cost<B>,
    A: Answer<R>,
{
    type Response = Response<CountedBody<R>>;
    type Error = S::Error;
    type Future = LimitFuture<S::Future, R, K, C, BodyBytes, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.decide_and_call(request)
    }
}

impl<F, E, R, K, C, A> Future for LimitFuture<F, R, K, C, BodyBytes, A>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<CountedBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (answer, bill) = match this.stage.project() {
            StageProjection::Denied { answer } => {
                (answer.take().expect("a future is not polled after it has ended"), None)
            }
            StageProjection::Granted { inner, grant } => {
                let mut answer = ready!(inner.poll(cx))?;
                this.settings.note(&mut answer, grant);
                (answer, Some(Bill::new(this.settings.rate.clone(), grant)))
            }
        };
        Poll::Ready(Ok(answer.map(|inner| CountedBody { inner, bill })))
    }
}

// === impl CountedBody ===

impl<R: Body> Body for CountedBody<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        let this = self.project();
        let frame = ready!(this.inner.poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Buf::remaining);
                if let Some(bill) = this.bill {
                    bill.bytes = bill.bytes.saturating_add(bytes as u64);
                }
            }
            Some(Err(_)) | None => *this.bill = None,
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

// === impl Bill ===

impl Bill {
    fn new(rate: Rate, grant: &mut Grant) -> Bill {
        Bill { rate, domain: mem::take(&mut grant.domain), granted: grant.units, bytes: 0 }
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        let actual = u32::try_from(self.bytes).unwrap_or(u32::MAX);
        match &self.domain {
            Some(domain) => self.rate.domain(domain).settle(self.granted, actual),
            None => self.rate.settle(self.granted, actual),
        }
    }
}
