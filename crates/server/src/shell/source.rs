//! The source of a document: a YAML file, read again whenever it changes. It holds a repository, Doorman's or ours, or the rules
//! of access (`access.rs` beside this shows one). This is a repository:
//!
//! ```yaml
//! version: 7                         # of this file; a leader with an earlier one than was in force grants nothing
//! resources:
//!   - identifier_glob: "db-*"        # a resource's own name comes before every glob, then globs in order
//!     capacity: 500
//!     safe_capacity: 5               # when cut off, with nothing reserved; absent: stop; -1: as much as the last lease gave
//!     description: "orders database, queries per second"
//!     kind: rate                     # rate (default) or gauge: things in flight, whole units
//!     # rotate: fair                 # gauges only, when there are too few units: fair (default), sticky or none
//!     # quantum: 5s                  # gauges only: how long a turn lasts, from 100ms; absent: refresh_interval
//!     # window: 1m                   # gauges only: capacity is a limit on the uses in any window of this length, for all together
//!     # workers: in_name             # gauges only: of NAME|w:2|KEY there are 2, and capacity is the most that a name may say
//!     legacy: expire                 # clients without incarnation: deny, expire (default), sticky
//!     legacy_hold: 1h                # with sticky: how long their leases count at most
//!     legacy_max_fraction: 1         # how much of the capacity they may have together
//!     spare_to_nodes: 0.9            # rates only: how much of what nobody wants is lent to nodes below and clients
//!     safe_fraction: 0.1             # rates only: how much is reserved for clients that reach no server; absent: nothing
//!     safe_lease: 1h                 # how long they may go on with it; not shorter than lease_length
//!     burst: 50ms                    # rates only: what a client may save up, as the time in which its lease brings it
//!     small_leases: request          # rates only: of a lease below a unit in the burst units are asked for; or save: one is saved up
//!     most_priority: 3               # a greater priority counts as that; absent: any counts
//!     most_clients: 10000            # a node below stands for no more than that; absent: for any number
//!     enforce: true                  # or false: clients let everything pass and count what they would refuse; or the part that enforces
//!     # beside: {capacity: 400}      # a second limit that is tried: decided and counted as well, and kept to by nobody
//!     algorithm:
//!       kind: FAIR_SHARE             # NO_ALGORITHM, STATIC, PROPORTIONAL_SHARE, FAIR_SHARE; or 0 to 3
//!       lease_length: 60             # seconds
//!       refresh_interval: 5          # seconds, not longer than lease_length
//!       learning_mode_duration: 60   # seconds; absent: lease_length; 0: no learning
//!     domains:                       # rates only: what a tenant may use of the lease of its client
//!       scope: shared                # clients tell each other; or client: each counts for itself
//!       unheard: grant               # while the server is not heard of: grant the least to whom others use as well; or refuse
//!       enforce: true                # or false: what policies refuse is granted, and counted
//!       default:                     # one policy, or a list of them of which all must hold
//!         hard_limit: 80             # hits in any second, by one domain; absent: no such limit
//!         global_limit: 400          # hits in any second, by all domains of a client; absent: the lease only
//!         tiers:                     # in ascending order; without any the resource is closed to the domain
//!           - {limit: 100, window: 10s, active: 1m, cooldown: 0s, skippable: false, count: exact}
//!       overrides:                   # for names, or globs in order; the most specific part before a / counts
//!         - {domain: "trial-*", policy: {tiers: [{limit: 5, window: 1s, active: 1s}]}}
//!       allow_unconfigured: []       # names that begin so need no policy; without default others are refused
//!       ignore_configured: []        # names that begin so are granted whatever their policy says, and are counted
//! ```
//!
//! A faulty file is told all its faults at once, with their places; only where it is not YAML at all, reading ends at
//! the first. Other than Doorman, which takes the last of two equal keys, skips unknown fields and takes any number,
//! this refuses all three; and it does not insist on a catch-all `*` at the end. A field at the top whose name begins
//! with `x-` is skipped, so that there is a place for anchors.

mod access;
mod delta;
mod domains;
mod draft;
mod keys;
mod outline;
mod reader;
mod reading;
mod scalar;
mod watch;

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::repository::Repository;
use crate::token::TokenKeys;

pub use lessor_yaml::{Fault, Faults};

pub use self::delta::{Delta, DocumentText, ThreeWay};
pub use self::outline::{OutlinedField, outline, without};
pub use self::watch::Source;

/// The most bytes a file may have.
pub const MAX_BYTES: u64 = 16 << 20;

/// A document that a file holds.
pub trait Document: Sized {
    /// The document that `text` is, which is called `name` in faults.
    ///
    /// # Errors
    /// All that is wrong with it.
    fn parse(name: &str, text: &str) -> Result<Self, Faults>;
}

/// Why a file gave no document.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It is not a configuration by its size.
    #[error("{}: more than {MAX_BYTES} bytes; wanted fewer", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not text.
    #[error("{}: byte {at} is not UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first byte that is none, from 0.
        at: usize,
    },
    /// It can be read, and is faulty.
    #[error(transparent)]
    Faulty(#[from] Faults),
}

impl Document for Repository {
    fn parse(name: &str, text: &str) -> Result<Repository, Faults> {
        lessor_yaml::document(name, text, "wanted resources: and a list of templates", reader::repository)
    }
}

impl Document for Access {
    fn parse(name: &str, text: &str) -> Result<Access, Faults> {
        lessor_yaml::document(name, text, "wanted default: deny, and rules", access::access)
    }
}

impl Document for TokenKeys {
    fn parse(name: &str, text: &str) -> Result<TokenKeys, Faults> {
        keys::keys(name, text)
    }
}

/// Reads `text`, which is called `name` in faults, as a repository.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(name: &str, text: &str) -> Result<Repository, Faults> {
    Document::parse(name, text)
}

/// Reads a regular file as a repository. One that is longer than [`MAX_BYTES`] is not read to its end.
///
/// # Errors
/// When it cannot be read or is faulty.
pub fn load(path: impl AsRef<Path>) -> Result<Repository, LoadError> {
    load_document(path)
}

/// The same for a document of any kind.
///
/// # Errors
/// When the file cannot be read or is faulty.
pub fn load_document<D: Document>(path: impl AsRef<Path>) -> Result<D, LoadError> {
    let path = path.as_ref();
    interpret(path, read(path))
}

/// The bytes of a file, and one more than it may have if it has more.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Before it is opened, too: of some devices that alone does something.
    check_kind(std::fs::metadata(path)?.file_type())?;
    let file = open(path)?;
    check_kind(file.metadata()?.file_type())?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file without waiting, as a named pipe that has taken its place would have it until somebody writes.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options.open(path)
}

/// Refuses what is no regular file: it might never end, or make its reader wait for ever.
pub(super) fn check_kind(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    let error = format!("is {}; wanted a regular file", name_of(kind));
    Err(io::Error::new(io::ErrorKind::InvalidInput, error))
}

#[cfg(unix)]
fn name_of(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "no regular file",
    }
}

#[cfg(not(unix))]
fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() { "a directory" } else { "no regular file" }
}

fn interpret<D: Document>(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<D, LoadError> {
    let owned = || path.to_owned();
    let bytes = bytes.map_err(|error| LoadError::Unreadable { path: owned(), error })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(LoadError::TooLarge { path: owned() });
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| LoadError::NotText { path: owned(), at: error.valid_up_to() })?;
    Ok(D::parse(&path.display().to_string(), text)?)
}
