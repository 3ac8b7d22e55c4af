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
/// Asked of the server that the client asks, or of one above it: then the tree below that is searched. What binds the lease of
/// that node is asked of the node above it, and so on to the root. Nothing is granted or changed by it.
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
    #[serde(default)]
    overrides: Vec<OverrideRow>,
}

/// An override that takes part in it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OverrideRow {
    pub(crate) id: String,
    pub(crate) what: String,
    pub(crate) reason: String,
    pub(crate) by: String,
    pub(crate) ends_in_seconds: f64,
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

/// The places at which a client was found, as a server says it.
#[derive(Debug, Deserialize)]
struct FoundClients {
    found: Vec<FoundClient>,
}

#[derive(Debug, Deserialize)]
struct FoundClient {
    chain: Vec<Value>,
}

const OTHER_VERSION: &str = "the server says it in a form of another version";
/// Nodes that are asked one above the other.
const MOST_LEVELS: usize = 16;

// === impl Explain ===

impl Explain {
    /// The explanation of one client of a resource, or of the resource, of the same servers.
    pub(crate) fn of(resource: &str, client: Option<&str>, servers: &ServerFlags) -> Explain {
        let (resource, client) = (resource.to_owned(), client.map(str::to_owned));
        Explain { resource, client, json: false, servers: servers.clone() }
    }

    pub(crate) async fn run(self) -> anyhow::Result<()> {
        print!("{}", self.text().await?);
        Ok(())
    }

    /// All that is said about it.
    pub(crate) async fn text(&self) -> anyhow::Result<String> {
        let mut texts = Vec::new();
        let first = self.servers.ask(&self.path(self.client.as_deref())).await?;
        if first.names_nobody() {
            bail!("{}: nobody is known to lead the node", first.server);
        }
        let begun = match (&self.client, first.status) {
            (Some(client), StatusCode::NOT_FOUND) => self.find_below(client, first).await?,
            _ => vec![vec![self.read(&first.wanted()?)?]],
        };
        for chain in begun {
            let (chain, unreached) = self.ask_further(chain).await?;
            if self.json {
                texts.push(format!("{}\n", json!({"schema": 1, "chain": chain, "unreached": unreached})));
                continue;
            }
            let chain = chain.into_iter().map(serde_json::from_value);
            let chain: Vec<Explanation> = chain.collect::<Result<_, _>>().context(OTHER_VERSION)?;
            texts.push(text::display(&chain, self.client.as_deref(), unreached.as_deref()));
        }
        Ok(texts.join(if self.json { "" } else { "\n" }))
    }

    /// The chains from each node below at which the client is found up to the one that was asked, which does not know it itself.
    async fn find_below(&self, client: &str, first: Page) -> anyhow::Result<Vec<Vec<Value>>> {
        let resource = percent_encode(&self.resource);
        let path = format!("/v1/find?resource={resource}&client={}", percent_encode(client));
        let page = self.servers.ask(&path).await?;
        // A server of an earlier version has no such page, and is right in what it said first.
        if page.status == StatusCode::NOT_FOUND && page.text.trim().is_empty() {
            first.wanted()?;
        }
        let found: Value = self.read(&page.wanted()?)?;
        let found: FoundClients = serde_json::from_value(found).context(OTHER_VERSION)?;
        Ok(found.found.into_iter().map(|found| found.chain).collect())
    }

    /// Asks the nodes above the last of a chain. Returns why not all were reached, if they were not.
    async fn ask_further(&self, mut chain: Vec<Value>) -> anyhow::Result<(Vec<Value>, Option<String>)> {
        loop {
            let last = chain.last().context("the server has found nothing to explain")?;
            let last: Explanation = serde_json::from_value(last.clone()).context(OTHER_VERSION)?;
            let Some(above) = last.above.filter(|_| chain.len() < MOST_LEVELS) else {
                return Ok((chain, None));
            };
            match self.ask_above(&above).await {
                Ok(text) => chain.push(self.read(&text)?),
                Err(error) => return Ok((chain, Some(format!("{error:#}")))),
            }
        }
    }

    fn read(&self, page: &str) -> anyhow::Result<Value> {
        serde_json::from_str(page)
            .with_context(|| format!("{} sent no explanation", self.servers.server.join(",")))
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
