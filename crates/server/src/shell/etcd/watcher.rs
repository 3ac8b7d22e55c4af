//! A watch on one key, or on all that begin so, from its opening to its end. Whoever wants more opens another.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{EventType, WatchOptions, WatchResponse, WatchStream};

use super::calls::{failure, stored};
use super::endpoints::Endpoint;
use crate::election::call::{Failure, Watched};

/// A watch on one key, or on all that begin so.
pub(super) struct Watcher {
    pub(super) id: u64,
    endpoint: Arc<Endpoint>,
    state: WatcherState,
    /// The events that were seen and not yet taken.
    seen: VecDeque<Watched>,
}

enum WatcherState {
    Opening(Pin<Box<dyn Future<Output = Result<WatchStream, Failure>> + Send>>),
    Open(Box<WatchStream>),
    Ended,
}

// === impl Watcher ===

impl Watcher {
    /// Watches a key from a revision on. Etcd has so much time to say that it does.
    pub(super) fn new(
        id: u64,
        endpoint: Arc<Endpoint>,
        key: String,
        from_revision: u64,
        timeout: Duration,
    ) -> Watcher {
        Watcher::with(id, endpoint, key, from(from_revision), timeout)
    }

    /// The same of all keys that begin with `prefix`.
    pub(super) fn of_prefix(
        id: u64,
        endpoint: Arc<Endpoint>,
        prefix: String,
        from_revision: u64,
        timeout: Duration,
    ) -> Watcher {
        Watcher::with(id, endpoint, prefix, from(from_revision).with_prefix(), timeout)
    }

    fn with(
        id: u64,
        endpoint: Arc<Endpoint>,
        key: String,
        options: WatchOptions,
        timeout: Duration,
    ) -> Watcher {
        let opened = open(Arc::clone(&endpoint), key, options);
        let opening =
            async move { tokio::time::timeout(timeout, opened).await.unwrap_or(Err(Failure::Timeout)) };
        Watcher { id, endpoint, state: WatcherState::Opening(Box::pin(opening)), seen: VecDeque::new() }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The next thing seen; never, after the end. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Watched {
        loop {
            if let Some(watched) = self.seen.pop_front() {
                return watched;
            }
            match &mut self.state {
                WatcherState::Opening(opening) => match opening.await {
                    Ok(stream) => self.state = WatcherState::Open(Box::new(stream)),
                    Err(failure) => self.end(Watched::Ended(failure)),
                },
                WatcherState::Open(stream) => match stream.message().await {
                    Ok(Some(response)) => self.on_response(&response),
                    Ok(None) => {
                        let why = format!("{}: the watch has ended", self.endpoint.url());
                        self.end(Watched::Ended(Failure::Unavailable(why)));
                    }
                    Err(error) => self.end(Watched::Ended(failure(&error, &self.endpoint))),
                },
                WatcherState::Ended => std::future::pending().await,
            }
        }
    }

    fn on_response(&mut self, response: &WatchResponse) {
        for event in response.events() {
            match (event.event_type(), event.kv()) {
                (EventType::Put, Some(kv)) => self.seen.push_back(Watched::Put(stored(kv))),
                (EventType::Put, None) => {}
                (EventType::Delete, _) => self.seen.push_back(Watched::Deleted),
            }
        }
        if response.canceled() {
            let why = format!("{}: the watch was ended: {}", self.endpoint.url(), response.cancel_reason());
            self.end(match response.compact_revision() {
                0 => Watched::Ended(Failure::Unavailable(why)),
                _ => Watched::Compacted,
            });
        }
    }

    fn end(&mut self, watched: Watched) {
        self.seen.push_back(watched);
        self.state = WatcherState::Ended;
    }
}

/// The stream, when etcd has said that it watches.
async fn open(endpoint: Arc<Endpoint>, key: String, options: WatchOptions) -> Result<WatchStream, Failure> {
    let opened = async {
        let mut stream = endpoint.client().await?.watch(key, Some(options)).await?;
        let first = stream.message().await?;
        Ok((stream, first.is_some_and(|first| first.created())))
    };
    match opened.await {
        Ok((stream, true)) => Ok(stream),
        Ok((_, false)) => Err(Failure::Unavailable(format!("{}: the watch was not opened", endpoint.url()))),
        Err(error) => Err(failure(&error, &endpoint)),
    }
}

fn from(revision: u64) -> WatchOptions {
    WatchOptions::new().with_start_revision(i64::try_from(revision).unwrap_or(i64::MAX))
}
