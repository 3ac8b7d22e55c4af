//! Files that a server follows: read again when they change, when a signal says so, and when an operator asks, who is told what
//! came of it.

use std::convert::Infallible;

use lessor_server::shell::ReadFile;
use lessor_server::shell::source::{Document, LoadError, Source};
use tokio::sync::{mpsc, oneshot};

/// A wish that a file be read again, and whom to tell what came of that, if anybody waits.
type Wish = Option<oneshot::Sender<Outcome>>;

/// The version that is in force now, or why the one before stays; absent where nobody counts them.
pub(super) type Outcome = Result<Option<u64>, String>;

/// A file that is followed, for whoever wants it to be read again.
#[derive(Debug)]
pub(super) struct FollowedFile {
    what: &'static str,
    file: String,
    ask: mpsc::Sender<Wish>,
}

/// A follower of a file.
pub(super) struct Follower<D> {
    /// Absent while it is read.
    source: Option<Source<D>>,
    wishes: mpsc::Receiver<Wish>,
}

/// Wishes that wait while a file is being read.
const WAITING: usize = 16;

// === impl FollowedFile ===

impl FollowedFile {
    /// A file of that kind, and its follower.
    pub(super) fn new<D: Document>(what: &'static str, source: Source<D>) -> (FollowedFile, Follower<D>) {
        let (ask, wishes) = mpsc::channel(WAITING);
        let file = source.path().display().to_string();
        (FollowedFile { what, file, ask }, Follower { source: Some(source), wishes })
    }

    /// Lets it be read again soon.
    pub(super) fn hint(&self) {
        // Where there is no room it is about to be read anyway.
        let _ = self.ask.try_send(None);
    }

    /// Reads it again, and waits for what comes of that.
    pub(super) async fn read_again(&self) -> ReadFile {
        let (tell, told) = oneshot::channel();
        let ending = || Err("the server is ending".to_owned());
        let outcome = match self.ask.send(Some(tell)).await {
            Ok(()) => told.await.unwrap_or_else(|_| ending()),
            Err(_) => ending(),
        };
        ReadFile { what: self.what, file: self.file.clone(), outcome }
    }
}

// === impl Follower ===

impl<D: Document + Send + 'static> Follower<D> {
    /// Puts the document in force whenever it has changed, or somebody asks for that.
    pub(super) async fn follow(
        &mut self,
        put_in_force: impl Fn(Result<D, LoadError>) -> Outcome,
    ) -> Infallible {
        loop {
            let Some(mut source) = self.source.take() else { return std::future::pending().await };
            let tell = tokio::select! {
                Some(wish) = self.wishes.recv() => wish,
                () = source.changed() => None,
            };
            // Where it holds nobody up: a disk may be slow.
            let reading = tokio::task::spawn_blocking(move || {
                let loaded = source.load();
                (source, loaded)
            });
            let (same, loaded) = reading.await.expect("reading a file does not panic");
            self.source = Some(same);
            let outcome = put_in_force(loaded);
            if let Some(tell) = tell {
                // Nobody need wait for it.
                let _ = tell.send(outcome);
            }
        }
    }
}
