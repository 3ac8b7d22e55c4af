//! The state directory of a server that is alone: what it writes there before it counts, and what it finds when it starts.
//!
//! ```text
//! DIR/lock       held by the process that uses the directory, for as long as it lives
//! DIR/state      the record, see [`election::state`](crate::election::state)
//! DIR/token.key  with what tokens are sealed, where no other key is given
//! ```
//!
//! The holder of the lock knows that nobody who held it before acts any more. If the clock has gone on since the record
//! was written, what its holders show is the whole truth at once. After another start of the machine, or where the
//! directory was brought from another machine, that is not certain, and all of it is waited for.
//!
//! A record that cannot be used is said to be so, and the server begins as one that has none. It never leaves a record
//! behind that it does not keep up: a later start would believe that.

pub(in crate::shell) mod disk;

use lessor_proto::Epoch;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lessor_client::internals::clock;
use tokio::sync::watch;
use tracing::{error, info, warn};

use self::disk::Disk;
use super::driver::{Driver, Unanswered};
use super::{lock_file, random};
use crate::config::NodeConfig;
use crate::election::files::replace;
use crate::election::state::{BadState, Clock, FILE_NAME, Growth, State};
use crate::record::{Record, RecordChange};
use crate::token::{Key, TokenKeys};

/// A state directory that this process has to itself.
#[derive(Debug)]
pub struct StateDirectory {
    /// Held for as long as the process lives.
    _lock: File,
    directory: PathBuf,
    state: State,
    growth: Growth,
    keys: TokenKeys,
}

/// A fault of a state directory.
#[derive(Debug, thiserror::Error)]
pub enum StateFault {
    /// Another process uses it.
    #[error("state directory {}: another process holds {}", .directory.display(), .lock.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// The file that is locked.
        lock: PathBuf,
    },
    /// A file makes no sense.
    #[error("state file {}: {source}", .path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: BadState,
    },
    /// The key for tokens makes no sense.
    #[error("token key {}: wanted 64 hexadecimal digits", .path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
    },
    /// Something cannot be read or written.
    #[error("state directory: cannot {what} {}: {source}", .path.display())]
    Io {
        /// The operation that was tried.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is a record that can neither be kept up nor removed.
    #[error("{fault}; and what stands in {} would be out of date: make it writable, or remove it", .path.display())]
    Stale {
        /// The fault.
        fault: Box<StateFault>,
        /// The file.
        path: PathBuf,
    },
}

/// The outcome of a start.
#[derive(Debug)]
pub(super) struct Opened {
    /// The directory, and what the server before has left; nothing if it cannot be used.
    pub(super) directory: Option<(StateDirectory, Record)>,
    /// The fault, if there is one.
    pub(super) fault: Option<StateFault>,
}

// === impl StateDirectory ===

impl StateDirectory {
    /// Takes the directory of the node with these settings, and begins an epoch in it.
    ///
    /// # Errors
    /// When another process uses it, or when it holds a record that cannot be kept up, or one of a later version.
    pub(super) fn open(directory: &Path, config: &NodeConfig) -> Result<Opened, StateFault> {
        let file = directory.join(FILE_NAME);
        let lock = match lock(directory) {
            Ok(lock) => lock,
            Err(fault @ StateFault::Locked { .. }) => return Err(fault),
            Err(fault) => return without(fault, &file),
        };
        let date = u64::try_from(clock::wall().since_epoch.as_millis()).unwrap_or(u64::MAX);
        let (found, fault) = match find(&file, &config.name) {
            Ok(found) => (found, None),
            // It is somebody else's, who will want it as it is.
            Err(fault @ StateFault::Bad { source: BadState::Foreign { .. }, .. }) => {
                return Ok(Opened { directory: None, fault: Some(fault) });
            }
            // To keep nothing up there would leave a record behind that is out of date, and to write there would destroy it.
            Err(fault @ StateFault::Bad { .. }) if fault.is_of_later() => return Err(fault),
            Err(fault) => (None, Some(fault)),
        };
        let (mut state, record) = match found {
            Some(found) => found,
            None => State::of_nobody(&config.name, line()),
        };
        let earlier = match config.parent {
            Some(_) => Vec::new(),
            None => record.to_tell(clock::now(), config.drift),
        };
        state.succeed(date, earlier);
        let directory = directory.to_owned();
        let keys = match keys(&directory) {
            Ok(keys) => keys,
            Err(fault) => return without(fault, &file),
        };
        let mut opened = StateDirectory { _lock: lock, directory, state, growth: Growth::default(), keys };
        match opened.write(None) {
            Ok(()) => Ok(Opened { directory: Some((opened, record)), fault }),
            Err(fault) => without(fault, &file),
        }
    }

    /// The number of the epoch that began with this start.
    pub(super) fn epoch(&self) -> Epoch {
        self.state.epoch()
    }

    /// The line of succession in which the epochs of this directory stand.
    pub(super) fn line(&self) -> u64 {
        self.state.line()
    }

    /// With what tokens are sealed, where no other key is given.
    pub(super) fn keys(&self) -> &TokenKeys {
        &self.keys
    }

