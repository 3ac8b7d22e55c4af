//! `POST /v1/plan`: what other templates would change, here and at all nodes below.

use axum::body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::looks::unanswered_page;
use super::{PageRooms, may, refused_page};
use crate::access::Role;
use crate::repository::Glob;
use crate::revision::RevisionDocument;
use crate::shell::driver::{NotPlanned, PlanRequest};

/// The body of a request for a plan.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlanBody {
    /// The documents, as a push would have them.
    pub documents: Vec<PlanBodyDocument>,
    /// Resources only whose names match this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Patterns of clients that are asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<String>,
}

/// A document of a plan.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlanBodyDocument {
    /// The name of a node, or a glob of names.
    #[serde(rename = "for")]
    pub nodes: String,
    /// The name of the file, as faults show it.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Bytes of a body.
const MOST_BYTES: usize = 2 << 20;

/// The plan, in JSON.
pub(super) async fn plan(State(rooms): State<PageRooms>, request: Request) -> Response {
    if let Err(refused) = may(&rooms, &request, Role::Plan, None) {
        return refused_page(&refused);
    }
    let kind = request.headers().get(header::CONTENT_TYPE).map(header::HeaderValue::as_bytes);
    if kind.is_none_or(|kind| !kind.starts_with(b"application/json")) {
        // A form in somebody's browser cannot send that.
        let fault = "content-type: is missing or another; wanted application/json\n";
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, fault).into_response();
    }
    let Ok(bytes) = body::to_bytes(request.into_body(), MOST_BYTES).await else {
        let fault = format!("the body does not come, or has too much; wanted at most {MOST_BYTES} bytes\n");
        return (StatusCode::PAYLOAD_TOO_LARGE, fault).into_response();
    };
    let asked = match serde_json::from_slice::<PlanBody>(&bytes) {
        Ok(asked) => asked,
        Err(fault) => return bad(&fault.to_string()),
    };
    let request = match asked.read() {
        Ok(request) => request,
        Err(fault) => return bad(&fault),
    };
    match rooms.driver.plan(&request).await {
        Ok(plan) => axum::Json(plan).into_response(),
        Err(NotPlanned::Faults(faults)) => bad(&faults),
        Err(NotPlanned::Busy(fault)) => {
            let headers = [(header::RETRY_AFTER, "2")];
            (StatusCode::TOO_MANY_REQUESTS, headers, format!("{fault}\n")).into_response()
        }
        Err(NotPlanned::Unanswered(fault)) => unanswered_page(fault),
    }
}

fn bad(fault: &str) -> Response {
    (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response()
}

// === impl PlanBody ===

impl PlanBody {
    fn read(self) -> Result<PlanRequest, String> {
        let glob = |field: &'static str| {
            move |glob: &String| Glob::new(glob).map_err(|fault| format!("{field}: {fault}"))
        };
        let document = |document: PlanBodyDocument| {
            let known = RevisionDocument::new(&document.nodes, document.name, &document.text);
            (known, document.text)
        };
        Ok(PlanRequest {
            matching: self.resource.as_ref().map(glob("resource")).transpose()?,
            watched: self.watch.iter().map(glob("watch")).collect::<Result<_, _>>()?,
            documents: self.documents.into_iter().map(document).collect(),
        })
    }
}
