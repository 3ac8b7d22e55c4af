//! `lessor check`: everything that is wrong with a configuration, with its place.

use std::path::PathBuf;

use clap::Args;
use lessor_client::internals::domain::Scope;
use lessor_server::repository::{Domains, SmallLeases, Template};
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
        for template in repository.templates() {
            if template.small_leases == Some(SmallLeases::Save) {
                eprintln!(
                    "note: template \"{}\": small_leases save: a unit of each client with less than one in the burst may pass \
                     at once",
                    template.glob
                );
            }
            if let Some(domains) = &template.domains {
                note_domains(template, domains);
            }
        }
        let count = repository.templates().len();
        println!("{}: valid, {count} template{}", self.file.display(), if count == 1 { "" } else { "s" });
        Ok(())
    }
}

/// Prints what was made of policies, and what they do not do.
fn note_domains(template: &Template, domains: &Domains) {
    let glob = &template.glob;
    for change in &domains.changes {
        eprintln!("note: template \"{glob}\": {change}");
    }
    for (which, share) in domains.policies.shares() {
        let Some(share) = share else { continue };
        let (capacity, parts) = (share.capacity(), share.parts());
        eprintln!(
            "note: template \"{glob}\": domains: {which}: {capacity} a second are leased for each domain, in {parts} part{}",
            if parts == 1 { "" } else { "s" }
        );
    }
    let reach = match domains.policies.scope() {
        Scope::Client => {
            "scope client: each client counts for itself, so a domain that reaches several clients may use as many \
             times as much"
        }
        Scope::Shared => {
            "scope shared: clients tell each other through servers that have the same domains, and may pass a limit by what \
             is still under way"
        }
        Scope::Strict => return,
    };
    eprintln!("note: template \"{glob}\": domains: {reach}");
}
