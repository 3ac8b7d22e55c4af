//! `lessor import`: the templates that servers need for rules of doors.

use clap::{ArgGroup, Args};
use lessor_doors::rules::templates::templates;

use crate::doors::RuleFlags;

/// Prints the templates that a server needs to lease what doors with these rules ask for: for --config, of root and leaves
/// alike.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("files").args(["rules", "ratelimit"]).multiple(true).required(true))]
pub(crate) struct Import {
    #[command(flatten)]
    rules: RuleFlags,
}

// === impl Import ===

impl Import {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        print!("{}", templates(&self.rules.files().load()?));
        Ok(())
    }
}
