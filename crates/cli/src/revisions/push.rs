//! `lessor push`: files as the next revision of the templates.

use std::path::PathBuf;

use clap::Args;

use super::files::{self, ForNodes};
use super::proposal::{Proposal, ProposalFlags};
use crate::office::OfficeFlags;
use crate::plan::SavedPlan;

/// Pushes templates into etcd, where servers with --config etcd:PREFIX follow them. Every task that lives checks them before they
/// count. With --admin through a task, which looks who pushes and writes that down. Exit 1: a fault of the files, or no connection; 3:
/// somebody was faster, and nothing was pushed: it is said which fields they, you or both have changed; 4: a task refuses them, or they
/// are not in force everywhere within --wait; 5: nobody may push
#[derive(Debug, Args)]
pub(crate) struct Push {
    /// The templates of all nodes
    #[arg(required_unless_present = "nodes", conflicts_with = "nodes")]
    file: Option<PathBuf>,
    /// The templates of the node of that name, or of those that the glob matches; for each node the exact name counts before the
    /// first glob
    #[arg(long = "for", id = "nodes", value_name = "GLOB=FILE", value_parser = ForNodes::parse)]
    nodes: Vec<ForNodes>,
    #[command(flatten)]
    flags: ProposalFlags,
    /// The number of the first revision, where there is none yet: above the version: of the files that servers had
    #[arg(long, value_name = "N")]
    first_number: Option<u64>,
    /// A plan of these templates, as `lessor plan --out` has saved it: nothing is pushed if it is of something else, of more than 15
    /// minutes ago, or if much more would be lost by now
    #[arg(long, value_name = "PLAN.json", conflicts_with = "draft")]
    plan: Option<PathBuf>,
    /// Have every task check them, and put nothing in force
    #[arg(long)]
    draft: bool,
    #[command(flatten)]
    office: OfficeFlags,
}

// === impl Push ===

impl Push {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let files = self.file.into_iter().map(ForNodes::all).chain(self.nodes);
        let texts = files.map(|file| file.read()).collect::<anyhow::Result<Vec<_>>>()?;
        files::check(&texts)?;
        let place = self.office.open()?;
        let plan = self.plan.as_deref().map(SavedPlan::read).transpose()?;
        let proposal = Proposal {
            first_number: self.first_number,
            is_draft: self.draft,
            plan: plan.as_ref().map(|plan| (plan, self.office.tls())),
            ..Proposal::new(&place, &self.flags, self.office.author(), texts)
        };
        proposal.push().await
    }
}
