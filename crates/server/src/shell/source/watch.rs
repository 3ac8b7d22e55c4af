//! A file that is read again when it changes.

use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::warn;

use super::{Document, LoadError, interpret, read};
use crate::repository::Repository;

/// The interval at which the file is compared in any case: a link may lead to another directory, and some file
/// systems tell nothing.
const POLL: Duration = Duration::from_secs(5);
/// For how long a changed file has to stay as it is: it may be being written.
const SETTLE: Duration = Duration::from_millis(50);
/// The number of times that this is waited for, if the file goes on changing.
const PATIENCE: usize = 100;

/// A file that holds a document, and what of it has been seen.
///
/// ```no_run
/// # use lessor_server::{repository::Repository, shell::source::{LoadError, Source}};
/// # async fn run(mut put_in_force: impl FnMut(Repository)) -> Result<(), LoadError> {
/// let mut source: Source<Repository> = Source::new("configs/quickstart.yaml");
/// put_in_force(source.load()?);
/// loop {
///     source.changed().await;
///     match source.load() {
///         Ok(repository) => put_in_force(repository),
///         Err(error) => eprintln!("the old configuration stays in force\n{error}"),
///     }
/// }
/// # }
/// ```
pub struct Source<D = Repository> {
    path: PathBuf,
    seen: Option<Content>,
    stirred: Arc<Notify>,
    /// Tells of what happens in the directory for as long as it is kept.
    _watcher: Option<RecommendedWatcher>,
    document: PhantomData<fn() -> D>,
}

/// The content of a file, as far as it takes to see that it has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    Bytes { length: usize, hash: u64 },
    Unreadable(io::ErrorKind),
}

// === impl Source ===

impl<D: Document> Source<D> {
    /// The file at `path`, which need not exist yet. Nothing of it has been seen.
    ///
    /// Its directory is watched rather than the file itself: editors and orchestrators do not write into a file but put
    /// another in its place, or swap a link above it.
    pub fn new(path: impl Into<PathBuf>) -> Source<D> {
        let path = path.into();
        let stirred = Arc::new(Notify::new());
        let watcher = watch(&path, Arc::clone(&stirred))
            .inspect_err(
                |error| warn!(path = %path.display(), %error, poll = ?POLL, "configuration not watched"),
            )
            .ok();
        Source { path, seen: None, stirred, _watcher: watcher, document: PhantomData }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file. From then on its content has been seen, faulty or not.
    ///
    /// # Errors
    /// When it cannot be read or is faulty; what was loaded before should then stay in force.
    pub fn load(&mut self) -> Result<D, LoadError> {
        let bytes = read(&self.path);
        self.seen = Some(Content::of(&bytes));
        interpret(&self.path, bytes)
    }

    /// Waits until the file holds something that has not been seen and is not just being written, or until it can no
    /// longer be read, or for another reason. May be dropped at any time.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer.
    pub async fn changed(&self) {
        let mut poll = ticks(POLL);
        loop {
            // The first tick comes at once: something may have happened since the file was read.
            tokio::select! {
                () = self.stirred.notified() => {}
                _ = poll.tick() => {}
            }
            if self.has_settled_on_something_else().await {
                return;
            }
        }
    }

    async fn has_settled_on_something_else(&self) -> bool {
        let mut ticks = ticks(SETTLE);
        ticks.tick().await;
        let mut content = None;
        for _ in 0..PATIENCE {
            // Before the first look, too: much may be going on in the directory that is not about this file.
            ticks.tick().await;
            let later = Some(self.look().await);
            if later == self.seen || later == content {
                content = later;
                break;
            }
            content = later;
        }
        content != self.seen
    }

    /// The content of the file now, read where it holds nobody up.
    async fn look(&self) -> Content {
        let path = self.path.clone();
        let looking = tokio::task::spawn_blocking(move || Content::of(&read(&path)));
        looking.await.expect("reading a file does not panic")
    }
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn watch(path: &Path, stirred: Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading the file makes events too; taking those for changes would never end.
        let only_read = event.is_ok_and(|event| match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) => true,
            _ => false,
        });
        if !only_read {
            stirred.notify_one();
        }
    })?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    watcher.watch(directory, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

// === impl Content ===

impl Content {
    fn of(bytes: &io::Result<Vec<u8>>) -> Content {
        match bytes {
            Ok(bytes) => {
                let mut hasher = DefaultHasher::new();
                hasher.write(bytes);
                Content::Bytes { length: bytes.len(), hash: hasher.finish() }
            }
            Err(error) => Content::Unreadable(error.kind()),
        }
    }
}
