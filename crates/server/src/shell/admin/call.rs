//! A call of the admin port: an act with its arguments, which make sense.

use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::http::request::Parts;
use lessor_proto::{ClientId, Glob, ResourceId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::act::Act;
use super::problem::{ActProblem, shown};
use super::pushes::{self, PushBody};
use crate::overrides::OverrideAct;

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
    Overrides,
    Override(Box<OverrideOrder>),
    /// That of this id.
    LiftOverride(String),
    Seize(RecallTarget),
    Pushes,
    Push(Box<PushBody>),
    /// For so long, and why.
    PushFreeze(String, Duration),
    LiftPushFreeze,
}

/// An override that is wanted.
pub(super) struct OverrideOrder {
    pub(super) act: OverrideAct,
    /// The resource that it is about, if that is one.
    resource: Option<ResourceId>,
    pub(super) reason: String,
    pub(super) time: Duration,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeizeBody {
    resource: String,
    client: String,
    /// The word of whoever calls that nothing of it is used any more.
    i_have_fenced_it: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LiftOverrideBody {
    id: String,
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
            Act::Overrides => AdminOrder::Overrides,
            Act::Pushes => AdminOrder::Pushes,
            Act::ResetLog => nothing(head, body).await.map(|()| AdminOrder::ResetLog)?,
            Act::Reload => nothing(head, body).await.map(|()| AdminOrder::Reload)?,
            Act::Resign => nothing(head, body).await.map(|()| AdminOrder::Resign)?,
            Act::LiftPushFreeze => nothing(head, body).await.map(|()| AdminOrder::LiftPushFreeze)?,
            Act::Push => {
                let push;
                (push, written) = PushBody::read(head, body).await?;
                AdminOrder::Push(Box::new(push))
            }
            Act::PushFreeze => {
                let (message, time) = pushes::read_freeze(head, body).await?;
                written = json!({"message": message, "for": humantime::format_duration(time).to_string()});
                AdminOrder::PushFreeze(message, time)
            }
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
            Act::Override => {
                let said: Map<String, Value> = said(head, body).await?;
                let order = OverrideOrder::new(said.clone())?;
                written = Value::Object(said);
                AdminOrder::Override(Box::new(order))
            }
            Act::LiftOverride => {
                let LiftOverrideBody { id } = said(head, body).await?;
                written = json!({"id": shown(&id)});
                AdminOrder::LiftOverride(id)
            }
            Act::Seize => {
                let SeizeBody { resource, client, i_have_fenced_it } = said(head, body).await?;
                written =
                    json!({"resource": resource, "client": client, "i_have_fenced_it": i_have_fenced_it});
                if !i_have_fenced_it {
                    let wanted =
                        "false; wanted true, from somebody who has made sure that it uses nothing any more";
                    return Err(bad("i_have_fenced_it", wanted));
                }
                AdminOrder::Seize(RecallTarget::new(&resource, &client)?)
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
            AdminOrder::Recall(target, _) | AdminOrder::LiftRecall(target) | AdminOrder::Seize(target) => {
                Some(&target.resource)
            }
            AdminOrder::Override(order) => order.resource.as_ref(),
            _ => None,
        }
    }
}

// === impl OverrideOrder ===

impl OverrideOrder {
    fn new(mut said: Map<String, Value>) -> Result<OverrideOrder, ActProblem> {
        let mut take = |field: &str| match said.remove(field) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(bad(field, &format!("found {}; wanted text", shown(&other.to_string())))),
            None => Err(ActProblem::new(400, format!("the body: missing field `{field}`"))),
        };
        let (reason, time) = (take("reason")?, take("for")?);
        let time = duration(&time)?;
        said.retain(|_, value| !value.is_null());
        let names: Vec<String> = said.keys().cloned().collect();
        let act: OverrideAct = serde_json::from_value(Value::Object(said))
            .map_err(|fault| ActProblem::new(400, format!("the body: {fault}")))?;
        let known = serde_json::to_value(&act).expect("strings and numbers");
        if let Some(other) = names.iter().find(|name| known.get(name.as_str()).is_none()) {
            return Err(ActProblem::new(400, format!("the body: unknown field `{}`", shown(other))));
        }
        // Whoever is let one resource is not let all that a glob matches.
        let is_name = |text: &&str| Glob::new(text).is_ok_and(|glob| glob.is_plain());
        let resource = act.resource().filter(is_name).and_then(|name| ResourceId::new(name, LONGEST).ok());
        Ok(OverrideOrder { act, resource, reason, time })
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
    said_within(head, body, MOST_BYTES).await
}

/// The same of so many bytes at the most.
pub(super) async fn said_within<T: DeserializeOwned>(
    head: &Parts,
    body: Body,
    most: usize,
) -> Result<T, ActProblem> {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let detail = format!("Content-Type: found {:?}; wanted \"application/json\"", shown(kind));
        return Err(ActProblem::new(415, detail));
    }
    let read = tokio::time::timeout(BODY, axum::body::to_bytes(body, most)).await;
    let read = read.map_err(|_| ActProblem::new(408, format!("the body did not come within {BODY:?}")))?;
    let bytes = read.map_err(|fault| {
        ActProblem::new(413, format!("the body cannot be read: {fault}; wanted {most} bytes at the most"))
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
    duration_from(text, TIMES)
}

/// A time from the least to the most of those.
pub(super) fn duration_from(text: &str, [least, most]: [Duration; 2]) -> Result<Duration, ActProblem> {
    let parsed = humantime::parse_duration(text).ok().filter(|time| (least..=most).contains(time));
    parsed.ok_or_else(|| {
        let longest = humantime::format_duration(most);
        let longest = if most == TIMES[1] { "24h".to_owned() } else { longest.to_string() };
        bad("for", &format!("found {:?}; wanted a time from 1s to {longest}, such as 10m", shown(text)))
    })
}

pub(super) fn bad(field: &str, fault: &str) -> ActProblem {
    ActProblem::new(400, format!("{field}: {fault}")).with("field", field)
}
