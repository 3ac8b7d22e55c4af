//! Agents as processes: they start before their server, live through its absence, are replaced without a gap and killed, and hold
//! one lease of a resource for everything on their host.

mod callers;
mod life;
mod shared_ports;
mod sockets;
mod updates;

use std::path::Path;

use rustix::process::{Pid, getpid};
use tokio::process::Command;

use crate::front::{Answer, http};
use crate::house::lessor;

/// The fields of a check, for a request of this path.
const ASKED: &str = "x-forwarded-method: GET\r\nx-forwarded-host: here\r\nx-forwarded-uri: /\r\n";

/// Rules with one limit, for which nobody waits longer than a test does.
fn rules(limit: &str) -> String {
    format!("wait: 30s\nsets: {{edge: {{rules: [{{match: {{path: '*'}}, limit: {limit}, kind: exact}}]}}}}")
}

/// The id of an agent that only this test has: tests are several agents on one host.
fn id(name: &str) -> String {
    format!("agent/{name}/{}", Pid::as_raw(Some(getpid())))
}

/// An agent of that name.
fn agent(name: &str, server: &str, rules: &Path) -> Command {
    let mut command = lessor(&["agent", "--server", server, "--id", &id(name), "--log-format", "json"]);
    command.arg("--doors").arg(rules);
    command
}

/// The answer to a check of the set.
async fn check(address: &str) -> Answer {
    http(address, "GET /check/edge", ASKED, "").await
}

/// The first line of the page of readiness, behind its status.
async fn readiness(address: &str) -> (u16, String) {
    let Answer { status, body, .. } = http(address, "GET /readyz", "", "").await;
    (status, body.trim_end().to_owned())
}
