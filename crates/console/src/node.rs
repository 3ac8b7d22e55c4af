//! `/v1/node`: the task that answers, the node that it belongs to, and what it follows; `/v1/here`, which task that is.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use lessor_client::internals::clock;
use lessor_server::access::Role;
use lessor_server::node::{NamesStatus, OtherResources, Tally};
use lessor_server::revision::RefusedRevision;
use lessor_server::shell::driver::{NotReady, Summary};
use serde::Serialize;

use crate::desk::{Desk, brief, seconds};
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};

/// A task, and its node.
#[derive(Debug, Serialize)]
pub(crate) struct NodeLine {
    node: String,
    version: String,
    commit: String,
    /// Text, as it is a greater number than many programs can read.
    epoch: String,
    /// Whether this task leads.
    leads: bool,
    /// The address of the task that does, if it is known.
    leader: Option<String>,
    /// Servers of the node above.
    above: Vec<String>,
    has_reached_above: Option<bool>,
    #[serde(flatten)]
    names: NamesStatus,
    config_version: u64,
    later_config: Option<u64>,
    templates: Option<TemplateLine>,
    failed_reloads: u64,
    ready: bool,
    /// Why it is not ready.
    not_ready: Option<String>,
    /// The reason in one word.
    not_ready_reason: Option<&'static str>,
    leading_seconds: f64,
    /// Absent where it is the only task.
    authority_seconds: Option<f64>,
    etcd_healthy: Option<bool>,
    state_fault: Option<String>,
    streams: usize,
    older_streams: usize,
    resources_in_all: usize,
    others: OtherResources,
    tally: Tally,
    /// The time for which figures are kept, and the time from one to the next.
    history_seconds: f64,
    step_seconds: f64,
    /// Whether this is the port of operators.
    is_of_operators: bool,
}

/// The very task that answers, whoever leads its node.
#[derive(Debug, Serialize)]
struct HereLine {
    node: String,
    leads: bool,
    /// The address of the task that leads, if it is known.
    leader: Option<String>,
    is_of_operators: bool,
}

/// The templates, where they are followed at etcd.
#[derive(Debug, Serialize)]
struct TemplateLine {
    in_force: u64,
    refused: Option<RefusedRevision>,
    conflict: bool,
    read_seconds_ago: Option<f64>,
}

// === impl NodeLine ===

impl NodeLine {
    pub(crate) fn new(desk: &Desk, summary: &Summary) -> NodeLine {
        let driver = &desk.parts.driver;
        let (build, _, above) = driver.identity();
        let (whereabouts, status, readiness) = (driver.whereabouts(), &summary.status, driver.readiness());
        let now = clock::now();
        let templates = driver.template_status().map(|templates| TemplateLine {
            in_force: templates.in_force,
            refused: templates.refused,
            conflict: templates.is_in_conflict,
            read_seconds_ago: templates.read_at.map(|at| brief(seconds(at, now))),
        });
        NodeLine {
            node: status.node.clone(),
            version: build.version.clone(),
            commit: build.commit.clone(),
            epoch: status.epoch.to_string(),
            leads: whereabouts.is_leader,
            leader: whereabouts.leader.address,
            above: above.iter().map(ToString::to_string).collect(),
            has_reached_above: driver.has_reached_parent(),
            names: status.names.clone(),
            config_version: status.config_version,
            later_config: status.later_config,
            templates,
            failed_reloads: driver.failed_reloads(),
            ready: readiness.is_ok(),
            not_ready: readiness.as_ref().err().map(ToString::to_string),
            not_ready_reason: readiness.as_ref().err().map(NotReady::reason),
            leading_seconds: brief(status.leading_seconds),
            authority_seconds: driver.authority_seconds().map(brief),
            etcd_healthy: driver.is_etcd_healthy(),
            state_fault: driver.state_fault().flatten(),
            streams: summary.streams,
            older_streams: summary.older_streams,
            resources_in_all: status.resources_in_all,
            others: status.others.unwrap_or_default(),
            tally: status.tally,
            history_seconds: desk.series.history().as_secs_f64(),
            step_seconds: desk.series.step().as_secs_f64(),
            is_of_operators: desk.is_of_operators,
        }
    }
}

/// Answers `/v1/node`.
pub(crate) async fn node(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    Parameters::read(request.uri(), &[])?;
    desk.may(&request, Role::See, None)?;
    let summary = desk.summary().await?;
    Ok(Answer::new(NodeLine::new(&desk, &summary)).into_response())
}

/// Answers `/v1/here`.
pub(crate) async fn here(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    Parameters::read(request.uri(), &[])?;
    desk.may(&request, Role::See, None)?;
    let driver = &desk.parts.driver;
    let (whereabouts, (_, node, _)) = (driver.whereabouts(), driver.identity());
    let line = HereLine {
        node: node.to_owned(),
        leads: whereabouts.is_leader,
        leader: whereabouts.leader.address,
        is_of_operators: desk.is_of_operators,
    };
    Ok(Answer::new(line).into_response())
}
