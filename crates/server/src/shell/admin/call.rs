//! A call of the admin port: an act with its arguments, which make sense.

use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::http::request::Parts;
use lessor_proto::{ClientId, ResourceId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::act::Act;
use super::problem::{ActProblem, shown};

/// A call whose arguments are known to make sense.
pub(super) struct AdminCall {
    pub(super) order: AdminOrder,
    /// The arguments as they are written down.
    pub(super) said: Value,
}

/// An act, with all that it takes.
pub(super) enum AdminOrder {
    Whoami,
    /// No more than so many connections.
    Connections(usize),
    Access,
    Log,
    SetLog {
        filter: String,
        time: Duration,
    },
    ResetLog,
    Reload,
    Resign,
    Recalls,
    Recall(RecallTarget, Duration),
    LiftRecall(RecallTarget),
}

/// The resource of a recall, and the holder that it is taken from.
pub(super) struct RecallTarget {
    pub(super) resource: ResourceId,
    pub(super) holder: ClientId,
}

/// Bytes in a body, at the most.
const MOST_BYTES: usize = 64 << 10;
/// The time in which it must have come.
const BODY: Duration = Duration::from_secs(10);
/// The shortest and the longest time that something may be done for.
const TIMES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(24 * 3_600)];
/// Bytes in a filter of the log, or in a name.
const LONGEST: usize = 4_096;
/// Connections that are shown if nobody says how many, and at the most.
const ROWS: [usize; 2] = [1_000, 100_000];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LogBody {
    filter: String,
    #[serde(rename = "for")]
    time: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecallBody {
    resource: String,
    holder: String,
    #[serde(rename = "for")]
    time: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LiftBody {
    resource: String,
    holder: String,
}

// === impl AdminCall ===

impl AdminCall {
    /// Reads the arguments.
    pub(super) async fn read(act: Act, head: &Parts, body: Body) -> Result<AdminCall, ActProblem> {
        if act != Act::Connections {
            no_query(head)?;
        }
        let mut written = json!({});
        let order = match act {
            Act::Whoami => AdminOrder::Whoami,
            Act::Connections => AdminOrder::Connections(limit(head)?),
            Act::Access => AdminOrder::Access,
            Act::Log => AdminOrder::Log,
            Act::Recalls => AdminOrder::Recalls,
            Act::ResetLog => nothing(head, body).await.map(|()| AdminOrder::ResetLog)?,
            Act::Reload => nothing(head, body).await.map(|()| AdminOrder::Reload)?,
            Act::Resign => nothing(head, body).await.map(|()| AdminOrder::Resign)?,
            Act::SetLog => {
                let LogBody { filter, time } = said(head, body).await?;
                if filter.len() > LONGEST {
                    return Err(bad(
                        "filter",
                        &format!("has {} bytes; wanted {LONGEST} at the most", filter.len()),
                    ));
                }
                written = json!({"filter": filter, "for": shown(&time)});
                AdminOrder::SetLog { filter, time: duration(&time)? }
            }
            Act::Recall => {
                let RecallBody { resource, holder, time } = said(head, body).await?;
                written = json!({"resource": resource, "holder": holder, "for": shown(&time)});
                AdminOrder::Recall(RecallTarget::new(&resource, &holder)?, duration(&time)?)
            }
            Act::LiftRecall => {
                let LiftBody { resource, holder } = said(head, body).await?;
                written = json!({"resource": resource, "holder": holder});
                AdminOrder::LiftRecall(RecallTarget::new(&resource, &holder)?)
            }
        };
        Ok(AdminCall { order, said: written })
    }
}

// === impl AdminOrder ===

impl AdminOrder {
    /// The resource that it is about, which an operator may be for.
    pub(super) fn resource(&self) -> Option<&ResourceId> {
        match self {
            AdminOrder::Recall(target, _) | AdminOrder::LiftRecall(target) => Some(&target.resource),
            _ => None,
        }
    }
}

// === impl RecallTarget ===

impl RecallTarget {
    fn new(resource: &str, holder: &str) -> Result<RecallTarget, ActProblem> {
        let wanted = format!("wanted 1 to {LONGEST} bytes of text without control characters");
        let bad_name = |name: &str, fault: &dyn std::fmt::Display| bad(name, &format!("{fault}; {wanted}"));
        let resource = ResourceId::new(resource, LONGEST).map_err(|fault| bad_name("resource", &fault))?;
        let holder = ClientId::new(holder, LONGEST).map_err(|fault| bad_name("holder", &fault))?;
        Ok(RecallTarget { resource, holder })
    }
}

/// The body of a request, which must be JSON. That it says so keeps out forms of pages as well.
async fn said<T: DeserializeOwned>(head: &Parts, body: Body) -> Result<T, ActProblem> {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let detail = format!("Content-Type: found {:?}; wanted \"application/json\"", shown(kind));
        return Err(ActProblem::new(415, detail));
    }
    let read = tokio::time::timeout(BODY, axum::body::to_bytes(body, MOST_BYTES)).await;
    let read = read.map_err(|_| ActProblem::new(408, format!("the body did not come within {BODY:?}")))?;
    let bytes = read.map_err(|fault| {
        ActProblem::new(
            413,
            format!("the body cannot be read: {fault}; wanted {MOST_BYTES} bytes at the most"),
        )
    })?;
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    serde_json::from_slice(text).map_err(|fault| ActProblem::new(400, format!("the body: {fault}")))
}

/// A body that says nothing, and says so in JSON.
async fn nothing(head: &Parts, body: Body) -> Result<(), ActProblem> {
    let Nothing {} = said(head, body).await?;
    Ok(())
}

/// `?limit=N`, if there is anything.
fn limit(head: &Parts) -> Result<usize, ActProblem> {
    let Some(query) = head.uri.query().filter(|query| !query.is_empty()) else { return Ok(ROWS[0]) };
    let number = query.strip_prefix("limit=").and_then(|text| text.parse::<usize>().ok());
    let number = number.filter(|&number| number <= ROWS[1]);
    number.ok_or_else(|| {
        bad("query", &format!("found {:?}; wanted limit=N, {} at the most", shown(query), ROWS[1]))
    })
}

fn no_query(head: &Parts) -> Result<(), ActProblem> {
    match head.uri.query().filter(|query| !query.is_empty()) {
        None => Ok(()),
        Some(query) => Err(bad("query", &format!("found {:?}; wanted none", shown(query)))),
    }
}

fn duration(text: &str) -> Result<Duration, ActProblem> {
    let [least, most] = TIMES;
    let parsed = humantime::parse_duration(text).ok().filter(|time| (least..=most).contains(time));
    parsed.ok_or_else(|| {
        bad("for", &format!("found {:?}; wanted a time from 1s to 24h, such as 10m", shown(text)))
    })
}

fn bad(field: &str, fault: &str) -> ActProblem {
    ActProblem::new(400, format!("{field}: {fault}")).with("field", field)
}
