//! Answers to requests that are granted nothing.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use lessor_client::{Bound, Denied};

use crate::key::Unkeyed;

/// A request that was granted nothing, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    cause: Cause,
    policy: Arc<str>,
    over_limit: StatusCode,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Cause {
    Denied(Denied),
    Unkeyed(Unkeyed),
}

/// A way to answer a request that was granted nothing. It may be a closure: `|rejection: &Rejection| Response::new(...)`.
///
/// The layer adds `Retry-After` and `RateLimit` to what it returns.
pub trait Answer<R> {
    /// The answer.
    fn answer(&self, rejection: &Rejection) -> Response<R>;
}

/// The answer as a problem of RFC 9457, `application/problem+json`, of the types that the IETF's draft of the RateLimit fields
/// registers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Problem;

// === impl Rejection ===

impl Rejection {
    pub(crate) fn denied(denied: Denied, policy: &Arc<str>, over_limit: StatusCode) -> Rejection {
        Rejection { cause: Cause::Denied(denied), policy: Arc::clone(policy), over_limit }
    }

    pub(crate) fn unkeyed(unkeyed: Unkeyed, policy: &Arc<str>) -> Rejection {
        let over_limit = unkeyed.status();
        Rejection { cause: Cause::Unkeyed(unkeyed), policy: Arc::clone(policy), over_limit }
    }

    /// The status that says it in HTTP: 429 or, where units in use are limited, 503 over the limit; 503 where nothing is
    /// leased; 400 or 500 without a key.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match &self.cause {
            Cause::Denied(denied) if !denied.is_over_limit() => StatusCode::SERVICE_UNAVAILABLE,
            Cause::Denied(_) | Cause::Unkeyed(_) => self.over_limit,
        }
    }

    /// The denial; `None` where the request has no key.
    #[must_use]
    pub fn denial(&self) -> Option<&Denied> {
        match &self.cause {
            Cause::Denied(denied) => Some(denied),
            Cause::Unkeyed(_) => None,
        }
    }

    /// The name of the policy: see [`LimitLayer::name`](crate::LimitLayer::name).
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// The time after which to try again, in whole seconds, rounded up and so at least one. Where nothing is leased, or it is
    /// not known when a unit comes back, a second; `None` where to try again does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let denied = self.denial()?;
        let is_for_good = matches!(
            denied.decision().and_then(|decision| decision.bound),
            Some(Bound::Unconfigured | Bound::Burst { .. } | Bound::Unleasable)
        );
        let after = match denied.retry_after() {
            None if is_for_good || matches!(denied, Denied::AboveBurst { .. }) => return None,
            after => after.unwrap_or(Duration::from_secs(1)),
        };
        Some(Duration::from_secs(whole_seconds(after)))
    }

    /// The reason for people. It names no key.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.cause {
            Cause::Denied(Denied::Unserved(_)) => "nothing is leased".to_owned(),
            Cause::Denied(denied) => denied.to_string(),
            Cause::Unkeyed(unkeyed) => unkeyed.why().to_owned(),
        }
    }

    /// The type of the problem, of those that the draft registers.
    fn kind(&self) -> &'static str {
        match self.denial() {
            None => "about:blank",
            Some(denied) if !denied.is_over_limit() => {
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
            }
            // The cooldown of a domain that has burst.
            Some(denied)
                if denied
                    .decision()
                    .is_some_and(|decision| decision.bound == Some(Bound::Tiers) && decision.tier == 0) =>
            {
                "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
            }
            Some(_) => "https://iana.org/assignments/http-problem-types#quota-exceeded",
        }
    }
}

// === impl Answer ===

impl<R, F: Fn(&Rejection) -> Response<R>> Answer<R> for F {
    fn answer(&self, rejection: &Rejection) -> Response<R> {
        self(rejection)
    }
}

impl<R: From<String>> Answer<R> for Problem {
    fn answer(&self, rejection: &Rejection) -> Response<R> {
        let status = rejection.status();
        let title = status.canonical_reason().unwrap_or_default();
        let violated = match rejection.denial() {
            Some(denied) if denied.is_over_limit() => {
                format!(",\"violated-policies\":[{}]", quoted(rejection.policy()))
            }
            _ => String::new(),
        };
        let problem = format!(
            "{{\"type\":\"{kind}\",\"title\":{title},\"status\":{status},\"detail\":{detail}{violated}}}",
            kind = rejection.kind(),
            title = quoted(title),
            status = status.as_u16(),
            detail = quoted(&rejection.reason()),
        );
        let mut answer = Response::new(R::from(problem));
        *answer.status_mut() = status;
        let kind = HeaderValue::from_static("application/problem+json");
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
        answer
    }
}

/// Whole seconds, rounded up and at least one.
pub(crate) fn whole_seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

/// The string of JSON, and of structured fields, for printable ASCII; what is not becomes a question mark.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            ' '..='~' => quoted.push(letter),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}
