//! Conversations over HTTP/1: connections, and the way of each request on them.
//!
//! Checks of proxies, as nearly all requests are, go straight to their answer, and everything else through the routes. Those look
//! the way up by the path, and put the request and its answer into a box for each layer, which costs more than most answers.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::middleware::AddExtension;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::request::Parts;
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use lessor_client::internals::clock;
use lessor_proto::Time;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower_layer::Layer as _;

use super::connection::{DoorConnection, Turns};
use super::http::{Routed, check, in_time, routes};
use super::listener::DoorListener;
use super::peer::ConnectedPeer;
use super::readiness::Readiness;

/// The time that the first request of a connection has at the end.
const FIRST: Duration = Duration::from_secs(1);
/// The beginning of the paths of checks.
const CHECK: &str = "/check/";

/// The reason for which a connection ends that its peer does not end.
enum ConversationEnd {
    /// It is as old as it gets.
    OfAge,
    /// The doors end.
    OfDoors,
}

/// The ways of the requests on a connection.
struct Ways {
    routed: Routed,
    peer: ConnectedPeer,
    routes: TowerToHyperService<AddExtension<Router, ConnectInfo<ConnectedPeer>>>,
}

/// Serves HTTP/1 until it ends, each connection no longer than until it has that age. Requests under way are answered.
pub(super) async fn serve(mut listener: DoorListener, routed: Routed, age: Option<Duration>) {
    let (mut connections, mut ended) = (JoinSet::new(), pin!(routed.readiness.clone().ended()));
    let router = routes(routed.clone());
    loop {
        tokio::select! {
            connection = listener.accept_until(ended.as_mut()) => {
                let Some(connection) = connection else { break };
                let ways = Ways::new(routed.clone(), connection.peer().clone(), router.clone());
                connections.spawn(converse(connection, ways, routed.readiness.clone(), age));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn converse(mut connection: DoorConnection, ways: Ways, readiness: Readiness, age: Option<Duration>) {
    let (turns, first) = (connection.in_turns(), Notify::new());
    let service = service_fn(|request| {
        first.notify_one();
        ways.answer(request, &turns)
    });
    let served = http1::Builder::new().serve_connection(TokioIo::new(connection), service);
    let mut served = pin!(served);
    // Looked at when it is there, and not each time that something moves.
    let mut end: FuturesUnordered<_> = std::iter::once(end(readiness, age)).collect();
    tokio::select! {
        biased;
        // Errors of a peer are its own affair.
        _ = &mut served => return,
        Some(end) = end.next() => match end {
            ConversationEnd::OfAge => {}
            // Nobody who has come before the end goes unheard: the first request may be on its way, and would be cut off.
            ConversationEnd::OfDoors => tokio::select! {
                _ = &mut served => return,
                _ = timeout(FIRST, first.notified()) => {}
            },
        },
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}

/// The end of a connection that its peer does not end.
async fn end(readiness: Readiness, age: Option<Duration>) -> ConversationEnd {
    let ends = age.map_or(Time::MAX, |age| clock::now() + age);
    tokio::select! {
        () = clock::sleep_until(ends) => ConversationEnd::OfAge,
        () = readiness.ended() => ConversationEnd::OfDoors,
    }
}

// === impl Ways ===

impl Ways {
    fn new(routed: Routed, peer: ConnectedPeer, router: Router) -> Ways {
        let routes = TowerToHyperService::new(axum::Extension(ConnectInfo(peer.clone())).layer(router));
        Ways { routed, peer, routes }
    }

    async fn answer(&self, request: Request<Incoming>, turns: &Turns) -> Result<Response<Body>, Infallible> {
        let _answering = turns.begin();
        let (head, body) = request.into_parts();
        match straight(&head).filter(|_| self.routed.admits(self.peer.address)) {
            Some(set) => {
                // Nobody reads it.
                drop(body);
                let answer = check(&self.routed, &self.peer, set, (&head.method, &head.headers));
                Ok(in_time(answer).await)
            }
            None => Box::pin(self.routes.call(Request::from_parts(head, body))).await,
        }
    }
}

/// The set of a check that goes straight to its answer: its name stands in the path as it is. Routes know more of methods whose
/// answers have no body, and of names that are written otherwise.
fn straight(head: &Parts) -> Option<&str> {
    let set = head.uri.path().strip_prefix(CHECK)?;
    let is_plain = !set.is_empty() && !set.bytes().any(|byte| matches!(byte, b'/' | b'%'));
    let has_body = !matches!(head.method, Method::HEAD | Method::CONNECT);
    (is_plain && has_body).then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_routes_would_take_for_a_check_as_well_goes_straight() {
        let set = |method: Method, uri: &str| {
            let (head, ()) = Request::builder().method(method).uri(uri).body(()).unwrap().into_parts();
            straight(&head).map(str::to_owned)
        };
        for uri in ["/check/edge", "/check/edge?x=/y%20", "http://here/check/edge"] {
            assert_eq!(set(Method::GET, uri).as_deref(), Some("edge"), "{uri}");
            assert_eq!(set(Method::POST, uri).as_deref(), Some("edge"), "{uri}");
            assert_eq!(set(Method::HEAD, uri), None, "{uri}");
        }
        for uri in ["/check/", "/check", "/check/a/b", "/check/a%20b", "/v1/edge", "/checks/a", "/"] {
            assert_eq!(set(Method::GET, uri), None, "{uri}");
        }
    }
}
