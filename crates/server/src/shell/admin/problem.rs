//! Problem details: the answers to calls that come to nothing, as RFC 9457 has them.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use lessor_proto::message::Refusal;
use serde_json::{Map, Value};

use crate::shell::driver::Unanswered;

/// A problem with a call.
#[derive(Debug)]
pub(super) struct ActProblem {
    pub(super) status: u16,
    /// A description of what was found, and what was wanted.
    pub(super) detail: String,
    /// The methods that there are instead.
    pub(super) allow: Option<String>,
    /// Whatever a program may want to read besides.
    pub(super) more: Map<String, Value>,
}

/// Bytes of something that makes no sense which are written down.
const SHOWN: usize = 200;

// === impl ActProblem ===

impl ActProblem {
    pub(super) fn new(status: u16, detail: impl Into<String>) -> ActProblem {
        ActProblem { status, detail: detail.into(), allow: None, more: Map::new() }
    }

    /// The same with something that a program may want to read.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> ActProblem {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Something that the rules of access do not allow.
    pub(super) fn refused(refusal: &Refusal) -> ActProblem {
        let Refusal::Denied { reason, is_unknown, rule, .. } = refusal else {
            return ActProblem::new(403, refusal.to_string());
        };
        let problem = ActProblem::new(if *is_unknown { 401 } else { 403 }, refusal.to_string());
        let problem = problem.with("reason", *reason);
        match rule {
            Some(rule) => problem.with("rule", rule.as_str()),
            None => problem,
        }
    }

    /// Something that the node does not do.
    pub(super) fn unanswered(fault: &Unanswered) -> ActProblem {
        match fault {
            Unanswered::NotLeading(leader) => {
                let problem = ActProblem::new(409, fault.to_string());
                problem.with("leader", leader.address.clone())
            }
            Unanswered::Refused(_) => ActProblem::new(400, fault.to_string()),
            Unanswered::Broken => ActProblem::new(500, fault.to_string()),
            Unanswered::Ending | Unanswered::Late | Unanswered::Lapsed => {
                ActProblem::new(503, fault.to_string())
            }
        }
    }
}

impl From<ActProblem> for Response {
    fn from(problem: ActProblem) -> Response {
        let ActProblem { status, detail, allow, more } = problem;
        let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut body = Map::new();
        body.insert("type".to_owned(), "about:blank".into());
        body.insert("title".to_owned(), code.canonical_reason().unwrap_or("Error").into());
        body.insert("status".to_owned(), code.as_u16().into());
        body.insert("detail".to_owned(), detail.into());
        body.extend(more);
        let mut response = json(code.as_u16(), "application/problem+json", &Value::Object(body));
        if let Some(allow) = allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
            response.headers_mut().insert(header::ALLOW, allow);
        }
        response
    }
}

/// One line of JSON, which nobody keeps.
pub(super) fn json(status: u16, kind: &'static str, value: &Value) -> Response {
    let mut response = Response::new(Body::from(format!("{value}\n")));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The beginning of something that makes no sense.
pub(super) fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN)]
}
