//! `lessor status`: the resources of a node, the fullest first; or who has what of one, wants what, until when; or those of the
//! whole tree.

pub(crate) mod lines;
pub(crate) mod node;
pub(crate) mod tree;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use lessor_client::internals::clock;
use lessor_server::repository::Glob;
use serde::de::DeserializeOwned;

use self::node::NodePage;
use self::tree::TreePage;
use crate::pages::{ServerFlags, percent_encode};

/// Shows what a server has leased out: a line for each resource, the fullest first, or all about one and who has it.
///
/// With --tree what all nodes below it have as well, as far as they are reached by the streams that leases go by.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The resources, as names or patterns (db/*); a single name shows who has it
    resource: Vec<String>,
    /// The number of holders of each resource to show [default: 20 of a single one, else a line for each resource]
    #[arg(long, value_name = "N")]
    holders: Option<usize>,
    /// The whole tree below the server: each node with its busiest resources
    #[arg(long, conflicts_with = "holders")]
    tree: bool,
    /// Show it again and again, every so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", require_equals = true)]
    watch: Option<u64>,
    /// As the server says it, in JSON; a line for each pattern
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    servers: ServerFlags,
}

/// Resources that a server is asked for.
const MOST: usize = 1_000;
/// Resources that are shown of each node of a tree.
const OF_EACH: usize = 20;
/// Holders that are shown of a single resource.
const HOLDERS: usize = 20;
/// Clears a terminal, and goes to its beginning.
const CLEAR: &str = "\x1b[2J\x1b[H";

// === impl Status ===

impl Status {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        for pattern in &self.resource {
            Glob::new(pattern).with_context(|| format!("resource {pattern:?}"))?;
        }
        let Some(seconds) = self.watch else {
            let text = self.look().await?;
            print!("{text}");
            return Ok(());
        };
        let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
        loop {
            // A server that is away may come back.
            let text = self.look().await.unwrap_or_else(|error| format!("{error:#}\n"));
            print!("{clear}{text}");
            clock::sleep_until(clock::now() + Duration::from_secs(seconds.max(1))).await;
        }
    }

    /// All that is to be shown, at one moment.
    async fn look(&self) -> anyhow::Result<String> {
        let mut texts = Vec::new();
        for query in self.queries() {
            texts.push(self.servers.ask(&query).await?.wanted()?);
        }
        if self.json {
            return Ok(texts.into_iter().map(|text| text + "\n").collect());
        }
        if self.tree {
            let trees: Vec<TreePage> = self.read(&texts, "tree")?;
            return Ok(trees.iter().map(TreePage::display).collect());
        }
        let pages: Vec<NodePage> = self.read(&texts, "status")?;
        if self.is_in_detail() {
            return Ok(pages.iter().map(NodePage::display).collect());
        }
        Ok(lines::display(&pages))
    }

    fn read<P: DeserializeOwned>(&self, texts: &[String], what: &str) -> anyhow::Result<Vec<P>> {
        let server = || format!("{} sent no {what}", self.servers.server.join(","));
        texts.iter().map(|text| serde_json::from_str(text).with_context(server)).collect()
    }

    /// Whether holders are shown, and not a line for each resource.
    fn is_in_detail(&self) -> bool {
        self.holders.is_some() || self.single().is_some()
    }

    /// The name of the one resource that is asked for, if it is one.
    fn single(&self) -> Option<&str> {
        let [name] = &self.resource[..] else { return None };
        Glob::new(name).is_ok_and(|glob| glob.is_plain()).then_some(name)
    }

    /// The paths of the pages, one for each pattern.
    fn queries(&self) -> Vec<String> {
        if self.tree {
            return self.tree_queries();
        }
        let detailed = self.is_in_detail() || self.json;
        let holders = self.holders.unwrap_or(if detailed { HOLDERS } else { 0 });
        let order = if detailed { "" } else { "&order=busiest" };
        let all = format!("/status?holders={holders}&resources={MOST}{order}");
        if let Some(name) = self.single() {
            return vec![format!("{all}&resource={}", percent_encode(name))];
        }
        if self.resource.is_empty() {
            return vec![all];
        }
        self.resource.iter().map(|glob| format!("{all}&matching={}", percent_encode(glob))).collect()
    }
    fn tree_queries(&self) -> Vec<String> {
        let all = format!("/v1/tree?resources={OF_EACH}");
        if self.resource.is_empty() {
            return vec![all];
        }
        self.resource.iter().map(|glob| format!("{all}&matching={}", percent_encode(glob))).collect()
    }
}
