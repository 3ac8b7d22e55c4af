//! Sheets: pages of a node that are read line by line, its tree, hot domains, findings, revisions, and why somebody gets what it
//! gets.

mod tables;

use anyhow::Context;
use clap::ValueEnum;

use crate::explain::Explain;
use crate::pages::{Missing, ServerFlags, percent_encode};
use crate::status::tree::TreePage;

/// The subject of a sheet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum SheetKind {
    /// The node and those below it, as far as resources match the pattern.
    Tree(Option<String>),
    Domains,
    Findings,
    History,
    /// Why one client of a resource gets what it gets; without a client, how the resource is divided.
    Explain {
        resource: String,
        client: Option<String>,
    },
}

/// The view that a terminal begins with.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub(super) enum TopView {
    /// The resources, the fullest first
    #[default]
    Resources,
    /// The node and all those below it
    Tree,
    /// The hot domains of scope `shared`, those first that have used the most of a tier
    Domains,
    /// The findings: what is wrong, with what to do about it
    Findings,
    /// The revisions of the templates at etcd, the newest first
    History,
}

/// A sheet: what was heard of it last, and which lines of that are in sight.
pub(super) struct Sheet {
    pub(super) kind: SheetKind,
    /// Absent: it has not been heard yet.
    text: Option<String>,
    /// Lines that are above the first one in sight.
    pub(super) offset: usize,
    pub(super) filter: String,
}

const OTHER_VERSION: &str = "the server says it in a form of another version";
/// Resources of each node of a tree.
const OF_EACH: usize = 20;
/// Rows of a page.
const MOST: usize = 200;

// === impl TopView ===

impl TopView {
    /// The sheet that it is, of the resources that match a pattern; none for the resources themselves.
    pub(super) fn sheet(self, pattern: Option<&str>) -> Option<SheetKind> {
        match self {
            TopView::Resources => None,
            TopView::Tree => Some(SheetKind::Tree(pattern.map(str::to_owned))),
            TopView::Domains => Some(SheetKind::Domains),
            TopView::Findings => Some(SheetKind::Findings),
            TopView::History => Some(SheetKind::History),
        }
    }
}

// === impl SheetKind ===

impl SheetKind {
    /// The words for it above its lines.
    pub(super) fn title(&self) -> String {
        match self {
            SheetKind::Tree(None) => "the tree".to_owned(),
            SheetKind::Tree(Some(pattern)) => format!("the tree, of {pattern}"),
            SheetKind::Domains => "hot domains".to_owned(),
            SheetKind::Findings => "findings".to_owned(),
            SheetKind::History => "revisions".to_owned(),
            SheetKind::Explain { resource, client: None } => format!("how {resource} is divided"),
            SheetKind::Explain { resource, client: Some(client) } => {
                format!("why {client} has what it has of {resource}")
            }
        }
    }

    /// Lines at the top that name columns, and stay in sight.
    fn heads(&self) -> usize {
        usize::from(matches!(self, SheetKind::Tree(_) | SheetKind::Domains | SheetKind::History))
    }

    /// Whether long lines go on in the next one, rather than being cut off.
    pub(super) fn is_prose(&self) -> bool {
        self.heads() == 0
    }

    /// The page that it is made of.
    fn path(&self) -> String {
        match self {
            SheetKind::Tree(pattern) => {
                let matching = pattern.as_ref().map(|glob| format!("&matching={}", percent_encode(glob)));
                format!("/v1/tree?resources={OF_EACH}{}", matching.unwrap_or_default())
            }
            SheetKind::Domains => format!("/v1/domains?limit={MOST}"),
            SheetKind::Findings => "/v1/findings".to_owned(),
            SheetKind::History => format!("/v1/history?limit={MOST}"),
            SheetKind::Explain { resource, client } => {
                let client = client.as_ref().map(|client| format!("&client={}", percent_encode(client)));
                format!("/v1/explain?resource={}{}", percent_encode(resource), client.unwrap_or_default())
            }
        }
    }

    /// The page as the servers say it, in JSON.
    pub(super) async fn json(&self, servers: &ServerFlags) -> anyhow::Result<String> {
        servers.ask(&self.path()).await?.wanted()
    }

    /// The text for people.
    pub(super) async fn text(&self, servers: &ServerFlags) -> anyhow::Result<String> {
        let text = match self {
            SheetKind::Explain { resource, client } => {
                Explain::of(resource, client.as_deref(), servers).text().await
            }
            _ => self.json(servers).await.and_then(|page| self.read(&page).context(OTHER_VERSION)),
        };
        // A server that says that there is nothing has answered.
        text.or_else(|error| error.downcast::<Missing>().map(|missing| absent(&missing)))
    }

    /// The text that a page is for people.
    pub(super) fn read(&self, page: &str) -> anyhow::Result<String> {
        Ok(match self {
            SheetKind::Tree(_) => serde_json::from_str::<TreePage>(page)?.display(),
            SheetKind::Domains => tables::domains(&serde_json::from_str(page)?),
            SheetKind::Findings => tables::findings(&serde_json::from_str(page)?),
            SheetKind::History => tables::history(&serde_json::from_str(page)?),
            SheetKind::Explain { .. } => page.to_owned(),
        })
    }
}

/// Why there is nothing to be read: as the server says it, or because it is of an earlier version.
fn absent(missing: &Missing) -> String {
    match missing.text.as_str() {
        "" => format!("{} has no such page\n", missing.server),
        text => format!("{text}\n"),
    }
}

// === impl Sheet ===

impl Sheet {
    pub(super) fn new(kind: SheetKind) -> Sheet {
        Sheet { kind, text: None, offset: 0, filter: String::new() }
    }

    pub(super) fn hear(&mut self, text: String) {
        self.text = Some(text);
        self.step(0);
    }

    pub(super) fn is_known(&self) -> bool {
        self.text.is_some()
    }

    /// The lines that name columns, and those that the filter leaves below them.
    pub(super) fn lines(&self) -> (Vec<&str>, Vec<&str>) {
        let mut lines = self.text.as_deref().unwrap_or_default().lines();
        let heads = lines.by_ref().take(self.kind.heads()).collect();
        let filter = self.filter.to_lowercase();
        let is_wanted = |line: &&str| filter.is_empty() || line.to_lowercase().contains(&filter);
        (heads, lines.filter(is_wanted).collect())
    }

    /// Goes down by so many lines, up if that is negative, and not beyond the last.
    pub(super) fn step(&mut self, by: isize) {
        let last = self.lines().1.len().saturating_sub(1);
        self.offset = self.offset.saturating_add_signed(by).min(last);
    }
}

#[cfg(test)]
mod tests;
