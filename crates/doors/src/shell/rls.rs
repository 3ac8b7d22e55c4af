//! The service that Envoy calls over gRPC.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use lessor_envoy_proto::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use lessor_envoy_proto::{RateLimitRequest, RateLimitResponse};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tower_layer::{Layer, layer_fn};

use super::figures::{AnswerLabel, DoorKind};
use super::peer::{ConnectedPeer, PeerAddress};
use super::{Asked, Doors};
use crate::claim::{CallAnswer, Overall};
use crate::rls::{Malformed, read, timeout};
use crate::shown::{NOBODY, ShownPeer};

/// The bytes that a message may have.
const MESSAGE_BYTES: usize = 64 << 10;

/// The service over doors.
#[derive(Clone, Debug)]
pub(super) struct RlsService(Arc<Doors>);

/// The switch of a port for gRPC: calls of the service go straight to it, and everything else through the routes. Those look a
/// service up by the path, and put its body and that of the answer into another one on the way there and back.
#[derive(Clone, Debug)]
pub(super) struct RlsSwitch {
    service: RateLimitServiceServer<RlsService>,
    routes: Routes,
}

/// The outcome of a request in messages of the service.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum RlsOutcome {
    /// An answer.
    Answer(RateLimitResponse),
    /// It is not known, as nothing is leased, for this reason.
    NoLease(String),
    /// It cannot be answered.
    Malformed(Malformed),
}

// === impl RlsService ===

impl RlsService {
    /// The name in paths.
    const NAME: &str = <RateLimitServiceServer<RlsService> as NamedService>::NAME;

    pub(super) fn server(doors: Arc<Doors>) -> RateLimitServiceServer<RlsService> {
        RateLimitServiceServer::new(RlsService(doors)).max_decoding_message_size(MESSAGE_BYTES)
    }
}

#[tonic::async_trait]
impl RateLimitService for RlsService {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let timeout = request.metadata().get("grpc-timeout").and_then(|text| timeout(text.to_str().ok()?));
        let peer: Option<&ConnectedPeer> = request.extensions().get();
        let (address, shown) =
            peer.map_or((PeerAddress::default(), &NOBODY), |peer| (peer.address, peer.shown()));
        let asked = Asked { door: DoorKind::Rls, timeout, peer: address };
        match self.0.rate_limit(request.get_ref(), shown, asked).await {
            RlsOutcome::Answer(response) => Ok(Response::new(response)),
            RlsOutcome::NoLease(why) => Err(Status::unavailable(why)),
            RlsOutcome::Malformed(fault) => Err(Status::invalid_argument(fault.to_string())),
        }
    }
}

// === impl RlsSwitch ===

impl RlsSwitch {
    /// Puts it in front of routes.
    pub(super) fn layer(
        service: RateLimitServiceServer<RlsService>,
    ) -> impl Layer<Routes, Service = RlsSwitch> + Clone {
        layer_fn(move |routes| RlsSwitch { service: service.clone(), routes })
    }
}

impl Service<http::Request<Body>> for RlsSwitch {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let path = request.uri().path().strip_prefix('/').and_then(|path| path.split_once('/'));
        match path {
            Some((RlsService::NAME, method)) if !method.is_empty() => self.service.call(request),
            _ => Box::pin(self.routes.call(request)),
        }
    }
}

// === impl Doors ===

impl Doors {
    /// Answers a request of the service.
    pub(super) async fn rate_limit(
        &self,
        request: &RateLimitRequest,
        peer: &ShownPeer,
        asked: Asked,
    ) -> RlsOutcome {
        let rules = self.in_force.load_full();
        let mut heard = match read(request, peer, rules.book(), self.bounds) {
            Ok(heard) => heard,
            Err(fault) => {
                self.figures.request(asked.door, "", AnswerLabel::Malformed);
                return RlsOutcome::Malformed(fault);
            }
        };
        let (answer, greedy) = match &mut heard.call {
            Some(call) => {
                self.ends.pass_over(call);
                let decided = self.decide(&rules, call, asked).await;
                self.ends.remember(call, &decided.0);
                decided
            }
            None => {
                self.figures.request(asked.door, "", AnswerLabel::NoSet);
                (CallAnswer { overall: Overall::Granted, claims: Default::default() }, None)
            }
        };
        let nothing = || greedy.map_or("nothing is leased".to_owned(), |greedy| greedy.to_string());
        heard.response(&answer).map_or_else(|| RlsOutcome::NoLease(nothing()), RlsOutcome::Answer)
    }
}
