//! `/v1/events`: what has changed, once a second, for as long as somebody listens (server-sent events).

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use lessor_client::internals::clock;
use lessor_proto::Time;
use lessor_server::access::Role;
use lessor_server::shell::driver::Summary;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::desk::{Desk, seconds};
use crate::findings::{self, Finding};
use crate::node::NodeLine;
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};
use crate::resources::ResourceLine;

/// Somebody who listens.
struct Listener {
    desk: Desk,
    headers: HeaderMap,
    extensions: Extensions,
    /// The next message is due then.
    next: Time,
    /// The state that was told.
    told: Told,
    has_ended: bool,
    _place: OwnedSemaphorePermit,
}

/// The state that somebody was told.
#[derive(Default)]
struct Told {
    at: Time,
    resources: BTreeMap<String, ResourceLine>,
    findings: Option<Vec<Finding>>,
}

/// The changes since the message before.
#[derive(Serialize)]
struct Change<'a> {
    /// Whether it is everything.
    all: bool,
    node: NodeLine,
    resources: Vec<&'a ResourceLine>,
    gone: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<&'a [Finding]>,
}

const SECOND: Duration = Duration::from_secs(1);

// === impl Listener ===

impl Listener {
    /// The next message; none when the server ends or whoever listens may not any more.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Listener)> {
        if self.has_ended {
            return None;
        }
        let mut stopped = self.desk.parts.stopped.clone();
        tokio::select! {
            // An error means that the server is gone, which is a stop as well.
            _ = stopped.wait_for(|&stop| stop) => return None,
            () = clock::sleep_until(self.next) => {}
        }
        // Who reads slowly misses messages, and is told of all changes with the next.
        self.next = (self.next + SECOND).max(clock::now());
        let text = match self.message().await {
            Ok(text) => text,
            Err(problem) => {
                self.has_ended = matches!(problem.code, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
                let name = if self.has_ended { "end" } else { "fault" };
                format!("event: {name}\ndata: {}\n\n", serde_json::json!({"error": problem.error}))
            }
        };
        Some((Ok(Bytes::from(text)), self))
    }

    async fn message(&mut self) -> Result<String, ApiProblem> {
        self.desk.parts.gate.admit_operator((&self.headers, &self.extensions), Role::See, None)?;
        let summary = self.desk.summary().await?;
        let found = findings::of(&self.desk, &summary).await;
        let node = NodeLine::new(&self.desk, &summary);
        let change = self.told.tell(&summary, node, found);
        let data = serde_json::to_string(&Answer::new(change));
        Ok(format!("event: change\ndata: {}\n\n", data.expect("numbers and names")))
    }
}

// === impl Told ===

impl Told {
    /// The changes from what was told to what is.
    fn tell(&mut self, summary: &Summary, node: NodeLine, found: Vec<Finding>) -> Change<'_> {
        let (all, passed) = (self.findings.is_none(), seconds(self.at, summary.at));
        self.at = summary.at;
        let lines: Vec<ResourceLine> = summary.status.resources.iter().map(ResourceLine::new).collect();
        let there: BTreeSet<&str> = lines.iter().map(|line| line.resource.as_str()).collect();
        let gone: Vec<String> =
            self.resources.keys().filter(|name| !there.contains(name.as_str())).cloned().collect();
        gone.iter().for_each(|name| _ = self.resources.remove(name));
        // One that is what was told is aged, so that times are compared with the last look.
        let mut changed = Vec::new();
        for line in lines {
            let is_still = self.resources.get(&line.resource).is_some_and(|told| line.is_still(told, passed));
            if !is_still {
                changed.push(line.resource.clone());
            }
            self.resources.insert(line.resource.clone(), line);
        }
        let is_news = self.findings.as_ref() != Some(&found);
        let findings = &*self.findings.insert(found);
        let resources = changed.iter().filter_map(|name| self.resources.get(name)).collect();
        Change { all, node, resources, gone, findings: is_news.then_some(findings) }
    }
}

/// Answers `/v1/events`.
pub(crate) async fn events(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    Parameters::read(request.uri(), &[])?;
    desk.may(&request, Role::See, None)?;
    let place = desk.listeners.clone().try_acquire_owned();
    let place = place.map_err(|_| {
        ApiProblem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many listen already; wanted fewer open consoles",
        )
    })?;
    let (head, _) = request.into_parts();
    let listener = Listener {
        desk,
        headers: head.headers,
        extensions: head.extensions,
        next: clock::now(),
        told: Told::default(),
        has_ended: false,
        _place: place,
    };
    let body = Body::from_stream(stream::unfold(listener, Listener::next));
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}
