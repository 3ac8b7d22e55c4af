//! The socket of an admin port at a path of this machine, which its owner alone may open.

use std::fs::{File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tracing::info;

use super::fault::AdminFault;
use super::options::AdminAddress;
use crate::shell::lock_file;

/// Connections that wait in the kernel.
const BACKLOG: u32 = 128;
/// The longest wait for a process that may serve there.
const LOOK: Duration = Duration::from_secs(1);

/// The device of a file, its number there, and the time at which it was made.
type FileIdentity = (u64, u64, i64, i64);

/// The file of a socket, removed with this unless another has taken its place.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: FileIdentity,
    /// The lock beside it, without which two that find an old socket at once would each replace that of the other.
    _lock: File,
}

/// Listens at `path`. A socket there whose process has ended is replaced.
///
/// # Errors
/// When another process serves there, something else is there, or it cannot be had.
pub(super) async fn bind(path: &Path) -> Result<(UnixListener, SocketFile), AdminFault> {
    let address = || AdminAddress::Unix(path.to_owned());
    let failed = |source| AdminFault::Listen { address: address(), source };
    // Whatever else is there gets no lock beside it.
    finds_socket(path)?;
    let lock = match lock_file::lock(&beside(path)) {
        Ok(lock) => lock,
        Err(TryLockError::WouldBlock) => return Err(AdminFault::Taken { address: address() }),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    };
    if finds_socket(path)? {
        if is_served(path).await {
            return Err(AdminFault::Taken { address: address() });
        }
        info!(path = %path.display(), "an old socket is replaced: its process has ended");
        std::fs::remove_file(path).map_err(failed)?;
    }
    listen(path, lock).map_err(failed)
}

/// Whether there is a socket at `path`.
///
/// # Errors
/// When something else is there, or that cannot be found out.
fn finds_socket(path: &Path) -> Result<bool, AdminFault> {
    let address = || AdminAddress::Unix(path.to_owned());
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(true),
        Ok(_) => Err(AdminFault::NoSocket { address: address() }),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(AdminFault::Listen { address: address(), source }),
    }
}

/// The path of the lock beside a socket.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Whether a process serves there. One that does not take the connection in time may be busy, and lives.
async fn is_served(path: &Path) -> bool {
    match tokio::time::timeout(LOOK, UnixStream::connect(path)).await {
        Ok(Err(fault)) => fault.kind() != io::ErrorKind::ConnectionRefused,
        Ok(Ok(_)) | Err(_) => true,
    }
}

fn listen(path: &Path, lock: File) -> io::Result<(UnixListener, SocketFile)> {
    let socket = UnixSocket::new_stream()?;
    // Where the system heeds that, there is no moment at which others could open it.
    let _ = rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
    socket.bind(path)?;
    let made = std::fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.to_owned(), identity: identity(&made), _lock: lock };
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    // Nobody is let in before: a socket that is only bound refuses.
    Ok((socket.listen(BACKLOG)?, file))
}

/// The identity of a file. A file system gives the number of one that is gone to the next, and that is of another time.
fn identity(of: &Metadata) -> FileIdentity {
    (of.dev(), of.ino(), of.mtime(), of.mtime_nsec())
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |found: Metadata| identity(&found) == self.identity;
        if std::fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            // It is replaced by the next one if it stays.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_its_owners_and_goes_with_its_process() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("admin.sock");
        let (listener, file) = bind(&path).await.expect("it is free");
        let mode = std::fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o600);
        let taken = bind(&path).await.expect_err("somebody lives there").to_string();
        assert!(taken.contains("another process serves there, and lives"), "{taken}");
        // As after a crash: the file is there, and nobody listens or has the lock.
        drop(listener);
        std::fs::remove_file(beside(&path)).expect("it is there");
        // Two that are made within a tick of the clock could be one by their numbers.
        std::fs::hard_link(&path, directory.path().join("kept")).expect("it has another name");
        let (_listener, again) = bind(&path).await.expect("the old one is replaced");
        drop(file);
        assert!(path.exists(), "it is another's by now");
        drop(again);
        assert!(!path.exists());
    }

    #[test]
    fn of_those_who_find_an_old_socket_at_once_one_has_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("admin.sock");
        for round in 0..100 {
            // As after a crash.
            drop(std::os::unix::net::UnixListener::bind(&path).expect("it is free"));
            let (all, over) = (std::sync::Barrier::new(4), std::sync::Barrier::new(4));
            let start = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                all.wait();
                let bound = runtime.expect("a runtime").block_on(bind(&path));
                over.wait();
                bound.is_ok()
            };
            let won: Vec<_> = std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(start));
                threads.map(|thread| thread.join().expect("it does not panic")).into()
            });
            assert_eq!(won.iter().filter(|&&won| won).count(), 1, "round {round}: {won:?}");
            assert!(!path.exists(), "it went with the one who had it");
        }
    }

    #[tokio::test]
    async fn what_is_no_socket_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notes");
        std::fs::write(&path, "mine").expect("it is written");
        let fault = bind(&path).await.expect_err("it is no socket").to_string();
        assert!(fault.contains("there is a file that is no socket"), "{fault}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "mine");
        assert!(!beside(&path).exists(), "nothing is made beside it");
    }
}
