//! Answers that hold what their request was granted, until their body has been sent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The answer to a request that holds a permit `P`.
    #[derive(Debug)]
    pub struct HeldFuture<F, R, P> {
        #[pin]
        stage: Stage<F, R, P>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = StageProjection]
    enum Stage<F, R, P> {
        Denied { answer: Option<Response<R>> },
        Granted { #[pin] inner: F, permit: Option<P>, fields: HeaderMap },
    }
}

pin_project! {
    /// The body of an answer, which holds a permit `P` until it has ended or is dropped.
    #[derive(Debug)]
    pub struct HeldBody<R, P> {
        #[pin]
        inner: R,
        permit: Option<P>,
    }
}

// === impl HeldFuture ===

impl<F, R, P> HeldFuture<F, R, P> {
    pub(crate) fn denied(answer: Response<R>) -> HeldFuture<F, R, P> {
        HeldFuture { stage: Stage::Denied { answer: Some(answer) } }
    }

    /// The service works on it; the fields are added to its answer.
    pub(crate) fn granted(inner: F, permit: P, fields: HeaderMap) -> HeldFuture<F, R, P> {
        HeldFuture { stage: Stage::Granted { inner, permit: Some(permit), fields } }
    }
}

impl<F, R, P, E> Future for HeldFuture<F, R, P>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<HeldBody<R, P>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (answer, permit) = match self.project().stage.project() {
            StageProjection::Denied { answer } => {
                (answer.take().expect("a future is not polled after it has ended"), None)
            }
            StageProjection::Granted { inner, permit, fields } => {
                let mut answer = ready!(inner.poll(cx))?;
                for (name, value) in &*fields {
                    answer.headers_mut().append(name, value.clone());
                }
                (answer, permit.take())
            }
        };
        Poll::Ready(Ok(answer.map(|inner| HeldBody { inner, permit })))
    }
}

// === impl HeldBody ===

impl<R: Body, P> Body for HeldBody<R, P> {
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
