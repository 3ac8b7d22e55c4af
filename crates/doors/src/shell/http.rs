//! The routes over HTTP: the check of proxies, the calls of programs, the rate limit service as JSON, health and figures.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, RawQuery, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use futures_util::poll;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use lessor_envoy_proto::Code;
use tokio::time::timeout;

use super::figures::{AnswerLabel, DoorKind};
use super::peer::{ConnectedPeer, PeerAddress};
use super::readiness::Readiness;
use super::rls::RlsOutcome;
use super::{Asked, Doors};
use crate::check::{ProgramRequest, Settlement, WebAnswer};
use crate::malformed::Malformed;
use crate::rls::json;
use crate::web::WebRequest;

/// The bytes that a body may have.
const BODY_BYTES: usize = 64 << 10;

/// The time in which a request has come with its body, and is answered. No rule lets an answer wait for longer.
const REQUEST: Duration = Duration::from_secs(60);

/// The state of the routes.
#[derive(Clone, Debug)]
pub(super) struct Routed {
    pub(super) doors: Arc<Doors>,
    pub(super) readiness: Readiness,
    /// Whether a peer at a port must have shown a certificate, for anything but a probe.
    pub(super) requires_certificates: bool,
}

/// The pages of probes, who have no certificate.
const PROBES: [&str; 3] = ["/healthcheck", "/healthz", "/readyz"];

// === impl Routed ===

impl Routed {
    /// Whether a peer may ask for more than probes do.
    pub(super) fn admits(&self, peer: PeerAddress) -> bool {
        !self.requires_certificates || peer.is_certified || peer.address.is_none()
    }
}

pub(super) fn routes(routed: Routed) -> Router {
    Router::new()
        .route("/check/{set}", any(routed_check))
        .route("/v1/settle", post(settle))
        .route("/v1/{set}", post(program))
        .route("/json", post(rate_limit))
        .route("/healthcheck", get(health))
        .route("/metrics", get(metrics))
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/status", get(status))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(from_fn_with_state(routed.clone(), certified))
        .layer(from_fn(async |request: Request, next: Next| in_time(next.run(request)).await))
        .with_state(routed)
}

/// The answer, if it is made within the time of a request.
pub(super) async fn in_time(answer: impl Future<Output = Response>) -> Response {
    let mut answer = pin!(answer);
    // Most are there at once, and need no timer.
    if let Poll::Ready(answer) = poll!(answer.as_mut()) {
        return answer;
    }
    match timeout(REQUEST, answer).await {
        Ok(answer) => answer,
        Err(_) => {
            let late = format!("the request took longer than {} s to come\n", REQUEST.as_secs());
            (StatusCode::REQUEST_TIMEOUT, late).into_response()
        }
    }
}

/// The answer to a peer that has shown a certificate where that is wanted, or is a probe.
async fn certified(State(routed): State<Routed>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<ConnectedPeer>>().map(|info| info.0.address);
    let is_admitted = peer.map_or(!routed.requires_certificates, |peer| routed.admits(peer));
    if !is_admitted && !PROBES.contains(&request.uri().path()) {
        return (StatusCode::FORBIDDEN, "no certificate was shown; wanted one of --tls-client-ca\n")
            .into_response();
    }
    next.run(request).await
}

/// The check of a proxy, as the routes find it.
async fn routed_check(
    State(routed): State<Routed>,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    Path(set): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    check(&routed, &peer, &set, (&method, &headers)).await
}

/// The check of a proxy in the set of that name. Its body is not read, nor its own query.
pub(super) async fn check(
    routed: &Routed,
    peer: &ConnectedPeer,
    set: &str,
    said: (&Method, &HeaderMap),
) -> Response {
    let doors = &routed.doors;
    let rules = doors.in_force.load_full();
    let Some(set) = rules.book().set(set) else { return no_set(doors, DoorKind::Check, set) };
    let forwarded = set.manner.forwarded;
    let request = match WebRequest::read(said, peer.web(), forwarded, &rules.book().trusted) {
        Ok(request) => request,
        Err(fault) => return malformed(doors, DoorKind::Check, &fault),
    };
    match doors.check(&rules, set, &request, peer.address).await {
        Ok(answer) => answer.into_response(),
        Err(fault) => malformed(doors, DoorKind::Check, &fault),
    }
}

