//! `lessor explain`: why a client gets what it gets, at its node and at those above.

mod reason;
mod text;

use anyhow::{Context, bail};
use clap::Args;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::pages::{Page, ServerFlags, percent_encode};

/// Says why a client gets what it gets of a resource, or how the resource is divided (role: explain).
///
/// Asked of the server that the client asks. What binds the lease of that node is asked of the node above it, and so on to the
/// root. Nothing is granted or changed by it.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The resource
    resource: String,
    /// The id of the client, or the name of a node below; without it, how the resource is divided
    client: Option<String>,
    /// As the servers say it, in JSON: `chain` has the node of the client first, and then those above
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    servers: ServerFlags,
}

/// The part of an explanation that is read for people.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Explanation {
    node: String,
    config_version: u64,
    later_config: Option<u64>,
    resource: ResourceRow,
    division: Division,
    above: Option<LeaseAbove>,
    lives: Vec<Life>,
    held_back_seconds: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct ResourceRow {
    resource: String,
    template: Option<String>,
    kind: String,
    algorithm: String,
    wants: f64,
    clients: usize,
    leased: f64,
    ghost: f64,
    ghost_ends_in_seconds: f64,
    learning: bool,
    learning_ends_in_seconds: f64,
    in_debt: bool,
    lease_ends_in_seconds: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Division {
    configured: Option<f64>,
    reserved: f64,
    limit: Option<f64>,
    divided: f64,
    free: Option<f64>,
    excess: f64,
    bands: Vec<Band>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Band {
    priority: i64,
    left: f64,
    level: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct LeaseAbove {
    node: Option<String>,
    server: String,
    holder: String,
    bound_by: Option<String>,
    fault: Option<String>,
}

/// One life of the client.
#[derive(Clone, Debug, Deserialize)]
struct Life {
    client: String,
    kind: String,
    session: String,
    way: String,
    wants: f64,
    is_cut: bool,
    weight: u64,
    bands: Vec<BandShare>,
    told: f64,
    charged: f64,
    share: f64,
    gets: Option<f64>,
    bound_by: String,
    also: Vec<String>,
    ends_in_seconds: f64,
    heard_seconds_ago: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct BandShare {
    priority: i64,
    wants: f64,
    share: f64,
}

/// Nodes that are asked one above the other.
const MOST_LEVELS: usize = 16;

// === impl Explain ===

impl Explain {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let first = self.servers.ask(&self.path(self.client.as_deref())).await?;
        if first.names_nobody() {
            bail!("{}: nobody is known to lead the node", first.server);
        }
        let mut raw: Vec<Value> = Vec::new();
        let mut chain: Vec<Explanation> = Vec::new();
        let mut page = first.wanted()?;
        let unreached = loop {
            let value: Value = serde_json::from_str(&page)
                .with_context(|| format!("{} sent no explanation", self.servers.server.join(",")))?;
            let explanation: Explanation = serde_json::from_value(value.clone())
                .context("the server says it in a form of another version")?;
            let above = explanation.above.clone();
            raw.push(value);
            chain.push(explanation);
            let Some(above) = above.filter(|_| chain.len() < MOST_LEVELS) else { break None };
            match self.ask_above(&above).await {
                Ok(text) => page = text,
                Err(error) => break Some(format!("{error:#}")),
            }
        };
        if self.json {
            println!("{}", json!({"schema": 1, "chain": raw, "unreached": unreached}));
            return Ok(());
        }
        print!("{}", text::display(&chain, self.client.as_deref(), unreached.as_deref()));
        Ok(())
    }

    async fn ask_above(&self, above: &LeaseAbove) -> anyhow::Result<String> {
        let page: Page = self.servers.follow(&above.server, &self.path(Some(&above.holder))).await?;
        if page.status == StatusCode::NOT_FOUND {
            bail!("{}: {}", page.server, page.text.trim());
        }
        page.wanted()
    }

    fn path(&self, client: Option<&str>) -> String {
        let client = client.map_or_else(String::new, |client| format!("&client={}", percent_encode(client)));
        format!("/v1/explain?resource={}{client}", percent_encode(&self.resource))
    }
}
