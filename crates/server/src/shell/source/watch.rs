//! A file that is read again when it changes.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use super::{Document, LoadError, interpret, read};
use crate::repository::Repository;
use crate::shell::watched::{FileContent, WatchedFiles};

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
    watched: WatchedFiles,
    document: PhantomData<fn() -> D>,
}

// === impl Source ===

impl<D: Document> Source<D> {
    /// The file at `path`, which need not exist yet. Nothing of it has been seen.
    pub fn new(path: impl Into<PathBuf>) -> Source<D> {
        let path = path.into();
        let watched = WatchedFiles::new(vec![path.clone()], read);
        Source { path, watched, document: PhantomData }
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
        self.watched.saw(vec![FileContent::of(&bytes)]);
        interpret(&self.path, bytes)
    }

    /// Waits until the file holds something that has not been seen and is not just being written, or until it can no
    /// longer be read, or for another reason. May be dropped at any time.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer.
    pub async fn changed(&self) {
        self.watched.changed().await;
    }
}
