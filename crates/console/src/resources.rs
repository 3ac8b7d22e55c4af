//! `/v1/resources`: the busiest resources of the node, as they were published within the last second.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use lessor_server::access::Role;
use lessor_server::node::{OtherResources, ResourceRow};
use serde::Serialize;

use crate::desk::{Desk, amount, brief};
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};
use crate::table::{Cell, Column, ColumnKind, Table};

/// A resource in a list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct ResourceLine {
    pub(crate) resource: String,
    /// The template that covers it.
    template: Option<String>,
    /// `rate` or `gauge`.
    kind: &'static str,
    /// The unit of all amounts: `units_per_second` or `units`.
    unit: &'static str,
    algorithm: &'static str,
    pub(crate) capacity: f64,
    /// All that may be out.
    pub(crate) outstanding: f64,
    leased: f64,
    pub(crate) ghost: f64,
    pub(crate) mark: Option<f64>,
    pub(crate) wants: f64,
    /// The part of the capacity that is out, from 0 to 1.
    used: Option<f64>,
    short: f64,
    headroom: Option<f64>,
    /// The most that a client of the greatest and of the least priority gets; absent where all have what they want.
    pub(crate) level_top: Option<f64>,
    level_bottom: Option<f64>,
    pub(crate) clients: usize,
    subclients: u64,
    learning: bool,
    in_debt: bool,
    overcommitment: f64,
    /// Absent where there is no limit.
    safe_capacity_out: Option<f64>,
    recalls: u64,
    duplicate_client_ids: u64,
    domain_clients: Option<usize>,
    domains_told: Option<usize>,
    pub(crate) domains_hot: Option<usize>,
    #[serde(flatten)]
    pub(crate) times: ResourceTimes,
}

/// The times of a resource, which pass by themselves.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct ResourceTimes {
    learning_ends_in_seconds: f64,
    ghost_ends_in_seconds: f64,
    /// Absent where the capacity is configured.
    pub(crate) lease_ends_in_seconds: Option<f64>,
    saturated_seconds: f64,
}

const TABLE: Table<ResourceLine> = Table {
    columns: &[
        Column { name: "resource", kind: ColumnKind::Text, of: |line| Cell::text(&line.resource) },
        Column {
            name: "template",
            kind: ColumnKind::Text,
            of: |line| line.template.as_deref().map_or(Cell::Absent, Cell::text),
        },
        Column { name: "kind", kind: ColumnKind::Text, of: |line| Cell::text(line.kind) },
        Column { name: "unit", kind: ColumnKind::Text, of: |line| Cell::text(line.unit) },
        Column { name: "algorithm", kind: ColumnKind::Text, of: |line| Cell::text(line.algorithm) },
        Column { name: "capacity", kind: ColumnKind::Number, of: |line| Cell::Number(line.capacity) },
        Column { name: "outstanding", kind: ColumnKind::Number, of: |line| Cell::Number(line.outstanding) },
        Column { name: "leased", kind: ColumnKind::Number, of: |line| Cell::Number(line.leased) },
        Column { name: "ghost", kind: ColumnKind::Number, of: |line| Cell::Number(line.ghost) },
        Column { name: "mark", kind: ColumnKind::Number, of: |line| Cell::maybe(line.mark) },
        Column { name: "wants", kind: ColumnKind::Number, of: |line| Cell::Number(line.wants) },
        Column { name: "used", kind: ColumnKind::Number, of: |line| Cell::maybe(line.used) },
        Column { name: "short", kind: ColumnKind::Number, of: |line| Cell::Number(line.short) },
        Column { name: "headroom", kind: ColumnKind::Number, of: |line| Cell::maybe(line.headroom) },
        Column { name: "level_top", kind: ColumnKind::Number, of: |line| Cell::maybe(line.level_top) },
        Column { name: "level_bottom", kind: ColumnKind::Number, of: |line| Cell::maybe(line.level_bottom) },
        Column { name: "clients", kind: ColumnKind::Number, of: |line| Cell::Number(line.clients as f64) },
        Column {
            name: "subclients",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.subclients as f64),
        },
        Column { name: "learning", kind: ColumnKind::Truth, of: |line| Cell::Truth(line.learning) },
        Column { name: "in_debt", kind: ColumnKind::Truth, of: |line| Cell::Truth(line.in_debt) },
        Column {
            name: "overcommitment",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.overcommitment),
        },
        Column {
            name: "safe_capacity_out",
            kind: ColumnKind::Number,
            of: |line| Cell::maybe(line.safe_capacity_out),
        },
        Column { name: "recalls", kind: ColumnKind::Number, of: |line| Cell::Number(line.recalls as f64) },
        Column {
            name: "duplicate_client_ids",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.duplicate_client_ids as f64),
        },
        Column { name: "domain_clients", kind: ColumnKind::Number, of: |line| count(line.domain_clients) },
        Column { name: "domains_told", kind: ColumnKind::Number, of: |line| count(line.domains_told) },
        Column { name: "domains_hot", kind: ColumnKind::Number, of: |line| count(line.domains_hot) },
        Column {
            name: "learning_ends_in_seconds",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.times.learning_ends_in_seconds),
        },
        Column {
            name: "ghost_ends_in_seconds",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.times.ghost_ends_in_seconds),
        },
        Column {
            name: "lease_ends_in_seconds",
            kind: ColumnKind::Number,
            of: |line| Cell::maybe(line.times.lease_ends_in_seconds),
        },
        Column {
            name: "saturated_seconds",
            kind: ColumnKind::Number,
            of: |line| Cell::Number(line.times.saturated_seconds),
        },
    ],
    id: &["resource"],
    order: "-used",
};

