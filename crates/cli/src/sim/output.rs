//! The files that a run leaves in a directory.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Writes a file into a directory, which is made if it is not there.
pub(super) fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let path = directory.join(name);
    fs::write(&path, text).with_context(|| path.display().to_string())
}
