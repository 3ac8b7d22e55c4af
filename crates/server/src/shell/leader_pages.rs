//! Pages of the leader, as a task shows them that does not lead: whoever opens any task of a node sees what its leader says, with the
//! leader named, also where a browser could not find that by its name.
//!
//! Pages that are read go to the leader over one hop: a task that is asked for another and does not lead either says so, and asks
//! nobody. Whoever asks has to be let in here, and there: by his own token, which goes along, or as this task by its certificate.
//! Nothing that changes something takes this way.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{self, Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use lessor_client::internals::tls::{Connector, Protocol};
use lessor_proto::ResourceId;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::causes::causes;
use super::driver::Driver;
use super::gate::Gate;
use super::other_tasks::OtherTasks;
use crate::access::Role;

/// The pages of the leader.
#[derive(Clone)]
pub(super) struct LeaderPages(Arc<LeaderRooms>);

struct LeaderRooms {
    driver: Arc<Driver>,
    gate: Arc<Gate>,
    client: Client<Connector, Full<Bytes>>,
    others: OtherTasks,
    /// Places of pages, and of streams of changes.
    pages: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
}

/// A page that is the leader's, and what whoever asks for it must be let.
struct LeaderPage {
    path: &'static str,
    /// Whether it is asked for by POST, and not by GET.
    is_posted: bool,
    role: Role,
    /// Whether the parameter `resource` names one that it is about.
    is_about_resource: bool,
}

/// A stream of changes on its way through.
struct PassedStream {
    rooms: Arc<LeaderRooms>,
    leader: String,
    body: Incoming,
    _place: OwnedSemaphorePermit,
}

/// The header of a request that comes from a task of the same node.
const VIA: HeaderName = HeaderName::from_static("lessor-via");
/// The header of a request for the page of this very task.
const HERE: HeaderName = HeaderName::from_static("lessor-here");
/// The header of an answer: the task that has made it.
const FROM: HeaderName = HeaderName::from_static("lessor-from");

/// The page that does not end.
const EVENTS: &str = "/v1/events";

const PAGES: [LeaderPage; 12] = [
    LeaderPage::read("/v1/node", false),
    LeaderPage::read("/v1/resources", false),
    LeaderPage::read("/v1/holders", true),
    LeaderPage::read("/v1/domains", true),
    LeaderPage::read("/v1/overrides", false),
    LeaderPage::read("/v1/findings", false),
    LeaderPage::read("/v1/series", true),
    LeaderPage::read(EVENTS, false),
    LeaderPage::read("/v1/tree", false),
    LeaderPage { role: Role::Explain, ..LeaderPage::read("/v1/explain", true) },
    LeaderPage { role: Role::Explain, ..LeaderPage::read("/v1/find", true) },
    LeaderPage { is_posted: true, role: Role::Plan, ..LeaderPage::read("/v1/plan", false) },
];

/// The headers of a request that the leader is told.
const ASKED: [HeaderName; 2] = [header::ACCEPT, header::CONTENT_TYPE];
/// The headers of its answer that are shown.
const SHOWN: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::CACHE_CONTROL,
    header::RETRY_AFTER,
    header::CONTENT_SECURITY_POLICY,
    header::REFERRER_POLICY,
    HeaderName::from_static("cross-origin-opener-policy"),
    HeaderName::from_static("cross-origin-resource-policy"),
];

/// The time that the leader has to begin and end an answer, and the same for a plan, for which it asks many others.
const PATIENCE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];
/// The time for which a stream of changes, of which there is one a second, may be silent.
const SILENCE: Duration = Duration::from_secs(10);
/// Bytes in a request, and in an answer.
const MOST_ASKED: usize = 2 << 20;
const MOST_SHOWN: usize = 16 << 20;
/// Connections to the leader that are kept for a moment.
const IDLE: usize = 2;
/// Pages, and streams of changes, at a time.
const PLACES: usize = 32;

impl fmt::Debug for LeaderPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderPages").finish_non_exhaustive()
    }
}

// === impl LeaderPage ===