    /// Writes the state, which has taken up `change`; absent: as a whole.
    fn write(&mut self, change: Option<&RecordChange>) -> Result<(), StateFault> {
        let write = self.growth.next(&self.state, change, &machine());
        let written = write.put(&mut Disk, &self.directory);
        self.growth.wrote(&write, written.is_ok());
        written.map_err(|source| fault("write", &self.directory.join(FILE_NAME))(source))
    }
}

// === impl StateFault ===

impl StateFault {
    fn is_of_later(&self) -> bool {
        matches!(self, StateFault::Bad { source, .. } if source.is_later())
    }
}

/// Writes what the node wants to be written for its successors, until stopped.
pub(super) async fn keep(
    driver: Arc<Driver>,
    mut directory: StateDirectory,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(mut writes) = driver.record_writes() else { return };
    loop {
        let (epoch, write) = tokio::select! {
            _ = stopped.wait_for(|&stop| stop) => break,
            Some(write) = writes.recv() => write,
            else => break,
        };
        let ticket = write.ticket;
        let done;
        (directory, done) = written(&driver, directory, write.change, false).await;
        if driver.on_record(epoch, ticket, done) == Err(Unanswered::Broken) {
            warn!("nothing is remembered any more: the node is broken");
            return;
        }
    }
    if let Ok(Some((_, write))) = driver.resign() {
        let (_, done) = written(&driver, directory, write.change, write.closed).await;
        info!(done, "state closed");
    }
}

async fn written(
    driver: &Driver,
    mut directory: StateDirectory,
    change: RecordChange,
    closed: bool,
) -> (StateDirectory, bool) {
    let writing = tokio::task::spawn_blocking(move || {
        directory.state.apply(&change);
        if closed {
            directory.state.close();
        }
        let outcome = directory.write((!closed).then_some(&change));
        (directory, outcome)
    });
    let (directory, outcome) = writing.await.expect("writing a file does not panic");
    let fault = outcome.err().map(|fault| fault.to_string());
    if driver.hear_of_state(fault.as_deref()) {
        match &fault {
            Some(fault) => {
                error!(%fault, "state directory fails: nothing is granted beyond what stands in it");
            }
            None => info!("state directory serves"),
        }
    }
    (directory, fault.is_none())
}

/// The server begins as one without a state directory; not if a record stays behind that it does not keep up.
fn without(fault: StateFault, file: &Path) -> Result<Opened, StateFault> {
    let emptied = match OpenOptions::new().write(true).truncate(true).open(file) {
        Ok(file) => file.sync_all(),
        // Nothing is in the way of it where even the directory is missing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(()),
        Err(error) => Err(error),
    };
    match emptied {
        Ok(()) => Ok(Opened { directory: None, fault: Some(fault) }),
        Err(_) => Err(StateFault::Stale { fault: Box::new(fault), path: file.to_owned() }),
    }
}

fn lock(directory: &Path) -> Result<File, StateFault> {
    std::fs::create_dir_all(directory).map_err(fault("make", directory))?;
    let path = directory.join("lock");
    match lock_file::lock(&path) {
        Ok(file) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(StateFault::Locked { directory: directory.to_owned(), lock: path })
        }
        Err(TryLockError::Error(source)) => Err(fault("lock", &path)(source)),
    }
}

/// The state that was left, and what it means now; nothing if there is none.
fn find(path: &Path, node: &str) -> Result<Option<(State, Record)>, StateFault> {
    let bad = |source: BadState| StateFault::Bad { path: path.to_owned(), source };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault("read", path)(error)),
    };
    State::left(&bytes, node, &machine()).map(Some).map_err(bad)
}

/// A line of succession that nobody else stands in.
fn line() -> u64 {
    random::number()
}

/// The key for tokens; one is drawn if there is none.
fn keys(directory: &Path) -> Result<TokenKeys, StateFault> {
    let path = directory.join("token.key");
    match std::fs::read_to_string(&path) {
        Ok(text) => match blake3::Hash::from_hex(text.trim()) {
            Ok(bytes) => Ok(TokenKeys::new(Key::new(*bytes.as_bytes()))),
            Err(_) => Err(StateFault::BadKey { path }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let random = Path::new("/dev/urandom");
            let mut bytes = [0; 32];
            let drawn = File::open(random).and_then(|mut file| file.read_exact(&mut bytes));
            drawn.map_err(fault("read", random))?;
            let text = format!("{}\n", blake3::Hash::from_bytes(bytes).to_hex());
            replace(&mut Disk, directory, "token.key", text.as_bytes()).map_err(fault("write", &path))?;
            Ok(TokenKeys::new(Key::new(bytes)))
        }
        Err(error) => Err(fault("read", &path)(error)),
    }
}

/// The clock that leases are counted on, and since when it has gone on.
fn machine() -> Clock {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let clocks = std::fs::read_link("/proc/self/ns/time").ok();
    let boot = boot.zip(clocks).map(|(boot, clocks)| format!("{} {}", boot.trim(), clocks.display()));
    Clock { boot, at: clock::now() }
}

fn fault(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StateFault {
    move |source| StateFault::Io { what, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