fn count(count: Option<usize>) -> Cell<'static> {
    Cell::maybe(count.map(|count| count as f64))
}

/// The list.
#[derive(Serialize)]
struct ListedResources<'a> {
    node: &'a str,
    /// Text, as it is a greater number than many programs can read.
    epoch: String,
    /// Resources of the node.
    resources_in_all: usize,
    /// Those among which these were looked for.
    looked_at: usize,
    /// All the others, as one.
    others: OtherResources,
    matching: usize,
    rows: Vec<&'a ResourceLine>,
    next: Option<String>,
}

// === impl ResourceLine ===

impl ResourceLine {
    pub(crate) fn new(row: &ResourceRow) -> ResourceLine {
        let status = &row.resource;
        let level = |level: Option<f64>| level.filter(|level| level.is_finite()).map(amount);
        let domains = status.domains.as_ref();
        ResourceLine {
            resource: status.resource.clone(),
            template: status.template.clone(),
            kind: status.kind,
            unit: unit(status.kind),
            algorithm: status.algorithm,
            capacity: amount(status.capacity),
            outstanding: amount(row.outstanding),
            leased: amount(status.leased),
            ghost: amount(row.ghost),
            mark: row.mark.map(amount),
            wants: amount(status.wants),
            used: (status.capacity > 0.0).then(|| amount(row.outstanding / status.capacity)),
            short: amount(row.pressure.short),
            headroom: row.pressure.headroom.map(amount),
            level_top: level(row.pressure.level_top),
            level_bottom: level(row.pressure.level_bottom),
            clients: status.clients,
            subclients: status.subclients,
            learning: status.learning,
            in_debt: status.in_debt,
            overcommitment: amount(status.overcommitment),
            safe_capacity_out: status.safe_capacity_out.map(amount),
            recalls: row.recalls,
            duplicate_client_ids: status.duplicate_client_ids,
            domain_clients: domains.map(|domains| domains.clients),
            domains_told: domains.map(|domains| domains.told),
            domains_hot: domains.map(|domains| domains.hot),
            times: ResourceTimes {
                learning_ends_in_seconds: brief(status.learning_ends_in_seconds),
                ghost_ends_in_seconds: brief(row.ghost_ends_in_seconds),
                lease_ends_in_seconds: row.lease_ends_in_seconds.map(brief),
                saturated_seconds: brief(row.pressure.saturated_seconds),
            },
        }
    }

    /// Whether it is what `before` was so many seconds ago, but for times that have passed.
    pub(crate) fn is_still(&self, before: &ResourceLine, passed: f64) -> bool {
        self.times.follow(&before.times, passed) && {
            let aged = ResourceLine { times: self.times, ..before.clone() };
            *self == aged
        }
    }
}

/// The unit of the amounts of a resource of that kind.
pub(crate) fn unit(kind: &str) -> &'static str {
    if kind == "gauge" { "units" } else { "units_per_second" }
}

// === impl ResourceTimes ===

impl ResourceTimes {
    /// Whether they are what the earlier ones have come to after so many seconds.
    fn follow(&self, before: &ResourceTimes, passed: f64) -> bool {
        let near = |now: f64, then: f64| (now - (then - passed).max(0.0)).abs() < 1.0;
        let lease = match (self.lease_ends_in_seconds, before.lease_ends_in_seconds) {
            (Some(now), Some(then)) => near(now, then),
            (now, then) => now == then,
        };
        lease
            && near(self.learning_ends_in_seconds, before.learning_ends_in_seconds)
            && near(self.ghost_ends_in_seconds, before.ghost_ends_in_seconds)
    }
}

/// Answers `/v1/resources`.
pub(crate) async fn resources(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    let asked = Parameters::read(request.uri(), &["where", "sort", "limit", "after"])?;
    desk.may(&request, Role::See, None)?;
    let summary = desk.summary().await?;
    let status = &summary.status;
    let lines: Vec<ResourceLine> = status.resources.iter().map(ResourceLine::new).collect();
    let page = TABLE.page(&lines, &asked)?;
    let listed = ListedResources {
        node: &status.node,
        epoch: status.epoch.to_string(),
        resources_in_all: status.resources_in_all,
        looked_at: lines.len(),
        others: status.others.unwrap_or_default(),
        matching: page.matching,
        rows: page.rows,
        next: page.next,
    };
    Ok(Answer::new(listed).into_response())
}

#[cfg(test)]
mod tests;
