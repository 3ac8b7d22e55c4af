//! A node in detail: who has what of its resources, wants what, until when.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use lessor_proto::Amount;
use serde::Deserialize;

use crate::explain::OverrideRow;

/// The status of a node, as a server says it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodePage {
    ready: bool,
    leads: bool,
    leader: Option<String>,
    pub(crate) status: Node,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Node {
    node: String,
    pub(crate) epoch: u64,
    leading_seconds: f64,
    config_version: u64,
    later_config: Option<u64>,
    #[serde(default)]
    overrides: Vec<OverrideRow>,
    pub(crate) resources_in_all: usize,
    pub(crate) resources: Vec<Resource>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Resource {
    pub(crate) resource: String,
    pub(crate) template: Option<String>,
    pub(crate) kind: String,
    pub(crate) algorithm: String,
    pub(crate) capacity: f64,
    pub(crate) lease_ends_in_seconds: Option<f64>,
    pub(crate) leased: f64,
    pub(crate) ghost: f64,
    ghost_ends_in_seconds: f64,
    pub(crate) wants: f64,
    #[serde(default)]
    pub(crate) short: f64,
    #[serde(default)]
    pub(crate) outstanding: f64,
    pub(crate) clients: usize,
    pub(crate) learning: bool,
    pub(crate) learning_ends_in_seconds: f64,
    pub(crate) in_debt: bool,
    pub(crate) overcommitment: f64,
    #[serde(default)]
    pub(crate) unenforced: f64,
    #[serde(default)]
    pub(crate) unenforced_asked: u64,
    #[serde(default)]
    pub(crate) unenforced_passed: u64,
    #[serde(default)]
    pub(crate) unenforced_silent: u32,
    #[serde(default)]
    pub(crate) beside: Option<f64>,
    #[serde(default)]
    pub(crate) domains_unenforced: bool,
    #[serde(default)]
    pub(crate) frozen: bool,
    #[serde(default)]
    pub(crate) overrides: Vec<String>,
    domains: Option<Domains>,
    pub(crate) holders: Vec<Holder>,
}

#[derive(Clone, Debug, Deserialize)]
struct Domains {
    clients: usize,
    told: usize,
    hot: usize,
    busiest: Vec<Domain>,
}

/// A hot domain.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Domain {
    pub(crate) domain: String,
    pub(crate) clients: usize,
    pub(crate) hits_in_second: u32,
    pub(crate) tier: usize,
    pub(crate) hits_in_tier: u32,
    pub(crate) tier_limit: u32,
    pub(crate) cooling_seconds: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Holder {
    pub(crate) client: String,
    pub(crate) kind: String,
    pub(crate) has: f64,
    pub(crate) wants: f64,
    pub(crate) share: f64,
    pub(crate) state: String,
    pub(crate) priority: i64,
    pub(crate) subclients: u64,
    pub(crate) ends_in_seconds: f64,
    pub(crate) heard_seconds_ago: f64,
    pub(crate) superseded: bool,
}

// === impl NodePage ===

impl NodePage {
    /// The heading: who leads, under which epoch, and why nothing is granted if nothing is.
    pub(crate) fn heading(&self) -> String {
        let Node { node, epoch, leading_seconds, config_version, later_config, overrides, .. } = &self.status;
        if !self.leads {
            return match &self.leader {
                Some(leader) => format!("node {node}, epoch {epoch}, led by {leader}: ask there\n"),
                None => format!("node {node}: nobody is known to lead it\n"),
            };
        }
        let leading = humantime::format_duration(Duration::from_secs(*leading_seconds as u64));
        let ready = if self.ready { "" } else { ", draining" };
        let mut text = format!("node {node}, epoch {epoch}, leads for {leading}{ready}\n");
        if let Some(later) = later_config {
            let line = format!(
                "grants nothing: version {config_version} of the configuration is here, and {later} was in force\n"
            );
            text.push_str(&line);
        }
        overrides.iter().for_each(|it| text.push_str(&format!("override {}\n", it.line())));
        text
    }

    /// Whether this is the status of the task that leads.
    pub(crate) fn leads(&self) -> bool {
        self.leads
    }

    /// The resources.
    pub(crate) fn resources(&self) -> &[Resource] {
        &self.status.resources
    }

    /// Resources of the node.
    pub(crate) fn resources_in_all(&self) -> usize {
        self.status.resources_in_all
    }

    /// All of it, with the holders of each resource.
    pub(super) fn display(&self) -> String {
        let mut text = self.heading();
        let Node { resources_in_all, resources, .. } = &self.status;
        if !self.leads {
            return text;
        }
        if resources.is_empty() {
            text.push_str("nobody holds or wants anything\n");
        }
        for resource in resources {
            text.push('\n');
            text.push_str(&resource.display());
        }
        if resources.len() < *resources_in_all && resources.len() > 1 {
            text.push_str(&format!("\n… and {} more resources\n", resources_in_all - resources.len()));
        }
        text
    }
}

// === impl Resource ===

impl Resource {
    /// The resource in two lines.
    pub(crate) fn about(&self) -> String {
        let unit = if self.kind == "gauge" { "" } else { "/s" };
        let template = self.template.as_deref().unwrap_or("none any more");
        let mut text =
            format!("{}  ({}, {}, template {template})\n", self.resource, self.kind, self.algorithm);
        let figures = format!(
            "  leased {} of {}{unit}, wanted {}, {} client{}",
            short(self.leased),
            short(self.capacity),
            wanted(self.wants),
            self.clients,
            if self.clients == 1 { "" } else { "s" }
        );
        text.push_str(&figures);
        if let Some(seconds) = self.lease_ends_in_seconds {
            text.push_str(&format!(", by a lease for {seconds:.0} s"));
        }
        if self.ghost > 0.0 {
            let (ghost, seconds) = (short(self.ghost), self.ghost_ends_in_seconds);
            text.push_str(&format!(", {ghost}{unit} out that nobody has shown yet, for {seconds:.0} s more"));
        }
        if self.learning {
            text.push_str(&format!(", learning for {:.0} s more", self.learning_ends_in_seconds));
        }
        if self.in_debt {
            text.push_str(", in debt after a cut");
        }
        if let Some(of) = self.accompanied() {
            text.push_str(&format!(", a second limit that is tried beside {of}, and kept to by nobody"));
        } else if self.unenforced > 0.0 {
            text.push_str(", NOT ENFORCED");
        }
        if let Some(beside) = self.beside {
            text.push_str(&format!(", a second limit of {}{unit} is tried beside it", short(beside)));
        }
        if self.overcommitment > 0.0 {
            text.push_str(&format!(", OVER-COMMITTED by {}", short(self.overcommitment)));
        }
        text.push('\n');
        text.push_str(&self.would_refuse());
        text
    }

    /// The line about what leases would have refused of what was let pass, if there is anything to be said of that.
    fn would_refuse(&self) -> String {
        let mut said = Vec::new();
        if self.unenforced_asked > 0 {
            said.push(format!(
                "of {} units that were asked for {} would have been refused ({})",
                self.unenforced_asked,
                self.unenforced_passed,
                self.refused_part()
            ));
        }
        if self.unenforced_silent > 0 {
            said.push(format!("{} that let everything pass have said nothing", self.unenforced_silent));
        }
        if said.is_empty() { String::new() } else { format!("  not enforced: {}\n", said.join(", ")) }
    }

    /// The part that leases would have refused, as people read it.
    pub(crate) fn refused_part(&self) -> String {
        let part = self.unenforced_passed as f64 / self.unenforced_asked.max(1) as f64;
        format!("{:.1}%", part * 100.0)
    }

    /// The resource beside which this is a second limit that is tried, if it is one.
    pub(crate) fn accompanied(&self) -> Option<&str> {
        self.resource.strip_suffix("|beside").filter(|_| self.unenforced >= 1.0)
    }

    fn display(&self) -> String {
        let mut text = self.about();
        if !self.holders.is_empty() {
            text.push_str(&self.table().to_string());
            text.push('\n');
        }
        if self.holders.len() < self.clients {
            text.push_str(&format!("… and {} more\n", self.clients - self.holders.len()));
        }
        if let Some(domains) = &self.domains {
            text.push_str(&domains.display());
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header(["client", "has", "wants", "share", "state", "priority", "for", "ends in", "heard"]);
        for index in [1, 2, 3, 5, 6, 7, 8] {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for holder in &self.holders {
            table.add_row(holder.row());
        }
        table
    }
}

// === impl Domains ===

impl Domains {
    fn display(&self) -> String {
        let clients = if self.clients == 1 {
            "1 client tells".to_owned()
        } else {
            format!("{} clients tell", self.clients)
        };
        let mut text = format!("  domains: {clients} of {}, {} of them hot\n", self.told, self.hot);
        if self.busiest.is_empty() {
            return text;
        }
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        table.set_header(["domain", "clients", "in a second", "tier", "used", "rests for"]);
        for index in 1..6 {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.add_rows(self.busiest.iter().map(Domain::row));
        text.push_str(&format!("{table}\n"));
        if self.busiest.len() < self.hot {
            text.push_str(&format!("… and {} more\n", self.hot - self.busiest.len()));
        }
        text
    }
}

// === impl Domain ===

impl Domain {
    fn row(&self) -> [String; 6] {
        [
            self.domain.clone(),
            self.clients.to_string(),
            self.hits_in_second.to_string(),
            self.tier.to_string(),
            format!("{} of {}", self.hits_in_tier, self.tier_limit),
            self.cooling_seconds.map(|seconds| format!("{seconds:.1} s")).unwrap_or_default(),
        ]
    }
}

// === impl Holder ===

impl Holder {
    /// The amount that it has less than its share.
    pub(crate) fn short(&self) -> f64 {
        (self.share - self.has).max(0.0)
    }

    /// The amount that it has less than it wants.
    pub(crate) fn unmet(&self) -> f64 {
        (self.wants - self.has).max(0.0)
    }

    fn row(&self) -> [String; 9] {
        let superseded = if self.superseded { " (earlier life)" } else { "" };
        [
            format!("{}{superseded}", self.client),
            short(self.has),
            wanted(self.wants),
            short(self.share),
            self.state.clone(),
            self.priority.to_string(),
            if self.kind == "node" { format!("{} clients", self.subclients) } else { String::new() },
            format!("{:.1} s", self.ends_in_seconds),
            format!("{:.1} s ago", self.heard_seconds_ago),
        ]
    }
}

/// As [`short`], unless it is as much as there can be: floors are asked for so.
pub(crate) fn wanted(number: f64) -> String {
    if number >= Amount::MAX.as_f64() { "all".to_owned() } else { short(number) }
}

/// Three digits after the point at most, and no zeros behind them.
pub(crate) fn short(number: f64) -> String {
    if number.abs() >= 1e15 {
        return format!("{number:.3e}");
    }
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_short() {
        assert_eq!(short(60.0), "60");
        assert_eq!(short(69.690_721), "69.691");
        assert_eq!(short(1e300), "1.000e300");
        assert_eq!((wanted(1.5), wanted(Amount::MAX.as_f64())), ("1.5".to_owned(), "all".to_owned()));
    }
}
