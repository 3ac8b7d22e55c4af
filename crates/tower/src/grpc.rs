//! Denials as statuses of gRPC.

use http::{Response, StatusCode};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::answer::{Answer, Rejection};

/// The answer as a status of gRPC: `RESOURCE_EXHAUSTED` over a limit, with a `RetryInfo` where it is known when to try again;
/// `UNAVAILABLE` where nothing is leased; `INVALID_ARGUMENT` or `INTERNAL` without a key.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Grpc;

// === impl Grpc ===

impl<R: Default> Answer<R> for Grpc {
    fn answer(&self, rejection: &Rejection) -> Response<R> {
        let code = match rejection.denial() {
            Some(denied) if denied.is_over_limit() => Code::ResourceExhausted,
            Some(_) => Code::Unavailable,
            None if rejection.status() == StatusCode::BAD_REQUEST => Code::InvalidArgument,
            None => Code::Internal,
        };
        let status = match rejection.retry_after() {
            Some(after) => {
                let details = ErrorDetails::with_retry_info(Some(after));
                Status::with_error_details(code, rejection.reason(), details)
            }
            None => Status::new(code, rejection.reason()),
        };
        status.into_http()
    }
}
