//! The pages of the whole tree, as seen from the node that is asked: `/v1/tree` and `/v1/find`.

use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lessor_proto::{ClientId, ResourceId};
use serde::Deserialize;

use super::{LONGEST_NAME, PageRooms, may, may_see, refused_page};
use crate::access::Role;
use crate::look::tree::TreeQuery;
use crate::repository::Glob;
use crate::shell::driver::{FoundClients, Unanswered};

/// The parameters of `/v1/tree`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeParameters {
    resources: Option<usize>,
    matching: Option<String>,
}

/// The parameters of `/v1/find`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindParameters {
    resource: String,
    client: String,
}

/// The tree, in JSON.
pub(super) async fn tree(
    State(rooms): State<PageRooms>,
    Query(asked): Query<TreeParameters>,
    request: Request,
) -> Response {
    if let Err(refused) = may_see(&rooms, &request, None) {
        return refused_page(&refused);
    }
    let [usual, most] = TreeQuery::RESOURCES;
    let resources = asked.resources.unwrap_or(usual);
    if resources > most {
        let fault = format!("resources: {resources} is too many; wanted at most {most}\n");
        return (StatusCode::BAD_REQUEST, fault).into_response();
    }
    let matching = match asked.matching.as_deref().map(Glob::new).transpose() {
        Ok(matching) => matching,
        Err(fault) => return (StatusCode::BAD_REQUEST, format!("matching: {fault}\n")).into_response(),
    };
    match rooms.driver.tree(&TreeQuery { resources, matching }).await {
        Ok(view) => axum::Json(view).into_response(),
        Err(fault) => unanswered_page(fault),
    }
}

/// The nodes of the tree at which a client holds something, and why it gets there what it gets, in JSON.
pub(super) async fn find(
    State(rooms): State<PageRooms>,
    Query(asked): Query<FindParameters>,
    request: Request,
) -> Response {
    if let Err(refused) = may(&rooms, &request, Role::Explain, Some(&asked.resource)) {
        return refused_page(&refused);
    }
    let resource = match ResourceId::new(asked.resource.as_str(), LONGEST_NAME) {
        Ok(resource) => resource,
        Err(fault) => return (StatusCode::BAD_REQUEST, format!("resource: {fault}\n")).into_response(),
    };
    let client = match ClientId::new(asked.client.as_str(), LONGEST_NAME) {
        Ok(client) => client,
        Err(fault) => return (StatusCode::BAD_REQUEST, format!("client: {fault}\n")).into_response(),
    };
    match rooms.driver.find(&resource, &client).await {
        Ok(found) if found.found.is_empty() => {
            let fault = format!("nobody called {client:?} holds or wants {resource:?}{}\n", unseen(&found));
            (StatusCode::NOT_FOUND, fault).into_response()
        }
        Ok(found) => axum::Json(found).into_response(),
        Err(fault) => unanswered_page(fault),
    }
}

/// The nodes at which somebody may be who was not found.
fn unseen(found: &FoundClients) -> String {
    let nodes = &found.nodes;
    let mut text = match nodes.shown {
        1 => " at the one node that was asked".to_owned(),
        shown => format!(" at the {shown} nodes that were asked"),
    };
    for (why, ways) in [
        ("silent", &nodes.silent),
        ("not to be asked", &nodes.cannot_be_asked),
        ("left out", &nodes.left_out),
    ] {
        if !ways.is_empty() {
            text.push_str(&format!("; {why}: {}", ways.join(", ")));
        }
    }
    text
}

pub(super) fn unanswered_page(fault: Unanswered) -> Response {
    match fault {
        Unanswered::NotLeading(leader) => {
            let told = serde_json::json!({"leads": false, "leader": leader.address});
            (StatusCode::CONFLICT, axum::Json(told)).into_response()
        }
        fault @ (Unanswered::Late | Unanswered::Ending | Unanswered::Lapsed) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n")).into_response()
        }
        fault => (StatusCode::INTERNAL_SERVER_ERROR, format!("{fault}\n")).into_response(),
    }
}
