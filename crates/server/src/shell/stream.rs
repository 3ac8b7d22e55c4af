//! One stream: the body of the response, which reads what comes up when the connection asks it for something to send down.
//!
//! So a report and its answer are the work of one task, and nothing is kept but what is in the [`Mailbox`]. A connection asks
//! again when it has room, and for a peer that does not read it has none: a stream that was not asked for a second or two is read
//! by [`Lines::attend`], so that what such a peer says is heard all the same. One message and one refusal wait for it, and nothing
//! else.

mod lines;
mod parts;
mod pass;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures_util::Stream;
use lessor_client::internals::clock;
use lessor_proto::message::{Down, Hello, HolderKind, Refusal, Up, WallClock};
use lessor_proto::wire::session_up_request::Message;
use lessor_proto::{Features, ReportId, wire};
use tokio::time::timeout;
use tonic::{Status, Streaming};
use tracing::debug;

use self::lines::ATTENDED;
pub(super) use self::lines::Lines;
use self::parts::parts;
use self::pass::Pass;
use super::caller::Caller;
use super::connections::ListedStream;
use super::driver::{Driver, Letter, Mailbox, StreamEnd, StreamKey, Unanswered, Unheard};
use super::gate::Visit;
use super::refused::{refused, unanswered};
use crate::access::Review;

/// The time that somebody who has opened a stream may take to say who it is.
const HELLO: Duration = Duration::from_secs(10);
/// The messages that go down a stream. When this is dropped, the stream has ended.
#[derive(Debug)]
pub struct Downs {
    driver: Arc<Driver>,
    line: Arc<Line>,
    _listed: ListedStream,
}

/// Both directions of a stream.
#[derive(Debug)]
struct Line {
    /// Absent of a stream that only says who leads.
    key: Option<StreamKey>,
    kind: HolderKind,
    /// The kinds of message that the holder knows.
    features: Features,
    mailbox: Arc<Mailbox>,
    reader: Mutex<StreamReader>,
}

/// The direction in which reports come.
#[derive(Debug)]
struct StreamReader {
    /// Absent when it has ended.
    ups: Option<Streaming<wire::SessionUpRequest>>,
    /// The rules for what comes.
    pass: Pass,
    /// The parts of a long report that have not been heard yet, each a turn under the lock of its own.
    parts: VecDeque<wire::SessionUpRequest>,
    /// The message that waits until this task may act again. While it does nothing else is read.
    waiting: Option<Box<Up>>,
    /// The refusal of a report that did not reach the node. While it waits nothing is read: nobody can make refusals pile up.
    refusal: Option<Box<wire::SessionDown>>,
    /// The fault with which the stream ends; without one, it ends in order.
    end: Option<Status>,
    /// Why it ends; absent while it does not.
    why: Option<StreamEnd>,
    /// The task of its connection, which is woken when something comes; absent before it has asked.
    task: Option<Waker>,
    /// The number of looks since it asked last, or something was heard without it.
    unasked: u32,
    /// The number of looks at which something was there for it, since it asked last.
    unread: u32,
}

/// The outcome of a look at a stream.
#[derive(Clone, Copy, Default, Debug)]
struct StreamLook {
    /// The connection does not ask though something is there for it.
    is_stalled: bool,
    /// It is time to hear what comes without being asked for it.
    is_time: bool,
}

