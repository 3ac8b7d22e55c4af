//! `/v1/domains`: the hot domains, with what each of their tiers does and until when they are refused.
//!
//! A server knows only domains of scope `shared` of which clients have told it: those of which much is used.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use lessor_server::access::Role;
use lessor_server::domain_sync::DomainStatus;
use serde::Serialize;

use crate::desk::{Desk, amount, brief};
use crate::parameters::{MOST_ROWS, Parameters};
use crate::problem::{Answer, ApiProblem};
use crate::table::{Cell, Column, ColumnKind, Table};

/// A domain in a list.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct DomainLine {
    resource: String,
    /// The part of the limit of its tier that is used.
    used: f64,
    #[serde(flatten)]
    status: DomainStatus,
}

const TABLE: Table<DomainLine> = Table {
    columns: &[
        Column { name: "resource", kind: ColumnKind::Text, of: |line| Cell::text(&line.resource) },
        Column { name: "domain", kind: ColumnKind::Text, of: |line| Cell::text(&line.status.domain) },
        Column { name: "used", kind: ColumnKind::Number, of: |line| Cell::Number(line.used) },
        Column {
            name: "clients",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.status.clients as f64),
        },
        Column {
            name: "hits_in_second",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.status.hits_in_second.into()),
        },
        Column { name: "tier", kind: ColumnKind::Number, of: |line| Cell::Number(line.status.tier as f64) },
        Column {
            name: "hits_in_tier",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.status.hits_in_tier.into()),
        },
        Column {
            name: "tier_limit",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.status.tier_limit.into()),
        },
        Column {
            name: "cooling_seconds",
            kind: ColumnKind::Number,
            of: |line| Cell::maybe(line.status.cooling_seconds),
        },
        Column {
            name: "refused_by",
            kind: ColumnKind::Text,
            of: |line| line.status.refused_by.map_or(Cell::Absent, Cell::text),
        },
        Column {
            name: "refused_seconds",
            kind: ColumnKind::Number,
            of: |line| Cell::maybe(line.status.refused_seconds),
        },
    ],
    id: &["resource", "domain"],
    order: "-used",
};

/// The domains of one resource, as far as they are told of.
#[derive(Serialize)]
struct Exchange {
    resource: String,
    /// Clients that tell each other.
    clients: usize,
    told: usize,
    hot: usize,
    passed_over: u64,
}

/// The list.
#[derive(Serialize)]
struct ListedDomains<'a> {
    /// Resources of which domains are shared.
    exchanges: Vec<Exchange>,
    looked_at: usize,
    matching: usize,
    rows: Vec<&'a DomainLine>,
    next: Option<String>,
}

/// Resources of which domains are looked at, where none is named.
const MOST_RESOURCES: usize = 50;

// === impl DomainLine ===

impl DomainLine {
    fn new(resource: &str, mut status: DomainStatus) -> DomainLine {
        let used = f64::from(status.hits_in_tier) / f64::from(status.tier_limit.max(1));
        status.cooling_seconds = status.cooling_seconds.map(brief);
        status.refused_seconds = status.refused_seconds.map(brief);
        for tier in &mut status.tiers {
            tier.ends_in_seconds = tier.ends_in_seconds.map(brief);
        }
        DomainLine { resource: resource.to_owned(), used: amount(used), status }
    }
}

/// Answers `/v1/domains`.
pub(crate) async fn domains(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    let asked = Parameters::read(request.uri(), &["resource", "where", "sort", "limit", "after"])?;
    let resource = asked.text("resource");
    desk.may(&request, Role::See, resource)?;
    let names: Vec<String> = match resource {
        Some(resource) => vec![resource.to_owned()],
        None => shared(&desk).await?,
    };
    let most = (MOST_ROWS / names.len().max(1)).max(1);
    let (mut exchanges, mut lines) = (Vec::new(), Vec::new());
    for name in names {
        let Some(status) = desk.parts.driver.domains(&name, most) else { continue };
        lines.extend(status.busiest.into_iter().map(|domain| DomainLine::new(&name, domain)));
        let (clients, told, hot) = (status.clients, status.told, status.hot);
        exchanges.push(Exchange { resource: name, clients, told, hot, passed_over: status.passed_over });
        tokio::task::yield_now().await;
    }
    let page = TABLE.page(&lines, &asked)?;
    let listed = ListedDomains {
        exchanges,
        looked_at: lines.len(),
        matching: page.matching,
        rows: page.rows,
        next: page.next,
    };
    Ok(Answer::new(listed).into_response())
}

/// The resources of which domains are shared, those with the most hot ones first.
async fn shared(desk: &Desk) -> Result<Vec<String>, ApiProblem> {
    let summary = desk.summary().await?;
    let rows = summary.status.resources.iter().filter_map(|row| {
        let hot = row.resource.domains.as_ref()?.hot;
        Some((std::cmp::Reverse(hot), &row.resource.resource))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    Ok(rows.into_iter().take(MOST_RESOURCES).map(|(_, name)| name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_line_but_its_tiers_can_be_filtered_and_sorted() {
        let status = DomainStatus {
            domain: "acme".to_owned(),
            clients: 2,
            hits_in_second: 3,
            tier: 1,
            hits_in_tier: 3,
            tier_limit: 4,
            cooling_seconds: None,
            refused_by: None,
            refused_seconds: None,
            tiers: Vec::new(),
        };
        let value = serde_json::to_value(DomainLine::new("db", status)).expect("it can be written");
        let fields: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
        let mut columns: Vec<&str> =
            TABLE.columns.iter().map(|column| column.name).chain(["tiers"]).collect();
        columns.sort_unstable();
        assert_eq!((fields, &value["used"]), (columns, &0.75.into()));
    }
}
