//! The service that Envoy calls over gRPC.

use std::sync::Arc;

use lessor_envoy_proto::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use lessor_envoy_proto::{RateLimitRequest, RateLimitResponse};
use tonic::{Request, Response, Status};

use super::figures::{AnswerLabel, DoorKind};
use super::{Asked, Doors};
use crate::claim::{CallAnswer, Overall};
use crate::rls::{Malformed, read, timeout};

/// The bytes that a message may have.
const MESSAGE_BYTES: usize = 64 << 10;

/// The service over doors.
#[derive(Clone, Debug)]
pub(super) struct RlsService(Arc<Doors>);

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
        let peer = request.extensions().get().copied().unwrap_or_default();
        let asked = Asked { door: DoorKind::Rls, timeout, peer };
        match self.0.rate_limit(request.get_ref(), asked).await {
            RlsOutcome::Answer(response) => Ok(Response::new(response)),
            RlsOutcome::NoLease(why) => Err(Status::unavailable(why)),
            RlsOutcome::Malformed(fault) => Err(Status::invalid_argument(fault.to_string())),
        }
    }
}

// === impl Doors ===

impl Doors {
    /// Answers a request of the service.
    pub(super) async fn rate_limit(&self, request: &RateLimitRequest, asked: Asked) -> RlsOutcome {
        let rules = self.in_force.load_full();
        let heard = match read(request, rules.book(), self.bounds) {
            Ok(heard) => heard,
            Err(fault) => {
                self.figures.request(asked.door, "", AnswerLabel::Malformed);
                return RlsOutcome::Malformed(fault);
            }
        };
        let (answer, greedy) = match &heard.call {
            Some(call) => self.decide(&rules, call, asked).await,
            None => {
                self.figures.request(asked.door, "", AnswerLabel::NoSet);
                (CallAnswer { overall: Overall::Granted, claims: Default::default() }, None)
            }
        };
        let nothing = || greedy.map_or("nothing is leased".to_owned(), |greedy| greedy.to_string());
        heard.response(&answer).map_or_else(|| RlsOutcome::NoLease(nothing()), RlsOutcome::Answer)
    }
}
