//! `lessor plan`: what other templates would change for those who hold something now, and how long that would take.

mod gate;
mod saved;
mod text;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use lessor_server::plan::Plan;
use lessor_server::shell::http::{PlanBody, PlanBodyDocument};
use lessor_server::shell::source::DocumentText;

pub(crate) use self::gate::Gate;
pub(crate) use self::saved::SavedPlan;
use crate::exit::{self, Exit};
use crate::pages::ServerFlags;
use crate::revisions::files::{self, ForNodes};

/// Says what templates would change: who would lose and gain how much, who would be refused, when it would be in force and why
/// not sooner (role: plan).
///
/// Asked of a server, and by that of all nodes below it; ask the root for the whole. Nothing is changed or kept free by it. Exit 1:
/// a fault of the files, or no connection; 2 with --detailed-exitcode: there are changes; 4 with --all-nodes: a node has not
/// answered; 5: a gate says no
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The templates of all nodes
    #[arg(required_unless_present = "nodes", conflicts_with = "nodes")]
    file: Option<PathBuf>,
    /// The templates of the node of that name, or of those that the glob matches; other nodes keep theirs
    #[arg(long = "for", id = "nodes", value_name = "GLOB=FILE", value_parser = ForNodes::parse)]
    nodes: Vec<ForNodes>,
    /// Those resources only
    #[arg(long, value_name = "GLOB")]
    resource: Option<String>,
    /// Where the plan is saved, for `lessor push --plan`
    #[arg(long, value_name = "FILE", conflicts_with = "resource")]
    out: Option<PathBuf>,
    /// A gate: loss>10%, losers>0, refused>0, domains>0, latest>60s, client:billing-*.loss>0; exit 5 where it holds
    #[arg(long, value_name = "EXPR", value_parser = Gate::parse)]
    fail_if: Vec<Gate>,
    /// Exit 4 if a node does not answer
    #[arg(long)]
    all_nodes: bool,
    /// Exit 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    /// As the server says it, in JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    servers: ServerFlags,
}

/// The page of plans.
const PAGE: &str = "/v1/plan";

// === impl PlanArgs ===

impl PlanArgs {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let files = self.file.iter().cloned().map(ForNodes::all).chain(self.nodes.iter().cloned());
        let texts = files.map(|file| file.read()).collect::<anyhow::Result<Vec<DocumentText>>>()?;
        match files::faults_of(&texts, |_, _| 0) {
            0 => {}
            1 => bail!("1 fault; nothing is planned"),
            count => bail!("{count} faults; nothing is planned"),
        }
        let watch = self.fail_if.iter().filter_map(Gate::watched).map(str::to_owned).collect();
        let (plan, raw) = ask(&self.servers, &texts, self.resource.clone(), watch).await?;
        match self.json {
            true => println!("{raw}"),
            false => print!("{}", text::display(&plan)),
        }
        if let Some(path) = &self.out {
            SavedPlan::of(&plan, &self.servers.server).write(path)?;
        }
        if self.all_nodes && !plan.nodes.silent.is_empty() {
            let silent = plan.nodes.silent.join(", ");
            return Err(Exit::not_everywhere(format!("these nodes have not answered: {silent}")));
        }
        let closed: Vec<String> = self.fail_if.iter().filter_map(|gate| gate.closes(&plan)).collect();
        if !closed.is_empty() {
            return Err(Exit::forbidden(closed.join("\n")));
        }
        match self.detailed_exitcode && !plan.resources.is_empty() {
            true => Err(Exit::silent(exit::CHANGES)),
            false => Ok(()),
        }
    }
}

/// Asks a server for a plan of these documents. Returns it as it was said as well.
pub(crate) async fn ask(
    servers: &ServerFlags,
    texts: &[DocumentText],
    resource: Option<String>,
    watch: Vec<String>,
) -> anyhow::Result<(Plan, String)> {
    let document = |(document, text): &DocumentText| PlanBodyDocument {
        nodes: document.nodes.clone(),
        name: document.name.clone(),
        text: text.clone(),
    };
    let body = PlanBody { documents: texts.iter().map(document).collect(), resource, watch };
    let page = servers.post(PAGE, &serde_json::to_string(&body)?).await?;
    if page.names_nobody() {
        bail!("{}: nobody is known to lead the node", page.server);
    }
    let raw = page.wanted()?;
    let plan = serde_json::from_str(&raw).context("the server says it in a form of another version")?;
    Ok((plan, raw))
}
