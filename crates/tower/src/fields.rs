//! Fields of answers: `RateLimit-Policy` and `RateLimit` of the IETF's draft 11, and `Retry-After`.

use std::fmt::Write as _;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use lessor_client::Decision;

use crate::answer::{Rejection, quoted, whole_seconds};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Room for the parameters of a field.
const PARAMETERS: usize = 32;

/// The writer of fields for one policy.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    /// The name, as a string of structured fields.
    quoted: Arc<str>,
}

// === impl Fields ===

impl Fields {
    pub(crate) fn named(policy: &str) -> Fields {
        Fields { quoted: quoted(policy).into() }
    }

    /// Adds what a decision on a domain says about its tier: the limit in the window, and what is left of it.
    pub(crate) fn note(&self, headers: &mut HeaderMap, decision: &Decision) {
        if decision.tier == 0 {
            return;
        }
        let window = whole_seconds(decision.tier_window);
        self.append(headers, &POLICY, format_args!("q={};w={window}", decision.tier_limit));
        self.append(headers, &LIMIT, format_args!("r={};t={window}", left(decision)));
    }

    /// Adds what a denial says about its limit: what is left, and until when.
    fn note_rejection(&self, headers: &mut HeaderMap, rejection: &Rejection) {
        let Some(denied) = rejection.denial().filter(|denied| denied.is_over_limit()) else { return };
        let decision = denied.decision().filter(|decision| decision.tier > 0);
        if let Some(decision) = decision {
            let window = whole_seconds(decision.tier_window);
            self.append(headers, &POLICY, format_args!("q={};w={window}", decision.tier_limit));
        }
        let left = decision.map_or(0, left);
        match rejection.retry_after() {
            Some(after) => self.append(headers, &LIMIT, format_args!("r={left};t={}", after.as_secs())),
            None => self.append(headers, &LIMIT, format_args!("r={left}")),
        }
    }

    /// Both are lists: what another layer has said stays.
    fn append(&self, headers: &mut HeaderMap, name: &HeaderName, parameters: std::fmt::Arguments<'_>) {
        let mut text = String::with_capacity(self.quoted.len() + PARAMETERS);
        text.push_str(&self.quoted);
        text.push(';');
        // Writing to a string does not fail, and the name is printable.
        let _ = text.write_fmt(parameters);
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.append(name, value);
        }
    }
}

/// The hits that are left of the tier.
fn left(decision: &Decision) -> u32 {
    decision.tier_limit.saturating_sub(decision.hits_in_tier)
}

/// Adds to a rejection's answer when to try again, and the fields where they are wanted.
pub(crate) fn finish(fields: Option<&Fields>, headers: &mut HeaderMap, rejection: &Rejection) {
    if let Some(after) = rejection.retry_after() {
        headers.insert(header::RETRY_AFTER, after.as_secs().into());
    }
    if let Some(fields) = fields {
        fields.note_rejection(headers, rejection);
    }
}
