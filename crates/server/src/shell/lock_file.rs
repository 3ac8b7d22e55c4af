//! The lock of a file, which one process at a time has, and which ends with it, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Takes the lock at `path`, where a file is made if there is none: it stays, and is nobody's when it is let go.
///
/// # Errors
/// When another has it, or it cannot be had.
pub(super) fn lock(path: &Path) -> Result<File, TryLockError> {
    // Whoever may read it may take the lock.
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(TryLockError::Error)?;
    file.try_lock()?;
    Ok(file)
}
