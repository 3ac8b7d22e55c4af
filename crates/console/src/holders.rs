//! `/v1/holders`: who holds or wants a resource, with what each misses.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use lessor_server::access::Role;
use lessor_server::resource::{BandShare, HolderStatus};
use serde::Serialize;

use crate::desk::{Desk, amount, brief};
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};
use crate::resources::unit;
use crate::table::{Cell, Column, ColumnKind, Table};

/// A holder in a list.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct HolderLine {
    client: String,
    /// `client` or `node`.
    kind: &'static str,
    /// The life of the id, as a mark.
    session: String,
    has: f64,
    wants: f64,
    share: f64,
    /// The amount that it has less than its share.
    short: f64,
    /// The number of clients that it stands for.
    weight: u64,
    wants_per_weight: f64,
    has_per_weight: f64,
    priority: i64,
    state: &'static str,
    superseded: bool,
    ends_in_seconds: f64,
    heard_seconds_ago: f64,
    /// Its demands, where there are several.
    bands: Vec<BandShare>,
}

const TABLE: Table<HolderLine> = Table {
    columns: &[
        Column { name: "client", kind: ColumnKind::Text, of: |line| Cell::text(&line.client) },
        Column { name: "kind", kind: ColumnKind::Text, of: |line| Cell::text(line.kind) },
        Column { name: "session", kind: ColumnKind::Text, of: |line| Cell::text(&line.session) },
        Column { name: "has", kind: ColumnKind::Number, of: |line| Cell::Number(line.has) },
        Column { name: "wants", kind: ColumnKind::Number, of: |line| Cell::Number(line.wants) },
        Column { name: "share", kind: ColumnKind::Number, of: |line| Cell::Number(line.share) },
        Column { name: "short", kind: ColumnKind::Number, of: |line| Cell::Number(line.short) },
        Column { name: "weight", kind: ColumnKind::Number, of: |line| Cell::Number(line.weight as f64) },
        Column {
            name: "wants_per_weight",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.wants_per_weight),
        },
        Column {
            name: "has_per_weight",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.has_per_weight),
        },
        Column { name: "priority", kind: ColumnKind::Number, of: |line| Cell::Number(line.priority as f64) },
        Column { name: "state", kind: ColumnKind::Text, of: |line| Cell::text(line.state) },
        Column { name: "superseded", kind: ColumnKind::Truth, of: |line| Cell::Truth(line.superseded) },
        Column {
            name: "ends_in_seconds",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.ends_in_seconds),
        },
        Column {
            name: "heard_seconds_ago",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.heard_seconds_ago),
        },
    ],
    id: &["client", "session"],
    order: "-has",
};

/// The list.
#[derive(Serialize)]
struct ListedHolders<'a> {
    resource: &'a str,
    unit: &'static str,
    /// Holders of the resource.
    holders_in_all: usize,
    /// Those among which these were looked for: not all where there are very many.
    looked_at: usize,
    matching: usize,
    rows: Vec<&'a HolderLine>,
    next: Option<String>,
}

// === impl HolderLine ===

impl HolderLine {
    fn new(holder: &HolderStatus) -> HolderLine {
        let weight = holder.subclients.max(1) as f64;
        HolderLine {
            client: holder.client.clone(),
            kind: holder.kind,
            session: holder.session.clone(),
            has: amount(holder.has),
            wants: amount(holder.wants),
            share: amount(holder.share),
            short: amount((holder.share - holder.has).max(0.0)),
            weight: holder.subclients,
            wants_per_weight: amount(holder.wants / weight),
            has_per_weight: amount(holder.has / weight),
            priority: holder.priority,
            state: holder.state,
            superseded: holder.superseded,
            ends_in_seconds: brief(holder.ends_in_seconds),
            heard_seconds_ago: brief(holder.heard_seconds_ago),
            bands: holder.bands.iter().map(rounded).collect(),
        }
    }
}

fn rounded(band: &BandShare) -> BandShare {
    BandShare { wants: amount(band.wants), share: amount(band.share), ..*band }
}

/// Answers `/v1/holders`.
pub(crate) async fn holders(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    let asked = Parameters::read(request.uri(), &["resource", "where", "sort", "limit", "after"])?;
    let resource = asked.required("resource", "the name of one")?;
    desk.may(&request, Role::See, Some(resource))?;
    let summary = desk.close_look(resource).await?;
    let row = summary.status.resources.first();
    let row = row.ok_or_else(|| ApiProblem::missing(format!("nobody holds or wants {resource:?}")))?;
    let lines: Vec<HolderLine> = row.resource.holders.iter().map(HolderLine::new).collect();
    let page = TABLE.page(&lines, &asked)?;
    let listed = ListedHolders {
        resource,
        unit: unit(row.resource.kind),
        holders_in_all: row.resource.clients,
        looked_at: lines.len(),
        matching: page.matching,
        rows: page.rows,
        next: page.next,
    };
    Ok(Answer::new(listed).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_line_but_its_bands_can_be_filtered_and_sorted() {
        let status = HolderStatus {
            client: "web-1".to_owned(),
            kind: "client",
            session: "s".to_owned(),
            has: 1.0,
            wants: 3.0,
            share: 1.5,
            state: "waits",
            priority: 0,
            subclients: 2,
            ends_in_seconds: 10.0,
            heard_seconds_ago: 1.0,
            superseded: false,
            bands: Vec::new(),
        };
        let line = HolderLine::new(&status);
        assert_eq!((line.short, line.wants_per_weight, line.has_per_weight), (0.5, 1.5, 0.5));
        let value = serde_json::to_value(line).expect("it can be written");
        let fields: Vec<&String> = value.as_object().expect("an object").keys().collect();
        let mut columns: Vec<&str> =
            TABLE.columns.iter().map(|column| column.name).chain(["bands"]).collect();
        columns.sort_unstable();
        assert_eq!(fields, columns);
    }
}
