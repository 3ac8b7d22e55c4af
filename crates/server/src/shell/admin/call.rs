//! A call of the admin port: which act it asks for, and with which arguments.

use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, header};
use lessor_proto::{ClientId, ResourceId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::problem::{ActProblem, shown, shown_at_most};
use crate::access::Role;
use crate::shell::admin_calls::ActName;

/// An act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Whoami,
    Connections,
    Access,
    /// The filter of the log, as it is.
    Log,
    SetLog,
    /// Back to the filter of before.
    ResetLog,
    Reload,
    Resign,
    /// The recalls that are in force.
    Recalls,
    Recall,
    /// A recall ends before its time.
    LiftRecall,
}

/// A call whose arguments are known to make sense.
pub(super) struct AdminCall {
    pub(super) act: Act,
    pub(super) resource: Option<ResourceId>,
    pub(super) holder: Option<ClientId>,
    pub(super) time: Duration,
    pub(super) filter: String,
    /// The number of rows that are wanted.
    pub(super) limit: usize,
    /// The arguments as they are written down.
    pub(super) said: Value,
}

/// A call of nothing that there is.
pub(super) struct NoAct {
    pub(super) problem: ActProblem,
    pub(super) act: ActName,
    pub(super) said: Value,
}

/// A path, with the ways to call it.
struct ActPath {
    name: &'static str,
    act: ActName,
    ways: &'static [(Method, Act)],
    /// The methods, as HTTP lists them.
    allow: &'static str,
}

/// All paths that there are below `/admin/`.
const PATHS: [ActPath; 7] = [
    ActPath::new("whoami", ActName::Whoami, &[(Method::GET, Act::Whoami)], "GET"),
    ActPath::new("connections", ActName::Connections, &[(Method::GET, Act::Connections)], "GET"),
    ActPath::new("access", ActName::Access, &[(Method::GET, Act::Access)], "GET"),
    ActPath::new(
        "log",
        ActName::Log,
        &[(Method::GET, Act::Log), (Method::PUT, Act::SetLog), (Method::DELETE, Act::ResetLog)],
        "GET, PUT, DELETE",
    ),
    ActPath::new("reload", ActName::Reload, &[(Method::POST, Act::Reload)], "POST"),
    ActPath::new("resign", ActName::Resign, &[(Method::POST, Act::Resign)], "POST"),
    ActPath::new(
        "recall",
        ActName::Recall,
        &[(Method::GET, Act::Recalls), (Method::POST, Act::Recall), (Method::DELETE, Act::LiftRecall)],
        "GET, POST, DELETE",
    ),
];

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

// === impl ActPath ===

impl ActPath {
    const fn new(
        name: &'static str,
        act: ActName,
        ways: &'static [(Method, Act)],
        allow: &'static str,
    ) -> ActPath {
        ActPath { name, act, ways, allow }
    }
}

// === impl Act ===

impl Act {
    pub(super) fn name(self) -> ActName {
        match self {
            Act::Whoami => ActName::Whoami,
            Act::Connections => ActName::Connections,
            Act::Access => ActName::Access,
            Act::Log | Act::SetLog | Act::ResetLog => ActName::Log,
            Act::Reload => ActName::Reload,
            Act::Resign => ActName::Resign,
            Act::Recalls | Act::Recall | Act::LiftRecall => ActName::Recall,
        }
    }

    /// The role that whoever calls must have; absent: none.
    pub(super) fn role(self) -> Option<Role> {
        match self {
            Act::Whoami => None,
            Act::Connections | Act::Log | Act::Recalls => Some(Role::See),
            Act::Access => Some(Role::Access),
            Act::Reload => Some(Role::Push),
            Act::SetLog | Act::ResetLog | Act::Resign | Act::Recall | Act::LiftRecall => Some(Role::Override),
        }
    }

    /// Whether it is about one resource, which an operator may be for.
    pub(super) fn is_about_resource(self) -> bool {
        matches!(self, Act::Recall | Act::LiftRecall)
    }

    pub(super) fn changes_something(self) -> bool {
        !matches!(self, Act::Whoami | Act::Connections | Act::Access | Act::Log | Act::Recalls)
    }
}

// === impl AdminCall ===

impl AdminCall {
    /// The act that a request asks for.
    pub(super) fn named(head: &Parts) -> Result<Act, NoAct> {
        let path = head.uri.path();
        let name = path.strip_prefix("/admin/").unwrap_or("");
        let said = || json!({"method": head.method.as_str(), "path": shown(path)});
        let Some(ActPath { act, ways, allow, .. }) = PATHS.iter().find(|known| known.name == name) else {
            let known: Vec<_> = PATHS.iter().map(|known| format!("/admin/{}", known.name)).collect();
            let detail = format!("there is no {:?}; wanted one of {}", shown(path), known.join(", "));
            return Err(NoAct { problem: ActProblem::new(404, detail), act: ActName::Unknown, said: said() });
        };
        match ways.iter().find(|(method, _)| *method == head.method) {
            Some((_, act)) => Ok(*act),
            None => {
                let detail =
                    format!("{path} is not called by {}; wanted {allow}", shown(head.method.as_str()));
                let problem = ActProblem { allow: Some(allow), ..ActProblem::new(405, detail) };
                Err(NoAct { problem, act: *act, said: said() })
            }
        }
    }

    /// Reads the arguments.
    pub(super) async fn read(act: Act, head: &Parts, body: Body) -> Result<AdminCall, ActProblem> {
        let mut call = AdminCall {
            act,
            resource: None,
            holder: None,
            time: Duration::ZERO,
            filter: String::new(),
            limit: ROWS[0],
            said: json!({}),
        };
        match act {
            Act::Whoami | Act::Access | Act::Log | Act::Recalls => no_query(head)?,
            Act::Connections => call.limit = limit(head)?,
            Act::ResetLog | Act::Reload | Act::Resign => {
                no_query(head)?;
                let Nothing {} = said(head, body).await?;
            }
            Act::SetLog => {
                let LogBody { filter, time } = said(head, body).await?;
                call.said = json!({"filter": shown_at_most(&filter, LONGEST), "for": shown(&time)});
                if filter.len() > LONGEST {
                    return Err(bad(
                        "filter",
                        &format!("has {} bytes; wanted {LONGEST} at the most", filter.len()),
                    ));
                }
                (call.time, call.filter) = (duration(&time)?, filter);
            }
            Act::Recall => {
                let RecallBody { resource, holder, time } = said(head, body).await?;
                call.names(&resource, &holder)?;
                call.time = duration(&time)?;
                call.said = json!({"resource": resource, "holder": holder, "for": shown(&time)});
            }
            Act::LiftRecall => {
                let LiftBody { resource, holder } = said(head, body).await?;
                call.names(&resource, &holder)?;
                call.said = json!({"resource": resource, "holder": holder});
            }
        }
        Ok(call)
    }

    fn names(&mut self, resource: &str, holder: &str) -> Result<(), ActProblem> {
        let wanted = format!("wanted 1 to {LONGEST} bytes of text without control characters");
        let bad_name = |name: &str, fault: &dyn std::fmt::Display| bad(name, &format!("{fault}; {wanted}"));
        let id = ResourceId::new(resource, LONGEST).map_err(|fault| bad_name("resource", &fault))?;
        self.resource = Some(id);
        self.holder = Some(ClientId::new(holder, LONGEST).map_err(|fault| bad_name("holder", &fault))?);
        Ok(())
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
