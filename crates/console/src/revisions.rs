//! `/v1/tasks`, `/v1/history`, `/v1/revision` and `/v1/diff`: the templates as operators have pushed them into etcd.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use lessor_server::access::Role;
use lessor_server::revision::TaskReport;
use serde::Serialize;

use crate::desk::Desk;
use crate::diff::{DocumentChange, changes};
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};
use crate::shelf::{RevisionLine, Shelf};

/// The list of tasks.
#[derive(Serialize)]
struct ListedTasks<'a> {
    /// Whether these are all tasks that follow the templates at etcd, or only the one that answers.
    are_all: bool,
    rows: Vec<TaskLine<'a>>,
}

/// A task in a list.
#[derive(Serialize)]
struct TaskLine<'a> {
    node: &'a str,
    address: &'a str,
    leads: bool,
    stands: bool,
    in_force: u64,
    record: u64,
    head_seen: u64,
    refused: Option<&'a lessor_server::revision::RefusedRevision>,
    version: &'a str,
    features: u32,
}

/// The list of revisions, the newest first.
#[derive(Serialize)]
struct ListedRevisions<'a> {
    /// Where they stand; absent: the templates come from a file, and nothing is kept of earlier ones.
    prefix: Option<&'a str>,
    rows: Vec<RevisionRow<'a>>,
    /// Give it as `after` to have the next page.
    next: Option<u64>,
}

/// A revision, and the tasks that have it in force.
#[derive(Serialize)]
struct RevisionRow<'a> {
    #[serde(flatten)]
    line: &'a RevisionLine,
    tasks_in_force: usize,
    tasks: usize,
}

/// The difference of two revisions.
#[derive(Serialize)]
struct Compared {
    from: u64,
    to: u64,
    documents: Vec<DocumentChange>,
}

/// The shelf of a desk.
fn shelf(desk: &Desk) -> Result<&Shelf, ApiProblem> {
    desk.shelf.as_deref().ok_or_else(|| {
        ApiProblem::missing(
            "the templates come from a file, of which no earlier ones are kept (--config etcd:PREFIX)",
        )
    })
}

/// Answers `/v1/tasks`.
pub(crate) async fn tasks(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    Parameters::read(request.uri(), &[])?;
    desk.may(&request, Role::See, None)?;
    if let Some(shelf) = &desk.shelf {
        let tasks = shelf.tasks().await?;
        let rows = tasks.iter().map(TaskLine::of_report).collect();
        return Ok(Answer::new(ListedTasks { are_all: true, rows }).into_response());
    }
    let summary = desk.summary().await?;
    let driver = &desk.parts.driver;
    let (build, node, _) = driver.identity();
    let whereabouts = driver.whereabouts();
    let version = summary.status.config_version;
    let line = TaskLine {
        node,
        address: whereabouts.leader.address.as_deref().filter(|_| whereabouts.is_leader).unwrap_or_default(),
        leads: whereabouts.is_leader,
        stands: true,
        in_force: version,
        record: version,
        head_seen: version,
        refused: None,
        version: &build.version,
        features: lessor_server::revision::FEATURE_LEVEL,
    };
    Ok(Answer::new(ListedTasks { are_all: false, rows: vec![line] }).into_response())
}

/// Answers `/v1/history`.
pub(crate) async fn history(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    let asked = Parameters::read(request.uri(), &["limit", "after"])?;
    desk.may(&request, Role::See, None)?;
    let limit = asked.limit()?;
    let after = asked.number("after", (1, u64::MAX))?.unwrap_or(u64::MAX);
    let Some(shelf) = &desk.shelf else {
        let none = ListedRevisions { prefix: None, rows: Vec::new(), next: None };
        return Ok(Answer::new(none).into_response());
    };
    let (lines, tasks) = (shelf.newest().await?, shelf.tasks().await?);
    let mut rows: Vec<RevisionRow<'_>> = Vec::new();
    let mut next = None;
    for line in lines.iter().filter(|line| line.revision.number < after) {
        if rows.len() == limit {
            next = rows.last().map(|row| row.line.revision.number);
            break;
        }
        let number = line.revision.number;
        let tasks_in_force = tasks.iter().filter(|task| task.in_force == number).count();
        rows.push(RevisionRow { line, tasks_in_force, tasks: tasks.len() });
    }
    let prefix = Some(shelf.prefix());
    Ok(Answer::new(ListedRevisions { prefix, rows, next }).into_response())
}

/// Answers `/v1/revision`.
pub(crate) async fn revision(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    let asked = Parameters::read(request.uri(), &["number"])?;
    desk.may(&request, Role::See, None)?;
    let number = numbered(&asked, "number")?;
    Ok(Answer::new(shelf(&desk)?.whole(number).await?).into_response())
}

/// Answers `/v1/diff`.
pub(crate) async fn diff(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    let asked = Parameters::read(request.uri(), &["from", "to"])?;
    desk.may(&request, Role::See, None)?;
    let (from, to) = (numbered(&asked, "from")?, numbered(&asked, "to")?);
    let shelf = shelf(&desk)?;
    let (one, other) = (shelf.whole(from).await?, shelf.whole(to).await?);
    let documents = changes(&one.documents(), &other.documents());
    Ok(Answer::new(Compared { from, to, documents }).into_response())
}

fn numbered(asked: &Parameters, name: &str) -> Result<u64, ApiProblem> {
    asked.required(name, "the number of a revision")?;
    Ok(asked.number(name, (1, u64::MAX))?.unwrap_or(1))
}

// === impl TaskLine ===

impl TaskLine<'_> {
    fn of_report(report: &TaskReport) -> TaskLine<'_> {
        TaskLine {
            node: &report.node,
            address: &report.address,
            leads: report.leads,
            stands: report.stands,
            in_force: report.in_force,
            record: report.record,
            head_seen: report.head_seen,
            refused: report.refused.as_ref(),
            version: &report.binary,
            features: report.features,
        }
    }
}
