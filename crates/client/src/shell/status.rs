//! The meaning of the statuses of gRPC for a session.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

use tonic::{Code, Status};

use super::connector::ConnectFault;
use crate::session::Failure;

/// A status says whether the request is at fault or the server.
pub(super) fn failure(status: &Status, timeout: Duration) -> Failure {
    match status.code() {
        // The second is what the channel's own timeout looks like.
        Code::DeadlineExceeded | Code::Cancelled if is_timeout(status) => {
            Failure::Timeout(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
        }
        Code::InvalidArgument
        | Code::NotFound
        | Code::ResourceExhausted
        | Code::OutOfRange
        | Code::PermissionDenied => Failure::Refused(status.message().to_owned()),
        Code::FailedPrecondition => Failure::Loop(status.message().to_owned()),
        _ => Failure::Unreachable(with_causes(status)),
    }
}

/// The same of a stream, which a server may not have. What is no gRPC server at all says so too: tonic takes its 404 for
/// that.
pub(super) fn stream_failure(status: &Status, timeout: Duration) -> Failure {
    match status.code() {
        Code::Unimplemented => Failure::Unimplemented,
        _ => failure(status, timeout),
    }
}

/// Whether the connection on which a request was sent broke or was closed, rather than that none was made or the server said
/// something. A server that ends a connection in order may not have seen a request that was sent at that moment.
pub(super) fn is_broken_off(status: &Status) -> bool {
    let mut cause = status.source();
    let has_cause = cause.is_some() && !is_timeout(status);
    while let Some(error) = cause {
        if error.is::<ConnectFault>() {
            return false;
        }
        cause = error.source();
    }
    has_cause
}

fn is_timeout(status: &Status) -> bool {
    status.code() == Code::DeadlineExceeded || status.message() == "Timeout expired"
}

/// "transport error" alone helps nobody: what lies below it is said too.
fn with_causes(status: &Status) -> String {
    let mut text = format!("{:?}: {}", status.code(), status.message());
    let mut cause = status.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_who_is_at_fault() {
        let failure = |status: &Status| failure(status, Duration::from_secs(5));
        let refused = failure(&Status::not_found("no template matches \"x\""));
        assert_eq!(refused, Failure::Refused("no template matches \"x\"".into()));
        assert_eq!(failure(&Status::cancelled("Timeout expired")), Failure::Timeout(5_000));
        assert_eq!(failure(&Status::internal("oh")), Failure::Unreachable("Internal: oh".into()));
        let stream_failure = |status: &Status| stream_failure(status, Duration::from_secs(5));
        assert_eq!(stream_failure(&Status::unimplemented("no")), Failure::Unimplemented);
        assert_eq!(stream_failure(&Status::invalid_argument("no")), Failure::Refused("no".into()));
    }
}
