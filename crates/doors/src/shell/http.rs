//! The routes over HTTP: the rate limit service as JSON, health and figures.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{StatusCode, header};
use lessor_envoy_proto::Code;

use super::Doors;
use super::figures::{AnswerLabel, DoorKind};
use super::listen::Readiness;
use super::rls::RlsOutcome;
use crate::rls::json;

/// The bytes that a body may have.
const BODY_BYTES: usize = 64 << 10;

/// The state of the routes.
#[derive(Clone, Debug)]
pub(super) struct Routed {
    pub(super) doors: Arc<Doors>,
    pub(super) readiness: Readiness,
}

pub(super) fn routes(routed: Routed) -> Router {
    Router::new()
        .route("/json", post(rate_limit))
        .route("/healthcheck", get(health))
        .route("/metrics", get(metrics))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(routed)
}

/// The request of the rate limit service as JSON.
async fn rate_limit(State(routed): State<Routed>, body: Bytes) -> Response {
    let doors = &routed.doors;
    let request = match json::request(&body) {
        Ok(request) => request,
        Err(fault) => return unreadable(doors, &fault),
    };
    match doors.rate_limit(&request, (DoorKind::Json, None)).await {
        RlsOutcome::Answer(response) => {
            let status = match response.overall_code() {
                Code::Ok => StatusCode::OK,
                Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
                Code::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, [(header::CONTENT_TYPE, "application/json")], json::response(&response)).into_response()
        }
        RlsOutcome::NoLease => (StatusCode::BAD_REQUEST, "nothing is leased\n").into_response(),
        RlsOutcome::Malformed(fault) => (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response(),
    }
}

async fn health(State(routed): State<Routed>) -> (StatusCode, &'static str) {
    match routed.readiness.is_serving() {
        true => (StatusCode::OK, "OK"),
        false => (StatusCode::INTERNAL_SERVER_ERROR, "draining\n"),
    }
}

async fn metrics(State(routed): State<Routed>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], routed.doors.metrics()).into_response()
}

fn unreadable(doors: &Doors, fault: &serde_json::Error) -> Response {
    doors.figures.request(DoorKind::Json, "", AnswerLabel::Malformed);
    (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response()
}
