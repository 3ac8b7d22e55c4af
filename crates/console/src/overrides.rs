//! `/v1/overrides`: what operators have put above the templates, until when, and why.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use lessor_server::access::Role;
use lessor_server::overrides::OverrideStatus;
use serde::Serialize;

use crate::desk::{Desk, brief};
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};
use crate::table::{Cell, Column, ColumnKind, Table};

const TABLE: Table<OverrideStatus> = Table {
    columns: &[
        Column { name: "id", kind: ColumnKind::Text, of: |line| Cell::text(&line.id) },
        Column { name: "kind", kind: ColumnKind::Text, of: |line| Cell::text(line.kind) },
        Column { name: "what", kind: ColumnKind::Text, of: |line| Cell::text(&line.what) },
        Column { name: "reason", kind: ColumnKind::Text, of: |line| Cell::text(&line.reason) },
        Column { name: "by", kind: ColumnKind::Text, of: |line| Cell::text(&line.by) },
        Column { name: "is_verified", kind: ColumnKind::Truth, of: |line| Cell::Truth(line.is_verified) },
        Column {
            name: "ends_in_seconds",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.ends_in_seconds),
        },
    ],
    id: &["id"],
    order: "ends_in_seconds",
};

/// The list.
#[derive(Serialize)]
struct ListedOverrides<'a> {
    /// Whether this task leads: no other knows of any.
    leads: bool,
    matching: usize,
    rows: Vec<&'a OverrideStatus>,
    next: Option<String>,
}

/// Answers `/v1/overrides`.
pub(crate) async fn overrides(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    let asked = Parameters::read(request.uri(), &["where", "sort", "limit", "after"])?;
    desk.may(&request, Role::See, None)?;
    let summary = desk.summary().await?;
    let lines: Vec<OverrideStatus> = summary.status.overrides.iter().map(line).collect();
    let page = TABLE.page(&lines, &asked)?;
    let leads = desk.parts.driver.whereabouts().is_leader;
    Ok(Answer::new(ListedOverrides { leads, matching: page.matching, rows: page.rows, next: page.next })
        .into_response())
}

fn line(status: &OverrideStatus) -> OverrideStatus {
    OverrideStatus { ends_in_seconds: brief(status.ends_in_seconds), ..status.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_line_can_be_filtered_and_sorted() {
        let status = OverrideStatus {
            id: "a1".to_owned(),
            kind: "freeze",
            what: "db is frozen".to_owned(),
            reason: "the disk is full".to_owned(),
            by: "ann".to_owned(),
            is_verified: true,
            ends_in_seconds: 3.000_4,
        };
        let value = serde_json::to_value(line(&status)).expect("it can be written");
        let fields: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
        let mut columns: Vec<&str> = TABLE.columns.iter().map(|column| column.name).collect();
        columns.sort_unstable();
        assert_eq!((fields, &value["ends_in_seconds"]), (columns, &3.0.into()));
    }
}
