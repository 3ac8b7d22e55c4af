//! `/v1/check`: all that is wrong with a configuration, with its places.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lessor_server::access::Role;
use lessor_server::repository::Repository;
use lessor_server::shell::source::Document;
use serde::Serialize;

use crate::desk::Desk;
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};
use crate::tiers;

/// The outcome of a check.
#[derive(Serialize)]
struct Checked {
    valid: bool,
    faults: Vec<FaultLine>,
    /// Faults beside those.
    more_faults: usize,
    templates: Vec<TemplateName>,
    /// Names that a template stands before which matches everything.
    never_used: Vec<String>,
}

/// One fault.
#[derive(Serialize)]
struct FaultLine {
    line: usize,
    column: usize,
    message: String,
    snippet: String,
}

/// One template of what is valid.
#[derive(Serialize)]
struct TemplateName {
    glob: String,
    description: String,
    capacity: f64,
}

/// Faults that are told.
const MOST_FAULTS: usize = 100;

/// Answers `/v1/check`, to which the configuration is posted.
pub(crate) async fn check(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    Parameters::read(request.uri(), &[])?;
    desk.may(&request, Role::See, None)?;
    let body = tiers::body_of(&desk, request).await?;
    let text = String::from_utf8(body).map_err(|_| {
        ApiProblem::new(StatusCode::BAD_REQUEST, "body: found bytes that are no text; wanted YAML in UTF-8")
    })?;
    let checked = tiers::compute(&desk, move || checked(&text)).await?;
    Ok(Answer::new(checked).into_response())
}

fn checked(text: &str) -> Checked {
    match Repository::parse("pasted", text) {
        Ok(repository) => Checked {
            valid: true,
            faults: Vec::new(),
            more_faults: 0,
            never_used: repository.shadowed().map(|template| template.glob.to_string()).collect(),
            templates: repository
                .templates()
                .iter()
                .map(|template| TemplateName {
                    glob: template.glob.to_string(),
                    description: template.description.clone(),
                    capacity: template.capacity.as_f64(),
                })
                .collect(),
        },
        Err(faults) => {
            let told = faults.iter().take(MOST_FAULTS).map(|fault| FaultLine {
                line: fault.line,
                column: fault.column,
                message: fault.message.clone(),
                snippet: fault.snippet.clone(),
            });
            let told: Vec<FaultLine> = told.collect();
            let more_faults = faults.count() - told.len();
            Checked { valid: false, more_faults, faults: told, templates: Vec::new(), never_used: Vec::new() }
        }
    }
}
