//! A run as one line of JSON.

use std::time::Duration;

use serde::Serialize;

use super::{TenantsReport, TenantsRun};
use crate::tiers::shown;

/// Everything that a run comes to, as one object. Times are in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TenantsLine {
    /// `domains`.
    pub scenario: &'static str,
    /// The way in which the clients keep to the tiers, as [`TenantsWay`](super::TenantsWay) is written.
    pub scope: String,
    /// Which of them requests reach, as [`TenantsTraffic`](super::TenantsTraffic) is written.
    pub traffic: String,
    /// The number of clients.
    pub clients: usize,
    /// Servers from a client up to the root.
    pub levels: u32,
    /// The time in which requests come.
    pub seconds: u64,
    /// The seed that chance was drawn from.
    pub seed: u64,
    /// The policies that say what the domain may do.
    pub policy: String,
    /// Requests a second of all clients together, while there are any.
    pub rate: f64,
    /// The least time that a message takes one way.
    pub delay_s: f64,
    /// The outcome of the run.
    #[serde(flatten)]
    pub report: TenantsReport,
    /// The hits that clients granted beyond those of the center, as a fraction of the latter.
    pub over: f64,
    /// Messages of every kind, up and down.
    pub messages_per_client_second: f64,
    /// The time that the run took.
    pub wall_s: f64,
}

// === impl TenantsLine ===

impl TenantsLine {
    /// The line of a run with `seed` that took `wall`.
    #[must_use]
    pub fn new(run: &TenantsRun, seed: u64, report: TenantsReport, wall: Duration) -> TenantsLine {
        TenantsLine {
            scenario: "domains",
            scope: run.way.to_string(),
            traffic: run.traffic.to_string(),
            clients: run.clients,
            levels: run.levels,
            seconds: run.seconds,
            seed,
            policy: run.policy(),
            rate: run.rate,
            delay_s: run.delay.as_secs_f64(),
            report,
            over: report.over(),
            messages_per_client_second: report.messages as f64 / (run.clients as u64 * run.seconds) as f64,
            wall_s: wall.as_secs_f64(),
        }
    }

    /// The object without a line break.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers and words are JSON")
    }
}

// === impl TenantsRun ===

impl TenantsRun {
    /// The policies that say what the domain may do, as they are written: `5/1s, 50/5s:5s:15s, hard 20`.
    #[must_use]
    pub fn policy(&self) -> String {
        let policies: Vec<String> = self.contract.policies().iter().map(shown).collect();
        policies.join(" and ")
    }
}
