//! Callers who ask an agent all the time, while it is replaced.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

use super::ASKED;
use crate::house::eventually;

/// Callers, each with a connection of its own for every request.
pub(super) struct Callers {
    counts: Arc<CallerCounts>,
    asking: JoinSet<()>,
}

/// The counts of what callers have heard.
#[derive(Default)]
struct CallerCounts {
    has_ended: AtomicBool,
    asked: AtomicUsize,
    passed: AtomicUsize,
    /// The requests that had passed when the first one was refused.
    before_refusal: OnceLock<usize>,
    cut_off: AtomicUsize,
}

/// The number of callers.
pub(super) const CALLERS: usize = 8;

// === impl Callers ===

impl Callers {
    /// Callers at an address, who ask once more where a connection is cut off, until they have tried so often.
    pub(super) fn begin(address: &str, tries: usize) -> Callers {
        let (counts, mut asking) = (Arc::<CallerCounts>::default(), JoinSet::new());
        for _ in 0..CALLERS {
            asking.spawn(Arc::clone(&counts).ask(address.to_owned(), tries));
        }
        Callers { counts, asking }
    }

    /// Waits until so many more have been answered.
    pub(super) async fn answered(&self, more: usize) {
        self.answered_within(usize::MAX, more).await;
    }

    /// Waits until so many more have been answered, or all of a limit has passed.
    pub(super) async fn answered_within(&self, limit: usize, more: usize) {
        let asked = || self.counts.asked.load(Ordering::Relaxed);
        let wanted = asked() + more;
        eventually("they are answered", async || asked() >= wanted || self.passed() >= limit).await;
    }

    /// The requests that have passed.
    pub(super) fn passed(&self) -> usize {
        self.counts.passed.load(Ordering::Relaxed)
    }

    /// The requests that had passed when the first one was refused, if one was.
    pub(super) fn before_refusal(&self) -> Option<usize> {
        self.counts.before_refusal.get().copied()
    }

    /// The connections that were closed unanswered.
    pub(super) fn cut_off(&self) -> usize {
        self.counts.cut_off.load(Ordering::Relaxed)
    }

    /// Waits until all of a limit has passed. No more may pass.
    pub(super) async fn use_up(&self, limit: usize) {
        eventually("all of the limit is used", async || {
            assert!(self.passed() <= limit, "{} of {limit}", self.passed());
            self.passed() == limit
        })
        .await;
    }

    /// Waits until each has its last answer.
    pub(super) async fn end(&mut self) {
        self.counts.has_ended.store(true, Ordering::Relaxed);
        while let Some(ended) = self.asking.join_next().await {
            ended.unwrap();
        }
    }
}

// === impl CallerCounts ===

impl CallerCounts {
    async fn ask(self: Arc<CallerCounts>, address: String, tries: usize) {
        while !self.has_ended.load(Ordering::Relaxed) {
            let text = self.answer(&address, tries).await;
            match text.get(..12) {
                Some("HTTP/1.1 200") => drop(self.passed.fetch_add(1, Ordering::Relaxed)),
                Some("HTTP/1.1 429" | "HTTP/1.1 503") => {
                    self.before_refusal.get_or_init(|| self.passed.load(Ordering::Relaxed));
                }
                _ => panic!("no answer: {text:?}"),
            }
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An answer. No connection may be refused, and none cut off but before the last try.
    async fn answer(&self, address: &str, tries: usize) -> String {
        for _ in 1..tries {
            match request(address).await {
                Ok(text) => return text,
                Err(fault) if is_cut_off(&fault) => self.cut_off.fetch_add(1, Ordering::Relaxed),
                Err(fault) => panic!("nobody is refused: {fault}"),
            };
        }
        request(address).await.expect("nobody is refused or cut off")
    }
}

/// Whether a connection was closed that had been taken.
fn is_cut_off(fault: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(fault.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// The answer to a check over a connection of its own.
async fn request(address: &str) -> io::Result<String> {
    match address.strip_prefix("unix:") {
        Some(path) => exchange(UnixStream::connect(path).await?).await,
        None => exchange(TcpStream::connect(address).await?).await,
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<String> {
    let request = format!("GET /check/edge HTTP/1.1\r\nhost: here\r\nconnection: close\r\n{ASKED}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    match stream.read_to_string(&mut text).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(text),
    }
}