/// Opens a stream: waits for the hello, and connects.
pub(super) async fn open(
    driver: Arc<Driver>,
    lines: &Lines,
    visit: Option<Visit>,
    caller: Caller,
    mut ups: Streaming<wire::SessionUpRequest>,
) -> Result<Downs, Status> {
    let hello = hello(&driver, &mut ups).await?;
    let bearer = visit.as_ref().and_then(Visit::bearer).map(str::to_owned);
    let Caller { connection, budget, .. } = caller;
    let pass = Pass::open(visit, &hello, driver.resources_per_stream())
        .map_err(|refusal| refused(&driver, refusal))?;
    let pass = pass.with_budget(budget, &driver.traffic().throttled);
    let (key, mailbox, ups) = match connect(&driver, &hello).await {
        Ok((key, mailbox)) => (Some(key), mailbox, Some(ups)),
        Err(Unanswered::NotLeading(leader)) => {
            let mailbox = Mailbox::default();
            mailbox.put(Down::Redirect(leader));
            mailbox.close();
            (None, Arc::new(mailbox), None)
        }
        Err(fault) => return Err(unanswered(&driver, fault)),
    };
    let reader = StreamReader {
        ups,
        pass,
        parts: VecDeque::new(),
        waiting: None,
        refusal: None,
        end: None,
        why: None,
        task: None,
        unasked: 0,
        unread: 0,
    };
    let reader = Mutex::new(reader);
    let line = Arc::new(Line { key, kind: hello.kind, features: hello.features, mailbox, reader });
    lines.add(&line);
    let listed = ListedStream::new(&driver.traffic().table, connection, bearer.as_deref());
    Ok(Downs { driver, line, _listed: listed })
}

async fn hello(driver: &Driver, ups: &mut Streaming<wire::SessionUpRequest>) -> Result<Hello, Status> {
    let first = timeout(HELLO, ups.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("no hello, which is the first message"))??;
    let first = first.ok_or_else(|| Status::invalid_argument("message: is missing; wanted a hello"))?;
    driver.traffic().received.fetch_add(1, Ordering::Relaxed);
    Hello::first(first, driver.limits()).map_err(|refusal| refused(driver, refusal))
}

/// Connects somebody who has said hello. Where the authority of this task has lapsed, and nobody else can lead yet, he waits with all
/// others.
async fn connect(driver: &Driver, hello: &Hello) -> Result<(StreamKey, Arc<Mailbox>), Unanswered> {
    let mut changes = driver.authority_changes();
    loop {
        match driver.connect(hello) {
            // Nobody tells when the key may have ended.
            Err(Unanswered::Lapsed) => drop(timeout(ATTENDED, changes.next()).await),
            done => return done,
        }
    }
}

// === impl Downs ===

impl Stream for Downs {
    type Item = Result<wire::SessionDown, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Downs { driver, line, .. } = &*self;
        let mut reader = line.reader();
        (reader.unasked, reader.unread) = (0, 0);
        match &mut reader.task {
            Some(task) => task.clone_from(cx.waker()),
            None => reader.task = Some(cx.waker().clone()),
        }
        line.poll(driver, &mut reader, cx)
    }
}

impl Drop for Downs {
    fn drop(&mut self) {
        if let Some(key) = self.line.key {
            self.driver.disconnect(key);
            let why = self.line.reader().why.unwrap_or(StreamEnd::Broken);
            self.driver.traffic().streams_ended.add(why);
        }
    }
}

// === impl Line ===

