//! The pages for people and monitors: `/healthz`, `/readyz`, `/metrics` and `/status`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use super::driver::{Driver, Unanswered};
use super::metrics::Metrics;
use crate::node::StatusQuery;

/// The parameters of `/status`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusParameters {
    resource: Option<String>,
    resources: Option<usize>,
    holders: Option<usize>,
}

#[derive(Clone)]
struct Rooms {
    driver: Arc<Driver>,
    metrics: Arc<Metrics>,
}

/// All pages.
pub(super) fn router(driver: Arc<Driver>) -> Router {
    let metrics = Arc::new(Metrics::new(Arc::clone(&driver)));
    Router::new()
        .route("/", get(|| async { INDEX }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_text))
        .route("/status", get(status))
        .with_state(Rooms { driver, metrics })
}

const INDEX: &str = "lessor\n\n\
    /status   who has what: JSON; ?resource=NAME&resources=N&holders=N\n\
    /metrics  for Prometheus\n\
    /healthz  200 while the process lives\n\
    /readyz   200 while it takes requests; 503 with the reason when it drains, has never met the node above, or stands\n\
    \x20         above itself in the tree\n";

async fn ready(State(rooms): State<Rooms>) -> Response {
    match rooms.driver.readiness() {
        Ok(()) => "ready\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response(),
    }
}

async fn metrics_text(State(rooms): State<Rooms>) -> Response {
    // Where they cannot be had in time, those that were published last are shown, with their age.
    let _ = rooms.driver.look(&StatusQuery::FIGURES).await;
    match rooms.metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, Metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn status(State(rooms): State<Rooms>, Query(asked): Query<StatusParameters>) -> Response {
    let default = StatusQuery::default();
    let query = StatusQuery {
        resources: asked.resources.unwrap_or(default.resources),
        holders: asked.holders.unwrap_or(default.holders),
        resource: asked.resource,
    };
    let status = match rooms.driver.look(&query).await {
        Ok(summary) if query.resource.is_some() && summary.status.resources.is_empty() => {
            let name = query.resource.unwrap_or_default();
            return (StatusCode::NOT_FOUND, format!("nobody holds or wants {name:?}\n")).into_response();
        }
        Ok(summary) => summary,
        Err(late @ Unanswered::Late) => {
            return (StatusCode::SERVICE_UNAVAILABLE, format!("{late}\n")).into_response();
        }
        Err(broken) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, format!("{broken}\n")).into_response();
        }
    };
    let whereabouts = rooms.driver.whereabouts();
    axum::Json(serde_json::json!({
        "leader": whereabouts.leader.address,
        "leads": whereabouts.is_leader,
        "authority_seconds": rooms.driver.authority_seconds(),
        "ready": rooms.driver.readiness().is_ok(),
        "state_fault": rooms.driver.state_fault().flatten(),
        "failed_reloads": rooms.driver.failed_reloads(),
        "status": status.status,
    }))
    .into_response()
}
