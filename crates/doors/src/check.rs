//! The check that proxies ask for over HTTP, and the same for programs as JSON: requests as calls, answers as fields and bodies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lessor_proto::Time;
use serde::{Deserialize, Serialize};

use crate::answer::{self, Fields};
use crate::attribute::{Attribute, Attributes};
use crate::claim::{Call, CallAnswer, Mode, Overall, Verdict};
use crate::grant::{Grant, GrantKey, GrantedHits, LimitMark};
use crate::malformed::Malformed;
use crate::reader::{Hits, Reader};
use crate::rules::{Charge, FieldKind, Matcher, RuleSet};
use crate::shown::ShownPeer;

/// A request of a program, as JSON.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramRequest {
    /// The attributes, by their names: `path`, `header.x-tenant`, `remote_address`, or those of entries.
    pub attributes: BTreeMap<String, String>,
    /// The hits.
    pub hits: u64,
    /// The least number of hits that is of use; absent: all of them.
    pub min: Option<u64>,
    /// Whether nothing is taken.
    pub look: bool,
}

/// The answer to a program, as JSON.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProgramAnswer {
    /// The hits that are granted.
    pub granted: u64,
    /// The limits that it met, the nearest first.
    pub limits: Vec<LimitAnswer>,
    /// The time after which it makes sense to come again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
    /// The grant by which it is settled; absent where nothing is settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

/// The standing of a limit in an answer to a program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LimitAnswer {
    /// The name of the policy.
    pub policy: String,
    /// The hits in a window.
    pub limit: u32,
    /// The window in seconds.
    pub window: u64,
    /// The hits that are left.
    pub remaining: u32,
    /// The seconds until there are more.
    pub reset: u64,
}

/// A message that settles a grant.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    /// The grant.
    pub grant: String,
    /// The hits that it turned out to be.
    pub cost: u64,
}

/// An answer over HTTP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebAnswer {
    /// The status.
    pub status: u16,
    /// The fields.
    pub fields: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

/// Attributes of a program's request, and of its connection.
struct Given<'a>(&'a BTreeMap<String, String>, &'a ShownPeer);

// === impl ProgramRequest ===

impl Default for ProgramRequest {
    fn default() -> ProgramRequest {
        ProgramRequest { attributes: BTreeMap::new(), hits: 1, min: None, look: false }
    }
}

impl ProgramRequest {
    /// The call that it is in `set` when `peer` makes it, for so many hits.
    ///
    /// # Errors
    /// See [`Malformed`].
    pub fn call<'b>(&self, set: &'b RuleSet, hits: u64, peer: &ShownPeer) -> Result<Call<'b>, Malformed> {
        call(set, &Given(&self.attributes, peer), if self.look { 0 } else { hits })
    }
}

impl Attributes for Given<'_> {
    fn value(&self, attribute: &Attribute) -> Option<Cow<'_, str>> {
        let said = || self.0.get(&*attribute.entry()).map(|raw| attribute.of_entry(raw));
        if attribute.is_shown() { self.1.value(attribute) } else { said() }
    }
}

/// The call that a request with these attributes is in `set`.
///
/// # Errors
/// See [`Malformed`].
pub fn call<'b>(set: &'b RuleSet, request: &impl Attributes, hits: u64) -> Result<Call<'b>, Malformed> {
    let Matcher::Table(table) = &set.matcher else {
        return Err(Malformed {
            field: format!("set {:?}", set.name),
            found: "has descriptors and no attributes".to_owned(),
            wanted: "a request of the rate limit service, over gRPC or at /json".to_owned(),
        });
    };
    let mut reader = Reader::new(set);
    reader.attributes(table, request, Hits::whole(hits))?;
    Ok(reader.call)
}

/// The grant of what was taken by rules that are settled afterwards; absent where there are none.
#[must_use]
pub fn grant(
    call: &Call<'_>,
    answer: &CallAnswer,
    clock: impl FnOnce() -> Time,
    key: &GrantKey,
) -> Option<String> {
    if answer.overall != Overall::Granted {
        return None;
    }
    let claims = call.claims.iter().zip(&answer.claims);
    let settled = claims.filter(|(claim, answered)| {
        let is_taken = matches!(claim.mode, Mode::Firm | Mode::Quota | Mode::Shadow);
        let is_within = answered.verdict == Verdict::Within;
        is_taken && is_within && claim.rule.is_some_and(|rule| rule.charge == Charge::Settle)
    });
    let hits: Vec<GrantedHits> = settled
        .map(|(claim, _)| GrantedHits {
            limit: LimitMark::of(claim.limit),
            key: claim.key.clone(),
            hits: u32::try_from(claim.hits).unwrap_or(u32::MAX),
        })
        .collect();
    (!hits.is_empty()).then(|| key.seal(&Grant { made: clock(), hits }))
}

/// The answer to a proxy.
#[must_use]
pub fn answer(call: &Call<'_>, answer: &CallAnswer) -> WebAnswer {
    let manner = &call.set.manner;
    if answer.overall == Overall::Granted && manner.headers.is_empty() {
        return WebAnswer { status: 200, fields: Vec::new(), body: String::new() };
    }
    let fields = Fields::of(call, answer);
    let mut listed = fields.list(&manner.headers);
    let status = match answer.overall {
        Overall::Granted => 200,
        Overall::Refused => manner.deny_status,
        Overall::NoLease => 503,
    };
    if answer.overall == Overall::NoLease && !manner.headers.contains(&FieldKind::RetryAfter) {
        listed.push(("retry-after", "1".to_owned()));
    }
    let is_kong = manner.headers.contains(&FieldKind::Kong) && answer.overall == Overall::Refused;
    let (kind, body) = match answer.overall {
        Overall::Granted => return WebAnswer { status, fields: listed, body: String::new() },
        _ if is_kong => ("application/json", "{\"message\":\"API rate limit exceeded\"}".to_owned()),
        _ if manner.has_problem => (answer::PROBLEM_JSON, fields.problem(status)),
        _ => return WebAnswer { status, fields: listed, body: String::new() },
    };
    listed.push(("content-type", kind.to_owned()));
    WebAnswer { status, fields: listed, body }
}

/// The answer to a program, which asked for `hits`.
#[must_use]
pub fn program_answer(
    call: &Call<'_>,
    answer: &CallAnswer,
    hits: u64,
    grant: Option<String>,
) -> (u16, ProgramAnswer) {
    let mut standings: Vec<(f64, LimitAnswer)> = call
        .claims
        .iter()
        .zip(&answer.claims)
        .map(|(claim, answered)| {
            let of = LimitAnswer {
                policy: claim.limit.name.to_string(),
                limit: claim.limit.units,
                window: claim.limit.window.length().as_secs(),
                remaining: answered.standing.remaining,
                reset: answer::seconds(answered.standing.reset),
            };
            (answer::nearness(&(claim, answered)), of)
        })
        .collect();
    standings.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let refusing =
        call.claims.iter().zip(&answer.claims).filter(|(claim, answered)| call.refuses(claim, answered));
    let retry = refusing.filter_map(|(_, answered)| match answered.verdict {
        Verdict::Over { retry_after } => retry_after,
        Verdict::NoLease { retry_after } => retry_after,
        Verdict::Within => None,
    });
    let retry_ms = retry.max().map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX).max(1));
    let (status, granted) = match answer.overall {
        Overall::Granted => (200, hits),
        Overall::Refused => (429, 0),
        Overall::NoLease => (503, 0),
    };
    let limits = standings.into_iter().map(|(_, limit)| limit).collect();
    (status, ProgramAnswer { granted, limits, retry_ms, grant })
}
