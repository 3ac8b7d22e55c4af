//! The routes over HTTP: the check of proxies, the calls of programs, the rate limit service as JSON, health and figures.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, RawQuery, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lessor_client::internals::clock;
use lessor_envoy_proto::Code;
use lessor_proto::Time;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower_layer::Layer as _;

use super::connection::DoorConnection;
use super::figures::{AnswerLabel, DoorKind};
use super::listener::DoorListener;
use super::peer::PeerAddress;
use super::readiness::Readiness;
use super::rls::RlsOutcome;
use super::{Asked, Doors};
use crate::check::{ProgramRequest, Settlement, WebAnswer};
use crate::malformed::Malformed;
use crate::rls::json;
use crate::web::{WebPeer, WebRequest};

/// The bytes that a body may have.
const BODY_BYTES: usize = 64 << 10;

/// The time in which the head of a request comes, also of the next one on a connection: longer than proxies keep one that is idle
/// (nginx 60 s), so that they are the ones who close it.
const HEAD: Duration = Duration::from_secs(75);
/// The time in which a request has come with its body, and is answered. No rule lets an answer wait for longer.
const REQUEST: Duration = Duration::from_secs(60);

/// The time that the first request of a connection has at the end.
const FIRST: Duration = Duration::from_secs(1);

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

pub(super) fn routes(routed: Routed) -> Router {
    Router::new()
        .route("/check/{set}", any(check))
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
        .layer(from_fn(in_time))
        .with_state(routed)
}

/// Serves HTTP/1 until it ends, each connection no longer than until it has that age. Requests under way are answered.
pub(super) async fn serve(
    mut listener: DoorListener,
    router: Router,
    readiness: Readiness,
    age: Option<Duration>,
) {
    let (mut connections, mut ended) = (JoinSet::new(), pin!(readiness.clone().ended()));
    loop {
        tokio::select! {
            () = &mut ended => break,
            connection = listener.accept() => {
                connections.spawn(converse(connection, router.clone(), readiness.clone(), age));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn converse(connection: DoorConnection, router: Router, readiness: Readiness, age: Option<Duration>) {
    let ends = age.map_or(Time::MAX, |age| clock::now() + age);
    let answers = axum::Extension(ConnectInfo(connection.peer())).layer(router);
    let (answers, has_asked) = (TowerToHyperService::new(answers), watch::Sender::new(false));
    let service = service_fn(|request| {
        has_asked.send_if_modified(|asked| !std::mem::replace(asked, true));
        answers.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(connection), service);
    let mut served = pin!(served);
    tokio::select! {
        // Errors of a peer are its own affair.
        _ = &mut served => return,
        () = clock::sleep_until(ends) => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
            return;
        }
        () = readiness.ended() => {}
    }
    // Nobody who has come before the end goes unheard: the first request may be on its way, and would be cut off.
    let first = timeout(FIRST, async { has_asked.subscribe().wait_for(|asked| *asked).await.is_ok() });
    tokio::select! {
        _ = &mut served => return,
        _ = first => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}

/// The answer to a request that comes within its time.
async fn in_time(request: Request, next: Next) -> Response {
    match timeout(REQUEST, next.run(request)).await {
        Ok(answer) => answer,
        Err(_) => {
            let late = format!("the request took longer than {} s to come\n", REQUEST.as_secs());
            (StatusCode::REQUEST_TIMEOUT, late).into_response()
        }
    }
}

/// The answer to a peer that has shown a certificate where that is wanted, or is a probe.
async fn certified(State(routed): State<Routed>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<PeerAddress>>().map(|info| info.0);
    let is_known = peer.is_some_and(|peer| peer.is_certified || peer.address.is_none());
    if routed.requires_certificates && !is_known && !PROBES.contains(&request.uri().path()) {
        return (StatusCode::FORBIDDEN, "no certificate was shown; wanted one of --tls-client-ca\n")
            .into_response();
    }
    next.run(request).await
}

/// The check of a proxy. Its body is not read, nor its own query.
async fn check(
    State(routed): State<Routed>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Path(set): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let doors = &routed.doors;
    let rules = doors.in_force.load_full();
    let Some(set) = rules.book().set(&set) else { return no_set(doors, DoorKind::Check, &set) };
    let forwarded = set.manner.forwarded;
    let at = WebPeer { address: peer.address, is_certified: peer.is_certified };
    let request = match WebRequest::read((&method, &headers), at, forwarded, &rules.book().trusted) {
        Ok(request) => request,
        Err(fault) => return malformed(doors, DoorKind::Check, &fault),
    };
    match doors.check(&rules, set, &request, peer).await {
        Ok(answer) => answer.into_response(),
        Err(fault) => malformed(doors, DoorKind::Check, &fault),
    }
}

/// The call of a program.
async fn program(
    State(routed): State<Routed>,
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    Path(set): Path<String>,
    body: Bytes,
) -> Response {
    let doors = &routed.doors;
    let rules = doors.in_force.load_full();
    if !peer.is_trusted(&rules.book().trusted) {
        return stranger();
    }
    let Some(set) = rules.book().set(&set) else { return no_set(doors, DoorKind::Program, &set) };
    let request: ProgramRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(fault) => return unreadable(doors, &fault),
    };
    match doors.program(&rules, set, &request, peer).await {
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
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    body: Bytes,
) -> Response {
    let doors = &routed.doors;
    if !peer.is_trusted(&doors.in_force.load().book().trusted) {
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
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    body: Bytes,
) -> Response {
    let doors = &routed.doors;
    let request = match json::request(&body) {
        Ok(request) => request,
        Err(fault) => return unreadable(doors, &fault),
    };
    match doors.rate_limit(&request, Asked { door: DoorKind::Json, timeout: None, peer }).await {
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
    ConnectInfo(peer): ConnectInfo<PeerAddress>,
    RawQuery(query): RawQuery,
) -> Response {
    let doors = &routed.doors;
    if !peer.is_trusted(&doors.in_force.load().book().trusted) {
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
        let mut response = Response::new(self.body.into());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        for (name, value) in self.fields {
            if let Ok(value) = HeaderValue::try_from(value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}
