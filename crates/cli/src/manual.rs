//! `lessor completions` and `lessor man`: what shells complete, and manual pages, both made from the commands themselves.

use std::io;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;

/// Prints what a shell completes, for the file that the shell reads: of bash
/// ~/.local/share/bash-completion/completions/lessor, of fish ~/.config/fish/completions/lessor.fish.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Writes a manual page for each command: lessor.1, lessor-serve.1 and so on.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory, which is made if it is not there
    directory: PathBuf,
}

// === impl Completions ===

impl Completions {
    pub(crate) fn run(&self, mut command: Command) -> anyhow::Result<()> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command, "lessor", &mut text);
        print!("{}", String::from_utf8_lossy(&text));
        Ok(())
    }
}

// === impl Man ===

impl Man {
    pub(crate) fn run(&self, command: Command) -> anyhow::Result<()> {
        let directory = || self.directory.display().to_string();
        let write = || -> io::Result<()> {
            std::fs::create_dir_all(&self.directory)?;
            clap_mangen::generate_to(command, &self.directory)
        };
        write().with_context(directory)
    }
}