impl LeaderPage {
    const fn read(path: &'static str, is_about_resource: bool) -> LeaderPage {
        LeaderPage { path, is_posted: false, role: Role::See, is_about_resource }
    }

    fn of(head: &Parts) -> Option<&'static LeaderPage> {
        let is_posted = match head.method {
            Method::GET => false,
            Method::POST => true,
            _ => return None,
        };
        PAGES.iter().find(|page| page.path == head.uri.path() && page.is_posted == is_posted)
    }

    /// The resource that it is asked of.
    fn resource(&self, uri: &Uri) -> Option<ResourceId> {
        let query = uri.query().filter(|_| self.is_about_resource)?;
        let (_, name) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "resource")?;
        ResourceId::new(name.as_ref(), usize::MAX).ok()
    }

    fn patience(&self) -> Duration {
        PATIENCE[usize::from(self.role == Role::Plan)]
    }
}

// === impl LeaderPages ===

impl LeaderPages {
    /// Those of the node of a driver.
    pub(super) fn new(
        (driver, gate): (Arc<Driver>, Arc<Gate>),
        others: OtherTasks,
        stopped: watch::Receiver<bool>,
    ) -> LeaderPages {
        let mut client = Client::builder(TokioExecutor::new());
        // Each takes one of the places that the leader has for everybody.
        client.pool_max_idle_per_host(IDLE).pool_idle_timeout(SILENCE).pool_timer(TokioTimer::new());
        let client = client.build(others.connector(Protocol::Http1));
        let [pages, streams] = [(); 2].map(|()| Arc::new(Semaphore::new(PLACES)));
        LeaderPages(Arc::new(LeaderRooms { driver, gate, client, others, pages, streams, stopped }))
    }

    /// The same pages, of which the leader's are shown where another task leads.
    pub(super) fn show(&self, pages: Router) -> Router {
        pages.layer(middleware::from_fn_with_state(self.clone(), pass))
    }
}

async fn pass(State(pages): State<LeaderPages>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let rooms = pages.0;
    let found = LeaderPage::of(&head).and_then(|page| Some((page, rooms.driver.leader_elsewhere()?)));
    let Some((page, leader)) = found.filter(|_| !head.headers.contains_key(HERE)) else {
        return next.run(Request::from_parts(head, body)).await;
    };
    if head.headers.contains_key(VIA) {
        let error = format!("this task does not lead its node: {leader} does, as far as it knows");
        return problem(StatusCode::MISDIRECTED_REQUEST, &leader, &error);
    }
    // What is not let in here says so as ever.
    let caller = (&head.headers, &head.extensions);
    if rooms.gate.admit_operator(caller, page.role, page.resource(&head.uri).as_ref()).is_err() {
        return next.run(Request::from_parts(head, body)).await;
    }
    match rooms.ask(page, &leader, (head, body)).await {
        Ok(response) | Err(response) => response,
    }
}

// === impl LeaderRooms ===