impl Line {
    /// The next message to go down.
    fn poll(
        &self,
        driver: &Driver,
        reader: &mut StreamReader,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<wire::SessionDown, Status>>> {
        loop {
            if let Some(refusal) = reader.refusal.take() {
                driver.traffic().refused.fetch_add(1, Ordering::Relaxed);
                return Poll::Ready(Some(Ok(count(driver, *refusal))));
            }
            match (self.mailbox.take(), self.key) {
                (Letter::News(news), key) => {
                    key.into_iter().for_each(|key| driver.domains_ready(key));
                    return Poll::Ready(Some(Ok(self.said(driver, &Down::Domains(news)))));
                }
                (Letter::Look(look), _) => {
                    return Poll::Ready(Some(Ok(self.said(driver, &Down::Look(look)))));
                }
                (Letter::Down(down), key) => {
                    let next = key.map_or(Ok(()), |key| driver.ready(key));
                    let next = next.map_err(|fault| unanswered(driver, fault));
                    if let Down::Redirect(_) = down {
                        reader.why.get_or_insert(StreamEnd::NotLeading);
                    }
                    return Poll::Ready(Some(next.map(|()| self.said(driver, &down))));
                }
                // The fault is said once; after it, the stream is not asked again.
                (Letter::End, _) => {
                    reader.why.get_or_insert(StreamEnd::Closed);
                    return Poll::Ready(reader.end.take().map(Err));
                }
                (Letter::None, None) => return Poll::Ready(None),
                (Letter::None, Some(key)) if reader.waiting.is_some() => {
                    if let Some(down) = self.pass_on_waiting(driver, reader, |up| driver.exchange(key, up)) {
                        return Poll::Ready(Some(Ok(self.said(driver, &down))));
                    }
                    if reader.waiting.is_some() {
                        ready!(self.mailbox.poll_filled(cx));
                    }
                }
                (Letter::None, Some(key)) => match reader.poll(cx) {
                    Poll::Ready(request) => {
                        let exchange = |up| driver.exchange(key, up);
                        if let Some(down) = self.hear(driver, reader, request, exchange) {
                            return Poll::Ready(Some(Ok(self.said(driver, &down))));
                        }
                        if !reader.parts.is_empty() && reader.refusal.is_none() {
                            // Others have the processor in between.
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                    }
                    Poll::Pending => ready!(self.mailbox.poll_filled(cx)),
                },
            }
        }
    }

    /// Looks whether the connection of a peer has asked since the last look. Of one that has not it is time to hear what comes at the
    /// second look, and then less and less often while nothing does; of one that does not read for more than `most` looks the
    /// stream is given up.
    fn look(&self, driver: &Driver, most: u32) -> StreamLook {
        let Ok(mut reader) = self.reader.try_lock() else { return StreamLook::default() };
        self.review(driver, &mut reader);
        reader.rouse();
        reader.unasked = reader.unasked.saturating_add(1);
        reader.unread = if self.mailbox.is_filled() { reader.unread.saturating_add(1) } else { 0 };
        if reader.unread > most {
            self.give_up(driver, &mut reader);
            return StreamLook::default();
        }
        let is_time = reader.unasked > 1 && reader.unasked.is_power_of_two();
        StreamLook { is_stalled: reader.unread > 1, is_time }
    }

    /// Hears one message, or a part of one, of a peer whose connection does not ask. Returns whether there may be more.
    fn hear_unasked(&self, driver: &Driver) -> bool {
        let Ok(mut reader) = self.reader.try_lock() else { return false };
        let (Some(key), Some(task)) = (self.key, reader.task.clone()) else { return false };
        if reader.unasked == 0 || reader.refusal.is_some() || reader.ups.is_none() {
            return false;
        }
        // What is due to it waits in the mailbox.
        let receive = |up| driver.receive(key, up).map(|()| None);
        let _: Option<Down> = if reader.waiting.is_some() {
            self.pass_on_waiting(driver, &mut reader, receive)
        } else {
            let Poll::Ready(request) = reader.poll(&mut Context::from_waker(&task)) else { return false };
            self.hear(driver, &mut reader, request, receive)
        };
        if reader.waiting.is_some() {
            return false;
        }
        reader.unasked = 1;
        true
    }

    /// Lets the connection ask again, if something of it waits until this task may act again.
    fn rouse(&self) {
        // Whoever has it locked tries at this moment, and again after the next look if that was too early.
        if let Ok(reader) = self.reader.try_lock() {
            reader.rouse();
        }
    }

    /// Hears what has come up, or that the stream is over, and returns what is answered at once.
    fn hear(
        &self,
        driver: &Driver,
        reader: &mut StreamReader,
        request: Option<Result<wire::SessionUpRequest, Status>>,
        exchange: impl FnOnce(Up) -> Result<Option<Down>, Unheard>,
    ) -> Option<Down> {
        let key = self.key?;
        let (why, fault) = match request {
            Some(Ok(request)) => {
                if reader.parts.is_empty() {
                    driver.traffic().received.fetch_add(1, Ordering::Relaxed);
                    reader.pass.spend();
                }
                let report = number(&request);
                let up = Up::from_wire(request, driver.limits(), self.kind);
                if let Ok(None) = up {
                    driver.note_unknown(key);
                }
                match (up.and_then(|up| up.map_or(Ok(None), |up| reader.pass.check(up))), report) {
                    (Ok(None), _) => return None,
                    (Ok(Some(Up::Domains(report))), _) => {
                        driver.receive_domains(key, report);
                        return None;
                    }
                    (Ok(Some(Up::View(part))), _) => {
                        driver.receive_view(key, part);
                        return None;
                    }
                    (Ok(Some(up)), _) => {
                        if let Up::Bye = up {
                            reader.why = Some(StreamEnd::Holder);
                        }
                        return self.pass_on(driver, reader, key, up, exchange);
                    }
                    (Err(refusal), Some(report)) => {
                        debug!(stream = %key, report = report.0, %refusal, "refused");
                        reader.refusal = Some(Box::new(refuse(driver, report, refusal)));
                        return None;
                    }
                    (Err(refusal), None) => (StreamEnd::Fault, Some(refused(driver, refusal))),
                }
            }
            Some(Err(status)) => (StreamEnd::Broken, Some(status)),
            None => (StreamEnd::Holder, None),
        };
        self.break_off(driver, reader, key, (why, fault));
        None
    }

    /// Passes on what has come up, and returns what is answered at once. Where this task may not act, and nobody else can lead yet, it
    /// is kept until one of the two has changed.
    fn pass_on(
        &self,
        driver: &Driver,
        reader: &mut StreamReader,
        key: StreamKey,
        up: Up,
        exchange: impl FnOnce(Up) -> Result<Option<Down>, Unheard>,
    ) -> Option<Down> {
        match exchange(up) {
            Ok(down) => return down,
            Err(Unheard::Lapsed(up)) => reader.waiting = Some(up),
            Err(Unheard::Unanswered(fault)) => {
                let why = end_of(&fault);
                self.break_off(driver, reader, key, (why, Some(unanswered(driver, fault))));
            }
        }
        None
    }

    /// Passes on what waits, if anything does.
    fn pass_on_waiting(
        &self,
        driver: &Driver,
        reader: &mut StreamReader,
        exchange: impl FnOnce(Up) -> Result<Option<Down>, Unheard>,
    ) -> Option<Down> {
        let up = reader.waiting.take()?;
        self.pass_on(driver, reader, self.key?, *up, exchange)
    }

    /// Ends the stream for that reason, unless it ends for another already.
    fn break_off(
        &self,
        driver: &Driver,
        reader: &mut StreamReader,
        key: StreamKey,
        (why, fault): (StreamEnd, Option<Status>),
    ) {
        if let Some(status) = &fault {
            debug!(stream = %key, %status, "the stream is broken off");
        }
        reader.why.get_or_insert(why);
        self.end(driver, reader, key, fault);
    }

    /// Looks at the rules of access again, if they have changed.
    fn review(&self, driver: &Driver, reader: &mut StreamReader) {
        let Some(key) = self.key.filter(|_| reader.ups.is_some()) else { return };
        let anew = || {
            let what = "the rules of access have changed; say everything again";
            (StreamEnd::Denied, Status::unavailable(what))
        };
        let (why, status) = match reader.pass.review() {
            Review::Same => return,
            // What waits was let through by the rules before.
            Review::Lost(_) if reader.waiting.is_some() => anew(),
            Review::Lost(resources) => match driver.revoke(key, &resources) {
                Ok(()) => return,
                // Authority may come back, and the holder would keep what it has: it has to come back as well, and is refused.
                Err(fault) => (end_of(&fault), unanswered(driver, fault)),
            },
            Review::Anew => anew(),
            Review::Over => (StreamEnd::Denied, Status::unauthenticated("the token has ended")),
        };
        self.break_off(driver, reader, key, (why, Some(status)));
    }

    /// Ends the stream of whoever has not read for too long: what it has is charged until it is over, and nothing waits for it.
    fn give_up(&self, driver: &Driver, reader: &mut StreamReader) {
        let Some(key) = self.key.filter(|_| reader.ups.is_some()) else { return };
        debug!(stream = %key, "nothing is read of what is there for it");
        reader.why.get_or_insert(StreamEnd::Unread);
        let fault = Status::deadline_exceeded("nothing was read of what is there for this stream");
        self.end(driver, reader, key, Some(fault));
    }

    /// Ends the stream, with a fault or in order.
    fn end(&self, driver: &Driver, reader: &mut StreamReader, key: StreamKey, fault: Option<Status>) {
        (reader.ups, reader.end) = (None, fault);
        (reader.parts, reader.waiting) = (VecDeque::new(), None);
        driver.disconnect(key);
        self.mailbox.close();
    }

    fn said(&self, driver: &Driver, down: &Down) -> wire::SessionDown {
        debug_assert!(self.features.covers(down.needs()), "{:?} is known, not {down:?}", self.features);
        if let Down::Refused { .. } = down {
            driver.traffic().refused.fetch_add(1, Ordering::Relaxed);
        }
        // Grants bear a date, and nothing else does.
        let wall = match down {
            Down::Grants(_) => clock::wall(),
            _ => WallClock { since_epoch: Duration::ZERO },
        };
        count(driver, down.to_wire(self.kind, wall))
    }

    /// Locks the reader, also after a panic: its stream then ends.
    fn reader(&self) -> MutexGuard<'_, StreamReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl StreamReader ===

impl StreamReader {
    /// Lets the connection ask again, if something waits: this task may act, or the key may have ended.
    fn rouse(&self) {
        if let Some(task) = self.task.as_ref().filter(|_| self.waiting.is_some()) {
            task.wake_by_ref();
        }
    }

    /// The next thing that comes up; nothing if nothing will.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<wire::SessionUpRequest, Status>>> {
        // The end of the mailbox wakes whoever waits.
        let Some(ups) = &mut self.ups else { return Poll::Pending };
        if let Some(part) = self.parts.pop_front() {
            return Poll::Ready(Some(Ok(part)));
        }
        ready!(self.pass.poll_turn(cx));
        let request = match ready!(Pin::new(ups).poll_next(cx)) {
            Some(Ok(request)) => request,
            other => return Poll::Ready(other),
        };
        let Some(parts) = parts(&request) else { return Poll::Ready(Some(Ok(request))) };
        self.parts = parts;
        Poll::Ready(self.parts.pop_front().map(Ok))
    }
}

fn count(driver: &Driver, down: wire::SessionDown) -> wire::SessionDown {
    driver.traffic().sent.fetch_add(1, Ordering::Relaxed);
    down
}

/// The number by which a report is refused; other messages cannot be.
fn number(request: &wire::SessionUpRequest) -> Option<ReportId> {
    match &request.message {
        Some(Message::Report(report)) => report.report_id.map(ReportId),
        _ => None,
    }
}

/// The way in which a stream ends that is not answered for that.
fn end_of(fault: &Unanswered) -> StreamEnd {
    match fault {
        Unanswered::Lapsed | Unanswered::NotLeading(_) => StreamEnd::NotLeading,
        Unanswered::Refused(_) => StreamEnd::Fault,
        Unanswered::Broken | Unanswered::Ending | Unanswered::Late => StreamEnd::Closed,
    }
}

fn refuse(driver: &Driver, report: ReportId, refusal: Refusal) -> wire::SessionDown {
    let status = refused(driver, refusal);
    let refused = wire::Refused {
        report_id: report.0,
        code: Some(status.code().into()),
        reason: Some(status.message().to_owned()),
    };
    wire::SessionDown { message: Some(wire::session_down::Message::Refused(refused)) }
}
