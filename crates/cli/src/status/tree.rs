//! The tree: a line for each node and each of its resources, nodes below indented.

use comfy_table::{CellAlignment, Table, presets};
use serde::Deserialize;

use super::node::{short, wanted};

/// The tree as a server says it.
#[derive(Debug, Deserialize)]
pub(crate) struct TreePage {
    took_seconds: f64,
    nodes: NodeCounts,
    tree: TreeNode,
}

#[derive(Debug, Deserialize)]
struct NodeCounts {
    shown: usize,
    silent: Vec<String>,
    cannot_be_asked: Vec<String>,
    left_out: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct TreeNode {
    node: String,
    seen: String,
    figures: Option<NodeFigures>,
    below: Vec<TreeNode>,
    unnamed: usize,
}

#[derive(Debug, Deserialize)]
struct NodeFigures {
    version: String,
    epoch: u64,
    address: String,
    config_version: u64,
    later_config: Option<u64>,
    resources_in_all: usize,
    resources: Vec<ResourceFigures>,
}

#[derive(Debug, Deserialize)]
struct ResourceFigures {
    resource: String,
    kind: String,
    capacity: f64,
    out: f64,
    wants: f64,
    clients: u64,
    short: f64,
    ghost: f64,
    over: f64,
    learning: bool,
    in_debt: bool,
    lease_ends_in_seconds: Option<f64>,
}

// === impl TreePage ===

impl TreePage {
    /// All of it.
    pub(crate) fn display(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["node", "full", "out", "of", "wanted", "short", "clients", ""]);
        for index in 1..7 {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self.tree.add_to(&mut table, 0);
        let mut text: String = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        text.push_str(&self.nodes.display(self.took_seconds));
        text
    }
}

// === impl NodeCounts ===

impl NodeCounts {
    fn display(&self, took: f64) -> String {
        let nodes = if self.shown == 1 { "node" } else { "nodes" };
        let mut text = format!("{} {nodes} answered within {took:.2} s", self.shown);
        for (why, ways) in [
            ("silent", &self.silent),
            ("cannot be asked", &self.cannot_be_asked),
            ("left out", &self.left_out),
        ] {
            if !ways.is_empty() {
                text.push_str(&format!("; {why}: {}", ways.join(", ")));
            }
        }
        text.push('\n');
        text
    }
}

// === impl TreeNode ===

impl TreeNode {
    fn add_to(&self, table: &mut Table, depth: usize) {
        let indent = "  ".repeat(depth);
        let about = match &self.figures {
            Some(figures) => figures.about(),
            None => self.seen.replace('_', " "),
        };
        let mut row = vec![format!("{indent}{}", self.node)];
        row.extend(std::iter::repeat_n(String::new(), 6));
        row.push(about);
        table.add_row(row);
        if let Some(figures) = &self.figures {
            for resource in &figures.resources {
                table.add_row(resource.row(&indent));
            }
            let hidden = figures.resources_in_all.saturating_sub(figures.resources.len());
            if hidden > 0 {
                table.add_row([format!("{indent}  … and {hidden} more")]);
            }
        }
        self.below.iter().for_each(|below| below.add_to(table, depth + 1));
        if self.unnamed > 0 {
            table.add_row([format!("{indent}  … and {} nodes more", self.unnamed)]);
        }
    }
}

// === impl NodeFigures ===

impl NodeFigures {
    fn about(&self) -> String {
        let NodeFigures { version, epoch, address, config_version, later_config, .. } = self;
        let mut text = format!("{version}, epoch {epoch} at {address}");
        if *config_version > 0 {
            text.push_str(&format!(", configuration {config_version}"));
        }
        if let Some(later) = later_config {
            text.push_str(&format!(", GRANTS NOTHING: {later} was in force"));
        }
        text
    }
}

// === impl ResourceFigures ===

impl ResourceFigures {
    fn row(&self, indent: &str) -> [String; 8] {
        let unit = if self.kind == "gauge" { "" } else { "/s" };
        let full = if self.capacity > 0.0 { self.out / self.capacity * 100.0 } else { 0.0 };
        [
            format!("{indent}  {}", self.resource),
            format!("{:.0}%", full.min(9_999.0)),
            short(self.out),
            format!("{}{unit}", short(self.capacity)),
            wanted(self.wants),
            if self.short > 0.0 { short(self.short) } else { "-".to_owned() },
            self.clients.to_string(),
            self.notes(),
        ]
    }

    fn notes(&self) -> String {
        let mut notes = Vec::new();
        if self.over > 0.0 {
            notes.push(format!("OVER-COMMITTED by {}", short(self.over)));
        }
        if self.in_debt {
            notes.push("in debt".to_owned());
        }
        if self.learning {
            notes.push("learning".to_owned());
        }
        if self.ghost > 0.0 {
            notes.push(format!("ghost {}", short(self.ghost)));
        }
        match self.lease_ends_in_seconds {
            Some(seconds) if seconds > 0.0 => notes.push(format!("lease {seconds:.0} s")),
            Some(_) => notes.push("no lease from above".to_owned()),
            None => {}
        }
        notes.join(", ")
    }
}
