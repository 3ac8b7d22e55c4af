//! Answers as messages of the service.

use std::time::Duration;

use lessor_envoy_proto::{Code, DescriptorStatus, HeaderValue, RateLimit, RateLimitResponse, Unit};

use super::metadata::metadata;
use super::{Heard, Met};
use crate::answer::{self, Fields};
use crate::claim::{Answered, Call, CallAnswer, Overall};
use crate::rules::{FieldKind, Limit, LimitKind, Rule, TimeUnit};

// === impl Heard ===

impl Heard<'_> {
    /// The response; absent where the call is not known to pass, as nothing is leased.
    #[must_use]
    pub fn response(&self, answer: &CallAnswer) -> Option<RateLimitResponse> {
        let Some(call) = &self.call else { return Some(self.all_ok()) };
        let overall_code = match answer.overall {
            Overall::Granted => Code::Ok,
            Overall::Refused => Code::OverLimit,
            Overall::NoLease => return None,
        };
        let statuses = (0..self.met.len()).map(|place| self.status(call, answer, place)).collect();
        let fields = Fields::of(call, answer);
        let header = |(key, value): (&'static str, String)| HeaderValue {
            key: key.to_owned(),
            value,
            raw_value: Vec::new(),
        };
        let mut response_headers_to_add: Vec<HeaderValue> =
            fields.list(&call.set.manner.headers).into_iter().map(header).collect();
        let of_requests: &[FieldKind] = match overall_code {
            Code::Ok => &call.set.manner.request_headers,
            _ => &[],
        };
        let request_headers_to_add = fields.list(of_requests).into_iter().map(header).collect();
        let mut raw_body = Vec::new();
        if overall_code == Code::OverLimit && call.set.manner.has_problem {
            response_headers_to_add.push(header(("content-type", answer::PROBLEM_JSON.to_owned())));
            raw_body = fields.problem(429).into_bytes();
        }
        let dynamic_metadata = call.set.manner.has_metadata.then(|| metadata(&fields)).flatten();
        Some(RateLimitResponse {
            overall_code: overall_code.into(),
            statuses,
            dynamic_metadata,
            response_headers_to_add,
            request_headers_to_add,
            raw_body,
        })
    }

    /// The response where nothing is limited.
    fn all_ok(&self) -> RateLimitResponse {
        let ok = DescriptorStatus { code: Code::Ok.into(), ..DescriptorStatus::default() };
        RateLimitResponse {
            overall_code: Code::Ok.into(),
            statuses: vec![ok; self.met.len()],
            ..RateLimitResponse::default()
        }
    }

    fn status(&self, call: &Call<'_>, answer: &CallAnswer, place: usize) -> DescriptorStatus {
        let ok = DescriptorStatus { code: Code::Ok.into(), ..DescriptorStatus::default() };
        match self.met[place] {
            Met::Nothing => ok,
            Met::Unlimited => DescriptorStatus { limit_remaining: u32::MAX, ..ok },
            Met::Limits => {
                let all = call.claims.iter().zip(&answer.claims);
                let of = all.filter(|(claim, _)| claim.descriptor == place);
                let nearest =
                    of.max_by(|one, other| answer::nearness(one).total_cmp(&answer::nearness(other)));
                let Some((claim, answered)) = nearest else { return ok };
                let is_over = call.refuses(claim, answered);
                let Answered { verdict: _, standing } = *answered;
                DescriptorStatus {
                    code: if is_over { Code::OverLimit } else { Code::Ok }.into(),
                    current_limit: Some(current_limit(claim.limit, claim.rule)),
                    limit_remaining: standing.remaining,
                    duration_until_reset: Some(whole_seconds(standing.reset)),
                }
            }
        }
    }
}

fn current_limit(limit: &Limit, rule: Option<&Rule>) -> RateLimit {
    let unit = match limit.window.unit {
        TimeUnit::Second => Unit::Second,
        TimeUnit::Minute => Unit::Minute,
        TimeUnit::Hour => Unit::Hour,
        TimeUnit::Day => Unit::Day,
        TimeUnit::Week => Unit::Week,
        TimeUnit::Month => Unit::Month,
        TimeUnit::Year => Unit::Year,
    };
    // What is counted while it is under way has no window that a proxy could tell its clients.
    let (unit, multiplier) = match limit.kind {
        LimitKind::Concurrency => (Unit::Unknown, 1),
        _ => (unit, limit.window.multiplier),
    };
    RateLimit {
        name: rule.and_then(|rule| rule.policy.as_deref()).unwrap_or_default().to_owned(),
        requests_per_unit: limit.units,
        unit: unit.into(),
        unit_multiplier: Some(multiplier).filter(|&multiplier| multiplier > 1),
    }
}

/// That time in whole seconds, rounded up and at least one, as Envoy cuts what is behind the point.
fn whole_seconds(time: Duration) -> prost_types::Duration {
    prost_types::Duration { seconds: i64::try_from(answer::seconds(time)).unwrap_or(i64::MAX), nanos: 0 }
}