impl LeaderRooms {
    /// Asks the leader; an error is an answer as well.
    async fn ask(
        self: Arc<LeaderRooms>,
        page: &LeaderPage,
        leader: &str,
        (head, body): (Parts, Body),
    ) -> Result<Response, Response> {
        let is_stream = page.path == EVENTS;
        let places = if is_stream { &self.streams } else { &self.pages };
        let place = Arc::clone(places).try_acquire_owned().map_err(|_| {
            let error = "too many pages of the leader are asked for here; wanted fewer, or the leader itself";
            problem(StatusCode::SERVICE_UNAVAILABLE, leader, error)
        })?;
        let away = |code: StatusCode, fault: &str| {
            problem(
                code,
                leader,
                &format!("{leader} leads this node, and does not answer this task: {fault}"),
            )
        };
        let (request, shows_token) = self.request(leader, head, body).await.map_err(|fault| {
            problem(StatusCode::BAD_GATEWAY, leader, &format!("{leader} leads this node: {fault}"))
        })?;
        let slow = |_| away(StatusCode::GATEWAY_TIMEOUT, &format!("no answer in {:?}", page.patience()));
        let answered = timeout(page.patience(), self.client.request(request)).await.map_err(slow)?;
        let answered = answered.map_err(|fault| away(StatusCode::BAD_GATEWAY, &causes(&fault)))?;
        let (answer, body) = answered.into_parts();
        let code = answer.status;
        if is_stream && code == StatusCode::OK {
            let passed = PassedStream { rooms: self, leader: leader.to_owned(), body, _place: place };
            let body = Body::from_stream(stream::unfold(passed, PassedStream::next));
            return Ok(shown(code, &answer.headers, leader, body));
        }
        let read = timeout(page.patience(), Limited::new(body, MOST_SHOWN).collect()).await.map_err(slow)?;
        let bytes = read.map_err(|fault| away(StatusCode::BAD_GATEWAY, &fault.to_string()))?.to_bytes();
        match code {
            StatusCode::MISDIRECTED_REQUEST => Err(away(
                StatusCode::BAD_GATEWAY,
                "it does not lead any more; wanted another try in a moment",
            )),
            // By his own token it is his own affair.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if !shows_token => {
                let why = String::from_utf8_lossy(&bytes[..bytes.len().min(500)]).trim().to_owned();
                let error = format!(
                    "{leader} leads this node, and does not show this to another task: {why}; wanted a token, or the \
                     question at {leader}"
                );
                Err(problem(StatusCode::CONFLICT, leader, &error))
            }
            _ => Ok(shown(code, &answer.headers, leader, Body::from(bytes))),
        }
    }

    /// The request as the leader is asked, and whether it shows a token.
    async fn request(
        &self,
        leader: &str,
        head: Parts,
        body: Body,
    ) -> Result<(Request<Full<Bytes>>, bool), String> {
        let (scheme, authority) = self.others.parts(leader);
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
        let mut request = Request::builder().method(head.method).uri(uri.map_err(|fault| fault.to_string())?);
        for name in ASKED {
            if let Some(value) = head.headers.get(&name) {
                request = request.header(name, value);
            }
        }
        // What came over TLS goes on over TLS, or not at all.
        let token =
            head.headers.get(header::AUTHORIZATION).filter(|_| scheme == "https" || !self.others.speak_tls());
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, token);
        }
        let own = HeaderValue::try_from(self.driver.advertised()).map_err(|fault| fault.to_string())?;
        let read = timeout(PATIENCE[0], body::to_bytes(body, MOST_ASKED)).await;
        let read = read.map_err(|_| "the body does not come".to_owned())?;
        let bytes = read.map_err(|_| format!("the body has too much; wanted at most {MOST_ASKED} bytes"))?;
        let request = request.header(VIA, own).body(Full::new(bytes)).map_err(|fault| fault.to_string())?;
        Ok((request, token.is_some()))
    }
}

// === impl PassedStream ===

impl PassedStream {
    /// The next part; none when it ends, is silent, or is another's, and when this task ends.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, PassedStream)> {
        let mut stopped = self.rooms.stopped.clone();
        loop {
            let frame = tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return None,
                frame = timeout(SILENCE, self.body.frame()) => frame.ok()??.ok()?,
            };
            if self.rooms.driver.leader_elsewhere().as_ref() != Some(&self.leader) {
                return None;
            }
            if let Ok(bytes) = frame.into_data() {
                return Some((Ok(bytes), self));
            }
        }
    }
}

/// An answer of the leader, which is named with it.
fn shown(code: StatusCode, headers: &HeaderMap, leader: &str, body: Body) -> Response {
    let mut response = (code, body).into_response();
    for name in SHOWN {
        if let Some(value) = headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(leader) = HeaderValue::try_from(leader) {
        response.headers_mut().insert(FROM, leader);
    }
    response
}

/// The answer where the leader's cannot be had: whoever asks is told where that is.
fn problem(code: StatusCode, leader: &str, error: &str) -> Response {
    let body = json!({"schema": 1, "error": error, "leads": false, "leader": leader});
    let mut response = (code, axum::Json(body)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
