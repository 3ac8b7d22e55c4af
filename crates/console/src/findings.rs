//! `/v1/findings`: what is wrong here, in words, with what to do about it.

mod node;
mod resources;
mod tasks;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use lessor_client::internals::clock;
use lessor_server::access::Role;
use lessor_server::shell::driver::Summary;
use serde::Serialize;

use self::node::SeenNode;
use crate::desk::Desk;
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};

/// Something that somebody should know of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub(crate) struct Finding {
    severity: Severity,
    /// One word for it.
    kind: &'static str,
    /// The resource, node or task that it is about; absent: this task.
    about: Option<String>,
    what: String,
    todo: &'static str,
}

/// The severity of a finding; the worst come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// Something that must not be is so.
    Fault,
    /// It will not mend itself.
    Warning,
    /// It passes, or is meant to be so.
    Note,
}

/// The list.
#[derive(Serialize)]
struct ListedFindings {
    rows: Vec<Finding>,
}

/// Findings of one kind that are told one by one.
const MOST_OF_A_KIND: usize = 20;

// === impl Finding ===

impl Finding {
    fn new(severity: Severity, kind: &'static str, what: impl Into<String>, todo: &'static str) -> Finding {
        Finding { severity, kind, about: None, what: what.into(), todo }
    }

    /// The same about something else than this task.
    fn about(self, about: &str) -> Finding {
        Finding { about: Some(about.to_owned()), ..self }
    }
}

/// All that is found, the worst first.
pub(crate) async fn of(desk: &Desk, summary: &Summary) -> Vec<Finding> {
    let mut found = SeenNode::new(desk, summary).findings();
    found.extend(resources::findings(&summary.status.resources));
    if let Some(tasks) = desk.shelf.as_ref().and_then(|shelf| shelf.known_tasks()) {
        found.extend(tasks::findings(&tasks));
    }
    bounded(found)
}

/// The worst first, and of each kind no more than anybody reads.
fn bounded(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort();
    let mut told: Vec<Finding> = Vec::new();
    for same in found.chunk_by(|one, other| (one.severity, one.kind) == (other.severity, other.kind)) {
        told.extend(same.iter().take(MOST_OF_A_KIND).cloned());
        if let Some(last) = same.get(MOST_OF_A_KIND) {
            let more = same.len() - MOST_OF_A_KIND;
            told.push(Finding::new(
                last.severity,
                last.kind,
                format!("and {more} more of the same"),
                last.todo,
            ));
        }
    }
    told
}

/// Answers `/v1/findings`.
pub(crate) async fn findings(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    Parameters::read(request.uri(), &[])?;
    desk.may(&request, Role::See, None)?;
    let summary = desk.summary().await?;
    Ok(Answer::new(ListedFindings { rows: of(&desk, &summary).await }).into_response())
}

/// The time until a date since 1970, in seconds; negative: since.
fn until(date: std::time::Duration) -> f64 {
    date.as_secs_f64() - clock::wall().since_epoch.as_secs_f64()
}

/// A time in words: `3 min`.
fn in_words(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    match seconds {
        0.0..90.0 => format!("{seconds:.0} s"),
        90.0..5_400.0 => format!("{:.0} min", seconds / 60.0),
        5_400.0..172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

/// A number as people write it: at most two places behind the point.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_come_first_and_no_kind_drowns_the_others() {
        let note = |name: usize| {
            Finding::new(Severity::Note, "ghost", "a ghost", "wait").about(&format!("r{name:03}"))
        };
        let mut found: Vec<Finding> = (0..50).map(note).collect();
        found.push(Finding::new(Severity::Fault, "overcommitted", "too much", "tell us"));
        let told = bounded(found);
        assert_eq!((told.len(), told[0].kind), (22, "overcommitted"));
        assert_eq!(told[21].what, "and 30 more of the same");
    }

    #[test]
    fn times_and_numbers_are_short() {
        assert_eq!([20.0, 100.0, 7_200.0, 400_000.0].map(in_words), ["20 s", "2 min", "2 h", "5 days"]);
        assert_eq!([0.0, 1.5, 100.0, 3.333].map(number), ["0", "1.5", "100", "3.33"]);
    }
}
