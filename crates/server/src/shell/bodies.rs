//! The bodies of requests: what of a message has come is kept here until all of it has, within a budget for all bodies
//! together; and it is counted before it is decoded.

mod count;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::Request;
use hyper::body::Frame;
use lessor_client::internals::clock;
use lessor_proto::message::Refusal;
use tonic::Status;
use tonic::body::Body;

use self::count::RepeatedField;
use super::driver::Driver;
use super::refused::refused;

/// The bytes that all unfinished messages may have together, besides those that are free.
const BUDGET: usize = 64 << 20;
/// The bytes of an unfinished message that are free.
const FREE: usize = 64 << 10;
/// A flag whether the message is compressed, and its length.
const HEADER: usize = 5;

/// The rules for bodies, and what all of them have taken. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Bodies(Arc<BodyRules>);

#[derive(Debug)]
struct BodyRules {
    driver: Arc<Driver>,
    most: usize,
    /// The bytes of a message in which there cannot be too much of anything.
    uncounted: usize,
    /// The time that a message may take from its first byte to its last.
    patience: Duration,
    taken: AtomicUsize,
}

/// A body of which messages come out whole.
pub(super) struct Whole {
    inner: Body,
    bodies: Bodies,
    parts: &'static [RepeatedField],
    /// The beginning of a message.
    begun: Vec<u8>,
    /// The part of the budget that it has.
    share: usize,
    /// The end of the time that it has; absent where nothing has begun, or has not been waited for yet.
    late: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Whether all passes as it is, as a message is too large or compressed, which tonic refuses.
    is_given_up: bool,
}

// === impl Bodies ===

impl Bodies {
    /// Bodies of messages that may have so many bytes each, and may take so long from their first byte to their last.
    pub(super) fn new(driver: Arc<Driver>, most: usize, patience: Duration) -> Bodies {
        let uncounted = count::harmless(driver.limits());
        Bodies(Arc::new(BodyRules { driver, most, uncounted, patience, taken: AtomicUsize::new(0) }))
    }

    /// The request with a body that obeys these rules, if it is a call of the capacity service.
    ///
    /// # Errors
    /// With the request as it is, if it is none.
    #[expect(clippy::result_large_err, reason = "one of the two comes back, and both are a request")]
    pub(super) fn guard_call(&self, request: Request<Body>) -> Result<Request<Whole>, Request<Body>> {
        match count::parts(request.uri().path()) {
            Some(parts) => Ok(request.map(|inner| self.whole(inner, parts))),
            None => Err(request),
        }
    }

    /// Another request with such a body, whatever its method: services look at the path alone.
    pub(super) fn guard(&self, request: Request<Body>) -> Request<Body> {
        request.map(|inner| Body::new(self.whole(inner, &[])))
    }

    /// The status of a request that is refused, which is counted.
    pub(super) fn refuse(&self, refusal: Refusal) -> Status {
        refused(&self.0.driver, refusal)
    }

    fn whole(&self, inner: Body, parts: &'static [RepeatedField]) -> Whole {
        let (bodies, begun) = (self.clone(), Vec::new());
        Whole { inner, bodies, parts, begun, share: 0, late: None, is_given_up: false }
    }

    fn take(&self, bytes: usize) -> Result<(), Status> {
        let BodyRules { driver, taken, .. } = &*self.0;
        let count = taken.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if count <= BUDGET {
            return Ok(());
        }
        self.give_back(bytes);
        let what = "bytes of unfinished requests".to_owned();
        Err(refused(driver, Refusal::Exhausted { what, count, limit: BUDGET }))
    }

