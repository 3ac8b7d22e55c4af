//! `lessor check`: everything that is wrong with a configuration, with its place.

use std::path::PathBuf;

use clap::Args;
use lessor_server::shell::source::{self, LoadError};

/// Validates a configuration. Exit 0: it is valid; exit 1: every fault is printed with its line and column.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The file
    file: PathBuf,
}

// === impl Check ===

impl Check {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let repository = source::load(&self.file).map_err(|error| match error {
            LoadError::Faulty(faults) => {
                eprintln!("{faults}");
                let count = faults.count();
                anyhow::anyhow!("{}: {count} fault{}", self.file.display(), if count == 1 { "" } else { "s" })
            }
            error => error.into(),
        })?;
        for template in repository.shadowed() {
            eprintln!("note: template \"{}\" is never used: \"*\" stands before it", template.glob);
        }
        let count = repository.templates().len();
        println!("{}: valid, {count} template{}", self.file.display(), if count == 1 { "" } else { "s" });
        Ok(())
    }
}