/// The call of a program.
async fn program(
    State(routed): State<Routed>,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    Path(set): Path<String>,
    body: Bytes,
) -> Response {
    let doors = &routed.doors;
    let rules = doors.in_force.load_full();
    if !peer.address.is_trusted(&rules.book().trusted) {
        return stranger();
    }
    let Some(set) = rules.book().set(&set) else { return no_set(doors, DoorKind::Program, &set) };
    let request: ProgramRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(fault) => return unreadable(doors, &fault),
    };
    match doors.program(&rules, set, &request, &peer).await {
        Ok((status, answer)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, axum::Json(answer)).into_response()
        }
        Err(fault) => malformed(doors, DoorKind::Program, &fault),
    }
}

/// The settlement of a grant.
async fn settle(
    State(routed): State<Routed>,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    body: Bytes,
) -> Response {
    let doors = &routed.doors;
    if !peer.address.is_trusted(&doors.in_force.load().book().trusted) {
        return stranger();
    }
    let settlement: Settlement = match serde_json::from_slice(&body) {
        Ok(settlement) => settlement,
        Err(fault) => return unreadable(doors, &fault),
    };
    match doors.settle(&settlement) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (StatusCode::GONE, "the grant is unknown, late or settled already\n").into_response(),
    }
}

/// The request of the rate limit service as JSON.
async fn rate_limit(
    State(routed): State<Routed>,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    body: Bytes,
) -> Response {
    let doors = &routed.doors;
    let request = match json::request(&body) {
        Ok(request) => request,
        Err(fault) => return unreadable(doors, &fault),
    };
    match doors
        .rate_limit(&request, peer.shown(), Asked { door: DoorKind::Json, timeout: None, peer: peer.address })
        .await
    {
        RlsOutcome::Answer(response) => {
            let status = match response.overall_code() {
                Code::Ok => StatusCode::OK,
                Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
                Code::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, [(header::CONTENT_TYPE, "application/json")], json::response(&response)).into_response()
        }
        RlsOutcome::NoLease(why) => (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
        RlsOutcome::Malformed(fault) => (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response(),
    }
}

async fn health(State(routed): State<Routed>) -> (StatusCode, &'static str) {
    match routed.readiness.is_serving() {
        true => (StatusCode::OK, "OK"),
        false => (StatusCode::INTERNAL_SERVER_ERROR, "draining\n"),
    }
}

/// The process answers.
async fn alive() -> &'static str {
    "ok\n"
}

/// Requests are welcome; without a server as well, and then the reason is said.
async fn ready(State(routed): State<Routed>) -> (StatusCode, String) {
    match (routed.readiness.is_serving(), routed.doors.reach().cause()) {
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
        (true, Some(cause)) => (StatusCode::OK, format!("degraded: {cause}\n")),
        (true, None) => (StatusCode::OK, "ready\n".to_owned()),
    }
}

/// The page that says how the doors fare. It names keys, which only those may see who are trusted.
async fn status(
    State(routed): State<Routed>,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    RawQuery(query): RawQuery,
) -> Response {
    let doors = &routed.doors;
    if !peer.address.is_trusted(&doors.in_force.load().book().trusted) {
        return stranger();
    }
    let page = doors.status(routed.readiness.is_serving());
    match query.as_deref() {
        None | Some("" | "format=json") => axum::Json(page).into_response(),
        Some("format=text") => page.text().into_response(),
        Some(_) => {
            (StatusCode::BAD_REQUEST, "wanted no query, or format=json or format=text\n").into_response()
        }
    }
}

async fn metrics(State(routed): State<Routed>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], routed.doors.metrics()).into_response()
}

/// An address that is not there is noticed with the first request.
fn no_set(doors: &Doors, door: DoorKind, set: &str) -> Response {
    doors.figures.request(door, "", AnswerLabel::NoSet);
    (StatusCode::NOT_FOUND, format!("there is no set {:?}\n", set.chars().take(100).collect::<String>()))
        .into_response()
}

fn malformed(doors: &Doors, door: DoorKind, fault: &Malformed) -> Response {
    doors.figures.request(door, "", AnswerLabel::Malformed);
    (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response()
}

fn unreadable(doors: &Doors, fault: &serde_json::Error) -> Response {
    doors.figures.request(DoorKind::Json, "", AnswerLabel::Malformed);
    (StatusCode::BAD_REQUEST, format!("{fault}\n")).into_response()
}

fn stranger() -> Response {
    (StatusCode::FORBIDDEN, "the peer is not trusted; wanted one of those that the rules name\n")
        .into_response()
}

// === impl WebAnswer ===

impl IntoResponse for WebAnswer {
    fn into_response(self) -> Response {
        let body = if self.body.is_empty() { Body::empty() } else { self.body.into() };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        for (name, value) in self.fields {
            if let Ok(value) = HeaderValue::try_from(value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}