    fn give_back(&self, bytes: usize) {
        // Nearly all have taken nothing, and it is written by all processors.
        if bytes > 0 {
            self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

// === impl Whole ===

impl Whole {
    /// Returns the messages that are whole with what has come; nothing if none is.
    fn hear(&mut self, data: Bytes) -> Result<Bytes, Status> {
        if self.is_given_up {
            return Ok(data);
        }
        if self.begun.is_empty() && self.whole(&data)? == data.len() {
            return Ok(data);
        }
        self.add(&data)?;
        drop(data);
        let end = self.whole(&self.begun)?;
        if end == 0 && !self.is_foreign(&self.begun) {
            return Ok(Bytes::new());
        }
        self.is_given_up = self.is_foreign(&self.begun[end..]);
        let rest = if self.is_given_up { Vec::new() } else { self.begun.split_off(end) };
        let whole = Bytes::from(std::mem::replace(&mut self.begun, rest));
        self.begun.shrink_to_fit();
        self.pay(self.begun.capacity())?;
        Ok(whole)
    }

    /// Adds what has come, if there is room for that in the budget.
    fn add(&mut self, data: &[u8]) -> Result<(), Status> {
        let needed = self.begun.len() + data.len();
        if needed > self.begun.capacity() {
            let all = length(&self.begun).map_or(0, |length| HEADER + length.min(self.bodies.0.most));
            let room = needed.max(all.min(2 * needed));
            self.pay(room)?;
            self.begun.reserve_exact(room - self.begun.len());
        }
        self.begun.extend_from_slice(data);
        Ok(())
    }

    /// The end of the last message in `bytes` that is whole. All up to there have been counted.
    fn whole(&self, bytes: &[u8]) -> Result<usize, Status> {
        let mut end = 0;
        while let Some(length) = length(&bytes[end..]).filter(|_| !self.is_foreign(&bytes[end..])) {
            let Some(message) = bytes.get(end + HEADER..end + HEADER + length) else { break };
            let BodyRules { driver, uncounted, .. } = &*self.bodies.0;
            if length > *uncounted {
                let checked = count::check(message, self.parts, driver.limits());
                checked.map_err(|refusal| refused(driver, refusal))?;
            }
            end += HEADER + length;
        }
        Ok(end)
    }

    /// Whether a message begins there that is not taken anyway.
    fn is_foreign(&self, bytes: &[u8]) -> bool {
        let is_compressed = bytes.first().is_some_and(|&flag| flag != 0);
        is_compressed || length(bytes).is_some_and(|length| length > self.bodies.0.most)
    }

    /// Waits until a message that has begun has taken too long.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.begun.is_empty() {
            return Poll::Pending;
        }
        let patience = self.bodies.0.patience;
        let late = self.late.get_or_insert_with(|| Box::pin(clock::sleep_until(clock::now() + patience)));
        late.as_mut().poll(cx)
    }

    /// Keeps no message that never ends: its part of the budget is for others.
    fn give_up(&mut self) -> Status {
        self.begun = Vec::new();
        self.late = None;
        self.bodies.give_back(std::mem::take(&mut self.share));
        Status::deadline_exceeded(format!("a message was not whole after {:?}", self.bodies.0.patience))
    }

    /// Has the part of the budget that so many bytes take.
    fn pay(&mut self, bytes: usize) -> Result<(), Status> {
        let due = bytes.saturating_sub(FREE);
        if due > self.share {
            self.bodies.take(due - self.share)?;
        } else {
            self.bodies.give_back(self.share - due);
        }
        self.share = due;
        Ok(())
    }
}

impl HttpBody for Whole {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let body = self.get_mut();
        loop {
            let polled = Pin::new(&mut body.inner).poll_frame(cx);
            if polled.is_pending() && body.poll_late(cx).is_ready() {
                return Poll::Ready(Some(Err(body.give_up().into())));
            }
            let frame = match ready!(polled) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                // tonic says what is wrong with a message that ends too early.
                None if body.begun.is_empty() => return Poll::Ready(None),
                None => {
                    let begun = Bytes::from(std::mem::take(&mut body.begun));
                    return Poll::Ready(Some(Ok(Frame::data(begun))));
                }
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            };
            match body.hear(data) {
                Ok(whole) if whole.is_empty() => {}
                Ok(whole) => {
                    body.late = None;
                    return Poll::Ready(Some(Ok(Frame::data(whole))));
                }
                Err(status) => {
                    body.begun = Vec::new();
                    return Poll::Ready(Some(Err(status.into())));
                }
            }
        }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.bodies.give_back(self.share);
    }
}

/// The length of the message that begins there, if so much of it has come.
fn length(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<HEADER>()?;
    let [_, length @ ..] = header;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

#[cfg(test)]
mod tests;
