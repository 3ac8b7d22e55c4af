//! A stream to a server: what is said goes into a bounded queue, what is heard comes out of another.
//!
//! Views are large, and nobody's lease waits for them: the next part of one goes into the queue when the connection has taken
//! everything before it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lessor_proto::message::{Down, Hello, HolderKind, Up};
use lessor_proto::wire::{SessionDown, SessionUpRequest};
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::timeout;
use tonic::Streaming;

use super::bearer::Server;
use super::clock;
use super::status::stream_failure;
use crate::session::Failure;

/// Messages said that have not left. A stream begins with all that is held, 500 resources in a message, so that those of half a
/// million may wait; when more do, the other end has stopped reading.
const UNSENT: usize = 1_024;
/// Messages heard that have not been looked at. Beyond that the server is held back.
const UNREAD: usize = 16;
/// Parts of views that wait. Beyond that they are lost, and whoever looks gives up.
const MOST_VIEWS: usize = 256;
/// The time that a stream that was dropped may take to send what was said on it.
const LINGER: Duration = Duration::from_secs(2);

/// One end of a stream. Dropping it ends the stream, after what was said on it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u64,
    kind: HolderKind,
    unsent: mpsc::Sender<SessionUpRequest>,
    /// The parts of views that wait until nothing else does.
    views: VecDeque<SessionUpRequest>,
    /// Whether the connection has taken all that was said.
    is_drained: Arc<Notify>,
    heard: mpsc::Receiver<Result<Option<Down>, Failure>>,
}

/// The messages of a stream as the connection takes them.
struct Unsent {
    unsent: mpsc::Receiver<SessionUpRequest>,
    is_drained: Arc<Notify>,
}

// === impl Stream ===

impl Stream {
    /// Opens a stream in the background, and says hello on it.
    pub(super) fn open(id: u64, client: Result<Server, Failure>, hello: Hello, patience: Duration) -> Stream {
        let (unsent, to_send) = mpsc::channel(UNSENT);
        let (tell, heard) = mpsc::channel(UNREAD);
        let is_drained = Arc::new(Notify::new());
        let to_send = Unsent { unsent: to_send, is_drained: Arc::clone(&is_drained) };
        let mut stream = Stream { id, kind: hello.kind, unsent, views: VecDeque::new(), is_drained, heard };
        // There is room for the first.
        let _ = stream.say(&Up::Hello(hello));
        tokio::spawn(async move {
            if let Err(failure) = run(client, to_send, &tell, patience).await {
                // Whoever has dropped the stream does not care how it ended.
                let _ = tell.send(Err(failure)).await;
            }
        });
        stream
    }

    /// Says something, after everything said before; a part of a view when nothing else is to be said. How a stream ended that
    /// takes nothing any more is still to be heard.
    pub(super) fn say(&mut self, up: &Up) -> Result<(), Failure> {
        if let Up::View(_) = up {
            if self.views.len() < MOST_VIEWS {
                self.views.push_back(up.to_wire(self.kind));
            }
            return Ok(());
        }
        match self.unsent.try_send(up.to_wire(self.kind)) {
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(()),
            Err(TrySendError::Full(_)) => {
                Err(Failure::Unreachable(format!("it does not read; {UNSENT} messages wait for it")))
            }
        }
    }

    /// The next thing heard, or how the stream ended; nothing of a message of a kind that is not known. Nothing is lost when the
    /// future is dropped.
    pub(super) async fn hear(&mut self) -> Result<Option<Down>, Failure> {
        let ended = || Err(Failure::Unreachable("the stream has ended".to_owned()));
        loop {
            tokio::select! {
                heard = self.heard.recv() => return heard.unwrap_or_else(ended),
                () = self.is_drained.notified(), if !self.views.is_empty() => self.show(),
            }
        }
    }

    /// Says the next part of a view, if nothing waits before it.
    fn show(&mut self) {
        if self.unsent.capacity() < self.unsent.max_capacity() {
            return;
        }
        if let Some(view) = self.views.pop_front() {
            // There is room, unless the stream has ended.
            let _ = self.unsent.try_send(view);
        }
    }
}

// === impl Unsent ===

impl tokio_stream::Stream for Unsent {
    type Item = SessionUpRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionUpRequest>> {
        let next = self.unsent.poll_recv(cx);
        if next.is_pending() {
            self.is_drained.notify_one();
        }
        next
    }
}

/// Until the stream ends or is dropped.
async fn run(
    client: Result<Server, Failure>,
    to_send: Unsent,
    tell: &mpsc::Sender<Result<Option<Down>, Failure>>,
    patience: Duration,
) -> Result<(), Failure> {
    let fault = |status: &tonic::Status| stream_failure(status, patience);
    let opened = client?.session(to_send).await;
    let mut downs = opened.map_err(|status| fault(&status))?.into_inner();
    loop {
        let down = tokio::select! {
            down = downs.message() => down.map_err(|status| fault(&status))?,
            () = tell.closed() => break,
        };
        let down = down.ok_or_else(|| Failure::Unreachable("the server has ended the stream".to_owned()))?;
        let down = Down::from_wire(down, clock::wall());
        let down = down.map_err(|malformed| Failure::Malformed(malformed.to_string()))?;
        if tell.send(Ok(down)).await.is_err() {
            break;
        }
    }
    linger(downs).await;
    Ok(())
}

/// To let go of a stream at once would take back what has not left yet: the server is waited for, which ends its side
/// when it has read the end of ours.
async fn linger(mut downs: Streaming<SessionDown>) {
    let drain = async { while let Ok(Some(_)) = downs.message().await {} };
    let _ = timeout(LINGER, drain).await;
}
