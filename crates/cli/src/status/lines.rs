//! Resources, a line each, the fullest first.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, Table, presets};

use super::node::{NodePage, Resource, short, wanted};

/// The resources of these pages, which are of one node; each once.
pub(super) fn display(pages: &[NodePage]) -> String {
    let Some(first) = pages.first() else { return String::new() };
    let mut text = first.heading();
    if !first.leads() {
        return text;
    }
    let mut seen = BTreeSet::new();
    let all = pages.iter().flat_map(|page| &page.status.resources);
    let mut rows: Vec<&Resource> = all.filter(|row| seen.insert(row.resource.as_str())).collect();
    if rows.is_empty() {
        let is_any = pages.iter().any(|page| page.status.resources_in_all > 0);
        let what = if is_any { "no resource has such a name" } else { "nobody holds or wants anything" };
        text.push_str(&format!("{what}\n"));
        return text;
    }
    rows.sort_by(|one, other| {
        let key = |row: &Resource| (row.overcommitment > 0.0, fullness(row), row.short);
        let ((one_over, one_full, one_short), (over, full, short)) = (key(one), key(other));
        over.cmp(&one_over)
            .then(full.total_cmp(&one_full))
            .then(short.total_cmp(&one_short))
            .then_with(|| one.resource.cmp(&other.resource))
    });
    text.push_str(&table(&rows));
    let most = pages.iter().map(|page| page.status.resources_in_all).max().unwrap_or(0);
    if pages.len() == 1 && rows.len() >= super::MOST && most > rows.len() {
        let more = most - rows.len();
        text.push_str(&format!(
            "… the busiest of {most}; name a pattern to see others of the {more} that are left\n"
        ));
    }
    text
}

/// The part of the capacity that is out; all of it where there is none and some is wanted.
pub(crate) fn fullness(row: &Resource) -> f64 {
    match (row.capacity > 0.0, row.wants > 0.0) {
        (true, _) => row.outstanding / row.capacity,
        (false, is_wanted) => f64::from(u8::from(is_wanted)),
    }
}

fn table(rows: &[&Resource]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["resource", "full", "out", "of", "wanted", "short", "clients", ""]);
    for index in 1..7 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in rows {
        let unit = if row.kind == "gauge" { "" } else { "/s" };
        table.add_row([
            row.resource.clone(),
            format!("{:.0}%", (fullness(row) * 100.0).min(9_999.0)),
            short(row.outstanding),
            format!("{}{unit}", short(row.capacity)),
            wanted(row.wants),
            if row.short > 0.0 { short(row.short) } else { "-".to_owned() },
            row.clients.to_string(),
            notes(row),
        ]);
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A part as people read it: no part is none, and none is all.
fn percent(part: f64) -> String {
    format!("{:.0}%", (part * 100.0).clamp(1.0, 99.0))
}

/// Everything that is out of the ordinary, in a word each.
pub(crate) fn notes(row: &Resource) -> String {
    let mut notes = Vec::new();
    if row.overcommitment > 0.0 {
        notes.push(format!("OVER-COMMITTED by {}", short(row.overcommitment)));
    }
    if row.in_debt {
        notes.push("in debt".to_owned());
    }
    if row.frozen {
        notes.push("frozen".to_owned());
    }
    if let Some(beside) = row.beside {
        notes.push(format!("tries {} beside", short(beside)));
    }
    if row.accompanied().is_some() {
        notes.push("tried, NOT ENFORCED".to_owned());
    } else if row.unenforced >= 1.0 {
        notes.push("NOT ENFORCED".to_owned());
    } else if row.unenforced > 0.0 {
        notes.push(format!("NOT ENFORCED by {}", percent(row.unenforced)));
    }
    if row.unenforced > 0.0 && row.unenforced_asked > 0 {
        notes.push(format!("would refuse {}", row.refused_part()));
    }
    if row.domains_unenforced {
        notes.push("domains not enforced".to_owned());
    }
    if !row.overrides.is_empty() {
        notes.push(format!("override {}", row.overrides.join(" ")));
    }
    if row.learning {
        notes.push(format!("learning for {:.0} s", row.learning_ends_in_seconds));
    }
    if row.ghost > 0.0 {
        notes.push(format!("ghost {}", short(row.ghost)));
    }
    if row.template.is_none() {
        notes.push("no template".to_owned());
    }
    if let Some(seconds) = row.lease_ends_in_seconds {
        notes.push(if seconds > 0.0 {
            format!("lease {seconds:.0} s")
        } else {
            "no lease from above".to_owned()
        });
    }
    notes.join(", ")
}
