//! A setting made of files that are put in place anew while it is in use: all of them together, or none.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::pem::{PemSource, TlsFault};

/// The texts of all sources, in their order.
pub type Texts = [Arc<[u8]>];

type Make<T> = Box<dyn Fn(&[PemSource], &Texts) -> Result<T, TlsFault> + Send + Sync>;

/// A `T` made of the texts of some sources, and made again when these have changed.
pub struct Renewed<T> {
    sources: Vec<PemSource>,
    make: Make<T>,
    in_force: ArcSwap<T>,
    /// The texts that were looked at last, usable or not, and what was said of them.
    seen: Mutex<Seen>,
}

struct Seen {
    hash: u64,
    outcome: Result<(), TlsFault>,
}

// === impl Renewed ===

impl<T> Renewed<T> {
    /// Reads all sources, and makes a `T` of them.
    ///
    /// # Errors
    /// When one of them cannot be read, or `make` says that they cannot be used.
    pub fn load(
        sources: Vec<PemSource>,
        make: impl Fn(&[PemSource], &Texts) -> Result<T, TlsFault> + Send + Sync + 'static,
    ) -> Result<Renewed<T>, TlsFault> {
        let texts = read(&sources)?;
        let made = make(&sources, &texts)?;
        let seen = Mutex::new(Seen { hash: hash(&Ok(texts)), outcome: Ok(()) });
        Ok(Renewed { sources, make: Box::new(make), in_force: ArcSwap::from_pointee(made), seen })
    }

    /// The one in force.
    #[must_use]
    pub fn current(&self) -> Arc<T> {
        self.in_force.load_full()
    }

    /// The files among the sources.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.sources.iter().filter_map(PemSource::path)
    }

    /// Reads all sources again. Returns whether they have changed since they were looked at last; then the new ones are in
    /// force.
    ///
    /// # Errors
    /// When they have changed, and cannot be used: the earlier ones stay in force.
    pub fn refresh(&self) -> Result<bool, TlsFault> {
        // One at a time, so that the last to be read is the one in force.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = read(&self.sources);
        let hash = hash(&texts);
        if hash == seen.hash {
            return Ok(false);
        }
        let made = texts.and_then(|texts| (self.make)(&self.sources, &texts));
        *seen = Seen { hash, outcome: made.as_ref().map(|_| ()).map_err(Clone::clone) };
        self.in_force.store(Arc::new(made?));
        Ok(true)
    }

    /// The fault of the sources as they were looked at last, while earlier ones are in force.
    #[must_use]
    pub fn fault(&self) -> Option<TlsFault> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.outcome.clone().err()
    }
}

impl<T> fmt::Debug for Renewed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewed").field("sources", &self.sources).finish_non_exhaustive()
    }
}

fn read(sources: &[PemSource]) -> Result<Vec<Arc<[u8]>>, TlsFault> {
    sources.iter().map(PemSource::read).collect()
}

fn hash(texts: &Result<Vec<Arc<[u8]>>, TlsFault>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match texts {
        Ok(texts) => {
            for text in texts {
                hasher.write_usize(text.len());
                hasher.write(text);
            }
        }
        Err(fault) => hasher.write(fault.to_string().as_bytes()),
    }
    hasher.finish()
}
