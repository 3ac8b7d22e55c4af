//! Pages of rows as lines: domains, findings and revisions.

use comfy_table::{CellAlignment, Table, presets};
use serde::Deserialize;

use super::super::figure::percent;
use crate::status::node::{Domain, short};

/// Rows as a server lists them.
#[derive(Debug, Deserialize)]
pub(super) struct Rows<R> {
    rows: Vec<R>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DomainRow {
    resource: String,
    used: f64,
    #[serde(flatten)]
    of: Domain,
    refused_by: Option<String>,
    refused_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FindingRow {
    severity: String,
    kind: String,
    about: Option<String>,
    what: String,
    todo: String,
}

/// The revisions that a server lists.
#[derive(Debug, Deserialize)]
pub(super) struct HistoryPage {
    /// Where they stand; absent: the templates come from a file.
    prefix: Option<String>,
    rows: Vec<HistoryRow>,
}

#[derive(Debug, Deserialize)]
struct HistoryRow {
    number: u64,
    at: String,
    by: HistoryAuthor,
    message: String,
    ticket: Option<String>,
    rollback_of: Option<u64>,
    tasks_in_force: usize,
    tasks: usize,
}

#[derive(Debug, Deserialize)]
struct HistoryAuthor {
    name: String,
    #[serde(default)]
    verified: bool,
}

/// A line each.
pub(super) fn domains(page: &Rows<DomainRow>) -> String {
    let titles = ["resource", "domain", "used", "tier", "hits", "of", "a second", "clients", ""];
    let rows = page.rows.iter().map(|row| {
        [
            row.resource.clone(),
            row.of.domain.clone(),
            percent(row.used),
            row.of.tier.to_string(),
            row.of.hits_in_tier.to_string(),
            row.of.tier_limit.to_string(),
            row.of.hits_in_second.to_string(),
            row.of.clients.to_string(),
            row.notes(),
        ]
    });
    let text = table(titles, 2..8, rows);
    match page.rows.is_empty() {
        true => format!("{text}no domain is hot that clients tell each other of\n"),
        false => text,
    }
}

/// Two lines each: what is wrong, and what to do.
pub(super) fn findings(page: &Rows<FindingRow>) -> String {
    if page.rows.is_empty() {
        return "nothing is wrong that this node can see\n".to_owned();
    }
    let finding = |row: &FindingRow| {
        let about = row.about.as_ref().map(|about| format!(" {about}:")).unwrap_or_default();
        format!("{} {}:{about} {}\n    {}\n", row.severity.to_uppercase(), row.kind, row.what, row.todo)
    };
    page.rows.iter().map(finding).collect()
}

/// A line each.
pub(super) fn history(page: &HistoryPage) -> String {
    if page.prefix.is_none() {
        return "the templates come from a file, and nothing is kept of earlier ones\n".to_owned();
    }
    let rows = page.rows.iter().map(|row| {
        let unverified = if row.by.verified { "" } else { " (unverified)" };
        [
            row.number.to_string(),
            row.at.clone(),
            format!("{}{unverified}", row.by.name),
            format!("{} of {} tasks", row.tasks_in_force, row.tasks),
            row.headline(),
        ]
    });
    let text = table(["revision", "at", "by", "in force at", "message"], 0..1, rows);
    if page.rows.is_empty() { format!("{text}nothing has been pushed yet\n") } else { text }
}

/// Rows beneath their titles, some columns of them with what stands at the right.
fn table<const N: usize>(
    titles: [&str; N],
    right: std::ops::Range<usize>,
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(titles);
    for index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.add_rows(rows);
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

// === impl DomainRow ===

impl DomainRow {
    /// Until when it is refused, and until when a tier of it rests.
    fn notes(&self) -> String {
        let refused = self.refused_by.as_ref().map(|by| match self.refused_seconds {
            Some(seconds) => format!("refused by {by} for {} s", short(seconds)),
            None => format!("refused by {by}"),
        });
        let cooling = self.of.cooling_seconds.map(|seconds| format!("rests for {} s", short(seconds)));
        [refused, cooling].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

// === impl HistoryRow ===

impl HistoryRow {
    /// The first line of its message, with what belongs to it.
    fn headline(&self) -> String {
        let headline = self.message.lines().next().unwrap_or_default();
        let back = self.rollback_of.map(|number| format!(" (as {number})")).unwrap_or_default();
        let ticket = self.ticket.as_ref().map(|ticket| format!(" [{ticket}]")).unwrap_or_default();
        format!("{headline}{back}{ticket}")
    }
}
