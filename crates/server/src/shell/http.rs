//! The pages for people and monitors: `/healthz`, `/readyz`, `/metrics`, `/status` and those below `/v1`.

mod looks;
mod plans;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lessor_client::internals::clock;
use lessor_proto::message::Refusal;
use lessor_proto::{ClientId, ResourceId};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tonic::transport::server::Connected;
use tower::Layer;
use tracing::error;

use super::acceptor::{Acceptor, Connection, Places};
use super::caller::Caller;
use super::driver::{Driver, Unanswered};
use super::gate::{Gate, GateFigures};
use super::metrics::{CertificateFigures, Metrics};
use super::tls::certificates::Certificates;
use super::tls::handshake::HandshakeGuard;
use crate::access::Role;
use crate::node::{RowOrder, StatusQuery};
use crate::repository::Glob;

pub use self::plans::{PlanBody, PlanBodyDocument};

/// The time in which the head of a request must come, also the next one on the same connection.
const HEAD: Duration = Duration::from_secs(10);
/// The time after which a connection ends with the request that it is at, and then the one for that.
const AGES: [Duration; 2] = [Duration::from_secs(300), Duration::from_secs(10)];

/// Bytes in a name that is asked for.
const LONGEST_NAME: usize = 4_096;

/// The parameters of `/status`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusParameters {
    resource: Option<String>,
    resources: Option<usize>,
    holders: Option<usize>,
    matching: Option<String>,
    order: Option<StatusOrder>,
}

/// The order of `/status`, as it is asked for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StatusOrder {
    Name,
    Busiest,
}

/// The parameters of `/v1/explain`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainParameters {
    resource: String,
    client: Option<String>,
}

#[derive(Clone)]
struct PageRooms {
    driver: Arc<Driver>,
    gate: Arc<Gate>,
}

/// All pages but `/`.
pub(super) fn router(driver: Arc<Driver>, gate: Arc<Gate>, certificates: Arc<Certificates>) -> Router {
    let metrics = Metrics::new(Arc::clone(&driver))
        .with(GateFigures(Arc::clone(&gate)))
        .with(CertificateFigures(certificates));
    let looks = looks(Arc::clone(&driver), Arc::clone(&gate));
    let rooms = PageRooms { driver, gate };
    let metrics = get(metrics_text).with_state((rooms.clone(), Arc::new(metrics)));
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", metrics)
        .route("/status", get(status))
        .with_state(rooms)
        .merge(looks)
}

/// Those of them that say why somebody gets what he gets, and what is below.
pub(super) fn looks(driver: Arc<Driver>, gate: Arc<Gate>) -> Router {
    Router::new()
        .route("/v1/explain", get(explain))
        .route("/v1/tree", get(looks::tree))
        .route("/v1/find", get(looks::find))
        .route("/v1/plan", post(plans::plan))
        .with_state(PageRooms { driver, gate })
}

/// The page at `/` of a server that has no more pages than its own.
pub(super) fn index() -> Router {
    Router::new().route("/", get(|| async { INDEX }))
}

/// The same for those who have shown who they are. Others are served nothing but what probes ask for, as these have no
/// certificate.
pub(super) fn for_the_known(pages: Router) -> Router {
    pages.layer(middleware::from_fn(
        async |Extension(caller): Extension<Caller>, request: Request, next: Next| {
            if caller.identity.is_proved() || matches!(request.uri().path(), "/healthz" | "/readyz") {
                return next.run(request).await;
            }
            (StatusCode::FORBIDDEN, "no certificate was shown; wanted one of a client\n").into_response()
        },
    ))
}

/// The pages of a server, as text.
pub const INDEX: &str = "lessor\n\n\
    /status   who has what: JSON; ?resource=NAME&matching=GLOB&order=busiest&resources=N&holders=N\n\
    /v1/explain  why a client gets what it gets: JSON; ?resource=NAME&client=ID\n\
    /v1/tree  all nodes below, with their busiest resources: JSON; ?resources=N&matching=GLOB\n\
    /v1/find  where a client is in the tree, and why it gets what it gets: JSON; ?resource=NAME&client=ID\n\
    /v1/plan  what other templates would change: POST, JSON\n\
    /metrics  for Prometheus\n\
    /healthz  200 while the process can do its work; 503 when it has failed one of its own checks, or stands still\n\
    /readyz   200 while it takes requests; 503 with the reason when it drains, has never met the node above, or stands\n\
    \x20         above itself in the tree; with ?leads also when another task leads\n\
    \x20         both with ?verbose: why, as JSON\n";

