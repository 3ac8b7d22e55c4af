//! One stream: a task that reads what comes up, and the body of the response, which takes what goes down out of the
//! outbox when the connection has room for it.
//!
//! The connection asks the body for more only while the other side's window is open. So a peer that does not read leaves
//! one message in its outbox and one refusal here, and nothing else waits.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::Stream;
use lessor_client::shell::clock;
use lessor_proto::message::{Down, Hello, HolderKind, Refusal, Up};
use lessor_proto::wire;
use lessor_proto::wire::session_up_request::Message;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tonic::{Status, Streaming};
use tracing::debug;

use super::driver::{Connected, DownReceiver, Driver, StreamKey, Unanswered};
use super::grpc::{refused, unanswered};

/// The time that somebody who has opened a stream may take to say who it is.
const HELLO: Duration = Duration::from_secs(10);

/// The messages that go down a stream. When this is dropped, the stream has ended.
#[derive(Debug)]
pub struct Downs {
    driver: Arc<Driver>,
    /// Absent of a stream that only says who leads.
    key: Option<StreamKey>,
    kind: HolderKind,
    outbox: DownReceiver,
    /// News of domains.
    news: DownReceiver,
    /// Reports that did not reach the node.
    refusals: mpsc::Receiver<Box<wire::SessionDown>>,
    end: Arc<End>,
    reader: Option<AbortHandle>,
}

/// With which fault a stream ends; without one, it ends in order.
type End = OnceLock<Status>;

/// Reads what comes up a stream.
struct Reader {
    driver: Arc<Driver>,
    key: StreamKey,
    kind: HolderKind,
    ups: Streaming<wire::SessionUpRequest>,
    refusals: mpsc::Sender<Box<wire::SessionDown>>,
}

/// Opens a stream: waits for the hello, connects, and begins to read.
pub(super) async fn open(
    driver: Arc<Driver>,
    mut ups: Streaming<wire::SessionUpRequest>,
) -> Result<Downs, Status> {
    let hello = hello(&driver, &mut ups).await?;
    let (sender, refusals) = mpsc::channel(1);
    let end = Arc::new(End::new());
    let Connected { key, outbox, news } = match driver.connect(&hello) {
        Ok(connected) => connected,
        Err(Unanswered::NotLeading(leader)) => {
            let (only, outbox) = mpsc::channel(1);
            only.try_send(Box::new(Down::Redirect(leader))).expect("it has room for one");
            let (_, news) = mpsc::channel(1);
            let (key, kind, reader) = (None, hello.kind, None);
            return Ok(Downs { driver, key, kind, outbox, news, refusals, end, reader });
        }
        Err(fault) => return Err(unanswered(fault)),
    };
    let reader = Reader { driver: driver.clone(), key, kind: hello.kind, ups, refusals: sender };
    let reader = Some(tokio::spawn(reader.run(end.clone())).abort_handle());
    let (key, kind) = (Some(key), hello.kind);
    Ok(Downs { driver, key, kind, outbox, news, refusals, end, reader })
}

async fn hello(driver: &Driver, ups: &mut Streaming<wire::SessionUpRequest>) -> Result<Hello, Status> {
    let first = timeout(HELLO, ups.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("no hello, which is the first message"))??;
    let first = first.ok_or_else(|| Status::invalid_argument("message: is missing; wanted a hello"))?;
    driver.traffic().received.fetch_add(1, Ordering::Relaxed);
    match Up::from_wire(first, driver.limits(), None).map_err(refused)? {
        Up::Hello(hello) => Ok(hello),
        other => unreachable!("checked to be a hello: {other:?}"),
    }
}

// === impl Reader ===

impl Reader {
    /// Until the other side has ended, or has broken the rules.
    async fn run(mut self, end: Arc<End>) {
        if let Err(status) = self.read().await {
            debug!(stream = %self.key, %status, "the stream is broken off");
            // There is no other end yet: only the reader gives one.
            let _ = end.set(status);
        }
        self.driver.disconnect(self.key);
    }

    async fn read(&mut self) -> Result<(), Status> {
        // Of what cannot be read its sender is told; nobody is left to be told that the connection broke.
        while let Some(request) = self.ups.message().await? {
            self.driver.traffic().received.fetch_add(1, Ordering::Relaxed);
            let report = number(&request);
            match (Up::from_wire(request, self.driver.limits(), Some(self.kind)), report) {
                (Ok(Up::Domains(report)), _) => self.driver.receive_domains(self.key, report),
                (Ok(up), _) => self.driver.receive(self.key, up).map_err(unanswered)?,
                (Err(refusal), Some(report)) => self.refuse(report, refusal).await,
                (Err(refusal), None) => return Err(refused(refusal)),
            }
        }
        Ok(())
    }

    /// Says so, and reads on when there is room for the next refusal: nobody can make refusals pile up.
    async fn refuse(&self, report: u64, refusal: Refusal) {
        debug!(stream = %self.key, report, %refusal, "refused");
        let status = refused(refusal);
        let refused = wire::Refused {
            report_id: report,
            code: Some(status.code().into()),
            reason: Some(status.message().to_owned()),
        };
        let message = wire::session_down::Message::Refused(refused);
        // Nobody listens when the stream has ended.
        let _ = self.refusals.send(Box::new(wire::SessionDown { message: Some(message) })).await;
    }
}

/// The number by which a report is refused; other messages cannot be.
fn number(request: &wire::SessionUpRequest) -> Option<u64> {
    match &request.message {
        Some(Message::Report(report)) => report.report_id,
        _ => None,
    }
}

// === impl Downs ===

impl Stream for Downs {
    type Item = Result<wire::SessionDown, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Poll::Ready(Some(refused)) = this.refusals.poll_recv(cx) {
            this.driver.traffic().refused.fetch_add(1, Ordering::Relaxed);
            return Poll::Ready(Some(Ok(this.count(*refused))));
        }
        if let (Poll::Ready(Some(news)), Some(key)) = (this.news.poll_recv(cx), this.key) {
            this.driver.domains_ready(key);
            return Poll::Ready(Some(Ok(this.count(news.to_wire(this.kind, clock::wall())))));
        }
        match ready!(this.outbox.poll_recv(cx)) {
            Some(down) => {
                if let Down::Refused { .. } = *down {
                    this.driver.traffic().refused.fetch_add(1, Ordering::Relaxed);
                }
                let next = this.key.map_or(Ok(()), |key| this.driver.ready(key)).map_err(unanswered);
                Poll::Ready(Some(next.map(|()| this.count(down.to_wire(this.kind, clock::wall())))))
            }
            // The fault is said once; after it, the stream is not asked again.
            None => Poll::Ready(this.end.get().cloned().map(Err)),
        }
    }
}

impl Downs {
    fn count(&self, down: wire::SessionDown) -> wire::SessionDown {
        self.driver.traffic().sent.fetch_add(1, Ordering::Relaxed);
        down
    }
}

impl Drop for Downs {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
        if let Some(key) = self.key {
            self.driver.disconnect(key);
        }
    }
}
