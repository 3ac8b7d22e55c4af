//! The problem of a request: what is wrong with it, as JSON, so that whoever sent it can mend it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lessor_proto::message::Refusal;
use lessor_server::shell::driver::Unanswered;
use serde::Serialize;
use serde_json::json;

/// The edition of the form of all answers.
pub(crate) const SCHEMA: u32 = 1;

/// The reason why a request is not answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ApiProblem {
    pub(crate) code: StatusCode,
    pub(crate) error: String,
    /// The words that would have been known in its place.
    pub(crate) known: Vec<&'static str>,
    /// The task that leads, if that is another and known.
    leader: Option<String>,
    retry_seconds: Option<u64>,
}

/// An answer of the API.
#[derive(Serialize)]
pub(crate) struct Answer<T> {
    schema: u32,
    #[serde(flatten)]
    content: T,
}

// === impl ApiProblem ===

impl ApiProblem {
    pub(crate) fn new(code: StatusCode, error: impl Into<String>) -> ApiProblem {
        ApiProblem { code, error: error.into(), known: Vec::new(), leader: None, retry_seconds: None }
    }

    /// A parameter or field holds what it must not.
    pub(crate) fn invalid(field: &str, found: &str, wanted: &str) -> ApiProblem {
        ApiProblem::new(StatusCode::BAD_REQUEST, format!("{field}: found {found:?}; wanted {wanted}"))
    }

    pub(crate) fn missing(error: impl Into<String>) -> ApiProblem {
        ApiProblem::new(StatusCode::NOT_FOUND, error)
    }

    /// The same with the words that are known.
    pub(crate) fn knowing(self, known: impl IntoIterator<Item = &'static str>) -> ApiProblem {
        ApiProblem { known: known.into_iter().collect(), ..self }
    }

    /// A problem of somebody who asks too often.
    pub(crate) fn too_often(error: &str) -> ApiProblem {
        ApiProblem { retry_seconds: Some(1), ..ApiProblem::new(StatusCode::TOO_MANY_REQUESTS, error) }
    }
}

impl From<Unanswered> for ApiProblem {
    fn from(fault: Unanswered) -> ApiProblem {
        let code = match &fault {
            Unanswered::Refused(_) => StatusCode::BAD_REQUEST,
            Unanswered::NotLeading(_) => StatusCode::CONFLICT,
            Unanswered::Late | Unanswered::Ending | Unanswered::Lapsed => StatusCode::SERVICE_UNAVAILABLE,
            Unanswered::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let problem = ApiProblem::new(code, fault.to_string());
        match fault {
            Unanswered::NotLeading(leader) => ApiProblem { leader: leader.address, ..problem },
            _ => problem,
        }
    }
}

impl From<Refusal> for ApiProblem {
    fn from(refusal: Refusal) -> ApiProblem {
        let code = match refusal {
            Refusal::Denied { is_unknown: true, .. } => StatusCode::UNAUTHORIZED,
            _ => StatusCode::FORBIDDEN,
        };
        ApiProblem::new(code, refusal.to_string())
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let mut body = json!({"schema": SCHEMA, "error": self.error});
        if !self.known.is_empty() {
            body["known"] = json!(self.known);
        }
        if let Some(leader) = self.leader {
            body["leader"] = json!(leader);
        }
        let mut response = (self.code, Json(body)).into_response();
        if let Some(seconds) = self.retry_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

// === impl Answer ===

impl<T: Serialize> Answer<T> {
    pub(crate) fn new(content: T) -> Answer<T> {
        Answer { schema: SCHEMA, content }
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}
