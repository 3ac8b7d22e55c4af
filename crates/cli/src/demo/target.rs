//! The target: an HTTP server that takes so many requests a second, and counts.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use lessor_client::internals::clock;
use lessor_proto::Time;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A target that runs.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    judge: Arc<Mutex<Judge>>,
    task: JoinHandle<()>,
}

/// The target's account of the requests that it saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Judge {
    limit: usize,
    /// When those of the last second came, refused ones included.
    last_second: VecDeque<Time>,
    /// The most requests in any second, wherever it begins.
    pub(super) highest: usize,
    pub(super) seen: u64,
    pub(super) refused: u64,
}

const SECOND: Duration = Duration::from_secs(1);

// === impl Target ===

impl Target {
    pub(super) async fn start(limit: u32) -> anyhow::Result<Target> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let judge = Arc::new(Mutex::new(Judge { limit: limit as usize, ..Judge::default() }));
        let router = Router::new().route("/", get(work)).with_state(Arc::clone(&judge));
        let task = tokio::spawn(async move {
            // It ends with the demo.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Target { address, judge, task })
    }

    /// The account of the requests up to now.
    pub(super) fn verdict(&self) -> Judge {
        let mut judge = lock(&self.judge);
        judge.forget(clock::now());
        judge.clone()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn work(State(judge): State<Arc<Mutex<Judge>>>) -> StatusCode {
    match lock(&judge).takes(clock::now()) {
        true => StatusCode::OK,
        false => StatusCode::TOO_MANY_REQUESTS,
    }
}

fn lock(judge: &Mutex<Judge>) -> MutexGuard<'_, Judge> {
    judge.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Judge ===

impl Judge {
    /// Requests in the second up to the last look.
    pub(super) fn rate(&self) -> usize {
        self.last_second.len()
    }

    fn takes(&mut self, now: Time) -> bool {
        self.forget(now);
        self.last_second.push_back(now);
        self.highest = self.highest.max(self.last_second.len());
        self.seen += 1;
        let takes = self.last_second.len() <= self.limit;
        self.refused += u64::from(!takes);
        takes
    }

    fn forget(&mut self, now: Time) {
        while self.last_second.front().is_some_and(|&came| came + SECOND <= now) {
            self.last_second.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_may_begin_anywhere() {
        let mut judge = Judge { limit: 2, ..Judge::default() };
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        assert!(judge.takes(at(900)) && judge.takes(at(950)));
        assert!(!judge.takes(at(1_100)), "the third in one second, though not in one second of the clock");
        assert!(judge.takes(at(1_960)));
        assert_eq!((judge.highest, judge.seen, judge.refused), (3, 4, 1));
    }
}