/// The parameters of `/healthz`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AliveParameters {
    verbose: Option<String>,
}

async fn alive(State(rooms): State<PageRooms>, Query(asked): Query<AliveParameters>) -> Response {
    let liveness = rooms.driver.liveness();
    if asked.verbose.is_some() {
        let reasons: Vec<_> = liveness.err().iter().map(|why| (why.reason(), why.to_string())).collect();
        let turned = ("turned_seconds_ago", rooms.driver.pulse_age().as_secs_f64());
        return reasoned(&reasons, turned);
    }
    match liveness {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

/// One line of JSON: whether it is so, why not, and something that is known besides.
fn reasoned(reasons: &[(&str, String)], (name, beside): (&str, impl serde::Serialize)) -> Response {
    let code = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let reasons: Vec<_> =
        reasons.iter().map(|(reason, why)| serde_json::json!({"reason": reason, "why": why})).collect();
    let line = serde_json::json!({"ok": reasons.is_empty(), "reasons": reasons, name: beside});
    (code, [(header::CONTENT_TYPE, "application/json")], format!("{line}\n")).into_response()
}

/// The parameters of `/readyz`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadyParameters {
    leads: Option<String>,
    verbose: Option<String>,
}

async fn ready(State(rooms): State<PageRooms>, Query(asked): Query<ReadyParameters>) -> Response {
    let (readiness, leads) = (rooms.driver.readiness(), rooms.driver.whereabouts().is_leader);
    if asked.verbose.is_some() {
        let unready = readiness.err().map(|why| (why.reason(), why.to_string()));
        let aside = (asked.leads.is_some() && !leads).then(|| ("not_leading", "not leading".to_owned()));
        return reasoned(&unready.into_iter().chain(aside).collect::<Vec<_>>(), ("leads", leads));
    }
    match readiness {
        Ok(()) if asked.leads.is_some() && !leads => {
            (StatusCode::SERVICE_UNAVAILABLE, "not leading\n").into_response()
        }
        Ok(()) => "ready\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response(),
    }
}

/// Whether whoever calls may see what is said of `resource`, or of all of them. Probes never ask that.
fn may_see(rooms: &PageRooms, request: &Request, resource: Option<&str>) -> Result<(), Refusal> {
    may(rooms, request, Role::See, resource)
}

/// Whether whoever calls may act as `role` on `resource`, or on all of them.
fn may(rooms: &PageRooms, request: &Request, role: Role, resource: Option<&str>) -> Result<(), Refusal> {
    let resource = resource.and_then(|name| ResourceId::new(name, usize::MAX).ok());
    rooms.gate.admit_operator((request.headers(), request.extensions()), role, resource.as_ref())
}

fn refused_page(refusal: &Refusal) -> Response {
    let status = match refusal {
        Refusal::Denied { is_unknown: true, .. } => StatusCode::UNAUTHORIZED,
        _ => StatusCode::FORBIDDEN,
    };
    (status, format!("{refusal}\n")).into_response()
}

async fn metrics_text(
    State((rooms, metrics)): State<(PageRooms, Arc<Metrics>)>,
    request: Request,
) -> Response {
    if let Err(refused) = may_see(&rooms, &request, None) {
        return refused_page(&refused);
    }
    // Where they cannot be had in time, those that were published last are shown, with their age.
    let _ = rooms.driver.look(&StatusQuery::FIGURES).await;
    let accepted = request.headers().get_all(header::ACCEPT).iter().filter_map(|types| types.to_str().ok());
    match metrics.encode_for(accepted) {
        Ok((kind, text)) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn status(
    State(rooms): State<PageRooms>,
    Query(asked): Query<StatusParameters>,
    request: Request,
) -> Response {
    if let Err(refused) = may_see(&rooms, &request, asked.resource.as_deref()) {
        return refused_page(&refused);
    }
    let default = StatusQuery::default();
    let matching = match asked.matching.as_deref().map(Glob::new).transpose() {
        Ok(matching) => matching,
        Err(fault) => return (StatusCode::BAD_REQUEST, format!("matching: {fault}\n")).into_response(),
    };
    let query = StatusQuery {
        resources: asked.resources.unwrap_or(default.resources),
        holders: asked.holders.unwrap_or(default.holders),
        domains: asked.holders.unwrap_or(default.domains),
        order: match asked.order {
            Some(StatusOrder::Busiest) => RowOrder::Busiest,
            Some(StatusOrder::Name) | None => default.order,
        },
        resource: asked.resource,
        matching,
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
        "templates": rooms.driver.template_status().map(|templates| serde_json::json!({
            "in_force": templates.in_force,
            "refused": templates.refused,
            "conflict": templates.is_in_conflict,
        })),
        "status": status.status,
    }))
    .into_response()
}

async fn explain(
    State(rooms): State<PageRooms>,
    Query(asked): Query<ExplainParameters>,
    request: Request,
) -> Response {
    if let Err(refused) = may(&rooms, &request, Role::Explain, Some(&asked.resource)) {
        return refused_page(&refused);
    }
    let resource = match ResourceId::new(asked.resource.as_str(), LONGEST_NAME) {
        Ok(resource) => resource,
        Err(fault) => return (StatusCode::BAD_REQUEST, format!("resource: {fault}\n")).into_response(),
    };
    let client = asked.client.as_deref().map(|client| ClientId::new(client, LONGEST_NAME));
    let client = match client.transpose() {
        Ok(client) => client,
        Err(fault) => return (StatusCode::BAD_REQUEST, format!("client: {fault}\n")).into_response(),
    };
    match rooms.driver.explain(&resource, client.as_ref()) {
        Ok(Ok(explanation)) => axum::Json(explanation).into_response(),
        Ok(Err(unknown)) => (StatusCode::NOT_FOUND, format!("{unknown}\n")).into_response(),
        Err(fault) => looks::unanswered_page(fault),
    }
}

/// Serves the pages on a port of their own, by a thread of their own, until stopped: they are there also when the runtime of
/// all else stands still, to say so. The task ends with the thread, and the thread with the task.
pub(super) fn start(
    listener: TcpListener,
    places: Arc<Places>,
    guard: Option<HandshakeGuard>,
    router: Router,
    stopped: watch::Receiver<bool>,
) -> io::Result<JoinHandle<()>> {
    let listener = listener.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (thread, thread_ended) = oneshot::channel::<()>();
    let (task, task_ended) = oneshot::channel::<()>();
    std::thread::Builder::new().name("pages".to_owned()).spawn(move || {
        let _thread = thread;
        runtime.block_on(async {
            match TcpListener::from_std(listener) {
                Ok(listener) => tokio::select! {
                    () = serve(Acceptor::new(listener, places, guard), router, stopped) => {}
                    _ = task_ended => {}
                },
                Err(error) => error!(%error, "no pages are served on their own port"),
            }
        });
    })?;
    Ok(tokio::spawn(async move {
        let _task = task;
        let _ = thread_ended.await;
    }))
}

/// Serves pages. Requests under way are answered.
pub(super) async fn serve(mut acceptor: Acceptor, router: Router, mut stopped: watch::Receiver<bool>) {
    let (mut connections, told) = (JoinSet::new(), stopped.clone());
    loop {
        tokio::select! {
            // An error means that the server handle is gone, which is a stop as well.
            _ = stopped.wait_for(|&stop| stop) => break,
            connection = acceptor.accept() => {
                connections.spawn(converse(connection, router.clone(), told.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn converse(connection: Connection, router: Router, mut stopped: watch::Receiver<bool>) {
    let pages = Extension(connection.connect_info()).layer(router);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(connection), TowerToHyperService::new(pages));
    let mut served = pin!(served);
    let [age, last] = AGES;
    tokio::select! {
        // What a peer does wrong is its own affair.
        _ = &mut served => return,
        () = clock::sleep_until(clock::now() + age) => {}
        _ = stopped.wait_for(|&stop| stop) => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(last, served).await;
}
