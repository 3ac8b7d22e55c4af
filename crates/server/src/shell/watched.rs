//! Files that are looked at again when they change.
//!
//! Their directories are watched rather than the files themselves: editors and orchestrators do not write into a file but put
//! another in its place, or swap a link above it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::warn;

/// The interval at which files are compared in any case: a link may lead to another directory, and some file systems tell
/// nothing.
const POLL: Duration = Duration::from_secs(5);
/// For how long changed files have to stay as they are: they may be being written.
const SETTLE: Duration = Duration::from_millis(50);
/// The number of times that this is waited for, if they go on changing.
const PATIENCE: usize = 100;

/// Reads a file, and no more of it than makes sense.
type Read = fn(&Path) -> io::Result<Vec<u8>>;

/// Files, and what of them has been seen.
pub(super) struct WatchedFiles {
    paths: Vec<PathBuf>,
    read: Read,
    /// Absent before they have been looked at.
    seen: Option<Vec<FileContent>>,
    stirred: Arc<Notify>,
    /// Tells of what happens in the directories for as long as it is kept.
    _watcher: Option<RecommendedWatcher>,
}

/// The content of a file, as far as it takes to see that it has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileContent {
    Bytes { length: usize, hash: u64 },
    Unreadable(io::ErrorKind),
}

// === impl WatchedFiles ===

impl WatchedFiles {
    /// The files at `paths`, which need not exist yet. Nothing of them has been seen.
    pub(super) fn new(paths: Vec<PathBuf>, read: Read) -> WatchedFiles {
        let stirred = Arc::new(Notify::new());
        let watcher = watch(&paths, Arc::clone(&stirred))
            .inspect_err(|error| warn!(?paths, %error, poll = ?POLL, "files not watched"))
            .ok();
        WatchedFiles { paths, read, seen: None, stirred, _watcher: watcher }
    }

    /// Sets what has been seen of the files, in their order.
    pub(super) fn saw(&mut self, seen: Vec<FileContent>) {
        self.seen = Some(seen);
    }

    /// Looks at the files: what is in them has been seen.
    pub(super) async fn look(&mut self) {
        self.seen = Some(self.contents().await);
    }

    /// Waits until the files hold something that has not been seen and is not just being written, or until one of them can
    /// no longer be read, or for another reason. May be dropped at any time.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer.
    pub(super) async fn changed(&self) {
        let mut poll = ticks(POLL);
        loop {
            // The first tick comes at once: something may have happened since they were read.
            tokio::select! {
                () = self.stirred.notified() => {}
                _ = poll.tick() => {}
            }
            if self.have_settled_on_something_else().await {
                return;
            }
        }
    }

    async fn have_settled_on_something_else(&self) -> bool {
        let mut ticks = ticks(SETTLE);
        ticks.tick().await;
        let mut before = None;
        for _ in 0..PATIENCE {
            // Before the first look, too: much may be going on in the directories that is not about these files.
            ticks.tick().await;
            let later = Some(self.contents().await);
            if later == self.seen || later == before {
                before = later;
                break;
            }
            before = later;
        }
        before != self.seen
    }

    /// The contents of all files, read where it holds nobody up.
    async fn contents(&self) -> Vec<FileContent> {
        let (paths, read) = (self.paths.clone(), self.read);
        let look = move || paths.iter().map(|path| FileContent::of(&read(path))).collect();
        tokio::task::spawn_blocking(look).await.expect("reading files does not panic")
    }
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn watch(paths: &[PathBuf], stirred: Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading files makes events too; taking those for changes would never end.
        let only_read = event.is_ok_and(|event| match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) => true,
            _ => false,
        });
        if !only_read {
            stirred.notify_one();
        }
    })?;
    let parent = |path: &'_ PathBuf| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let directories: BTreeSet<PathBuf> = paths.iter().map(parent).collect();
    for directory in directories {
        watcher.watch(&directory, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

// === impl FileContent ===

impl FileContent {
    pub(super) fn of(bytes: &io::Result<Vec<u8>>) -> FileContent {
        match bytes {
            Ok(bytes) => {
                let mut hasher = DefaultHasher::new();
                hasher.write(bytes);
                FileContent::Bytes { length: bytes.len(), hash: hasher.finish() }
            }
            Err(error) => FileContent::Unreadable(error.kind()),
        }
    }
}
