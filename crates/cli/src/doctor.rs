//! `lessor doctor`: what is wrong with a tree that runs, and with its configurations, and what to do about it.

mod checks;
mod drift;
mod etcd;
mod files;
mod finding;
mod task;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use hyper::StatusCode;
use lessor_client::internals::clock;
use serde_json::{Value, json};

use self::drift::TaskClock;
use self::etcd::DoctorEtcd;
use self::finding::{CheckOutcome, Severity};
use self::task::{TaskFacts, figures};
use crate::exit::Exit;
use crate::pages::ServerFlags;

/// Looks whether a tree is well, before and after each change: its tasks, and the files that they are configured by (role: see).
///
/// A line for each check, with what to do about what it has found. Exit 0: all is well; 1: a fault, that is somebody is not
/// served, or a promise is not kept; 2: warnings only.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Configurations that are validated and compared: that of the root first, and then those of nodes below
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Rules of access that are validated
    #[arg(long, value_name = "FILE")]
    access: Vec<PathBuf>,
    /// Only the files: no server is asked
    #[arg(long)]
    offline: bool,
    /// In JSON
    #[arg(long)]
    json: bool,
    /// Ask each task that leads twice, so far apart, how long it has led: how fast its clock goes against that of this machine
    #[arg(long, value_name = "DURATION", value_parser = drift::apart, conflicts_with = "offline")]
    drift: Option<Duration>,
    /// All tasks of all nodes that are to be looked at
    #[command(flatten)]
    servers: ServerFlags,
    #[command(flatten)]
    etcd: DoctorEtcd,
}

/// The exit codes: somebody is not served, or a promise is not kept; and nothing worse than a warning.
const FAULT: u8 = 1;
const WARNINGS: u8 = 2;

// === impl Doctor ===

impl Doctor {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut outcomes = files::run(&self.config, &self.access);
        if !self.offline {
            let mut tasks = Vec::new();
            for server in &self.servers.server {
                tasks.push(self.look_at(server).await);
            }
            outcomes.extend(checks::run(&tasks));
            outcomes.extend(self.etcd.run().await?);
            if let Some(apart) = self.drift {
                outcomes.push(self.measure_drift(&tasks, apart).await);
            }
        }
        let severities = || outcomes.iter().flat_map(|outcome| &outcome.findings).map(|found| found.severity);
        let worst = severities().max();
        if self.json {
            let worst = worst.map(Severity::as_str);
            println!("{}", json!({"schema": 1, "worst": worst, "checks": outcomes}));
        } else {
            let lines: String = outcomes.iter().map(CheckOutcome::display).collect();
            print!("{lines}");
        }
        match worst {
            None => Ok(()),
            Some(Severity::Fault) => Err(Exit::silent(FAULT)),
            Some(Severity::Warning) => Err(Exit::silent(WARNINGS)),
        }
    }

    /// The facts that one task says of itself.
    async fn look_at(&self, server: &str) -> TaskFacts {
        match self.facts(server).await {
            Ok(facts) => facts,
            Err(error) => TaskFacts::away(server, format!("{error:#}")),
        }
    }

    /// The check of how fast the clocks of those that lead go, from two looks at each.
    async fn measure_drift(&self, tasks: &[TaskFacts], apart: Duration) -> CheckOutcome {
        let leading = || tasks.iter().filter(|task| task.leads()).map(|task| task.server.as_str());
        let mut first = Vec::new();
        for server in leading() {
            first.push(self.clock_of(server).await);
        }
        clock::sleep_until(clock::now() + apart).await;
        let mut pairs = Vec::new();
        for (server, first) in leading().zip(first) {
            pairs.push((server, first, self.clock_of(server).await));
        }
        drift::check(&pairs)
    }

    /// For how long a task has led, and when that was asked; none where it does not say so.
    async fn clock_of(&self, server: &str) -> Option<TaskClock> {
        let asked = clock::now();
        let page = self.servers.get(server, "/status?holders=0&resources=1").await.ok()?;
        let told = clock::now();
        let status: Value = serde_json::from_str(&page.wanted().ok()?).ok()?;
        let status = &status["status"];
        let (epoch, led) = (status["epoch"].as_u64()?, status["leading_seconds"].as_f64()?);
        Some(TaskClock { epoch, led, asked, told })
    }

    async fn facts(&self, server: &str) -> anyhow::Result<TaskFacts> {
        let asked = now();
        let health = self.servers.get(server, "/healthz").await?;
        // The date of an answer is of some moment between the two.
        let here = f64::midpoint(asked, now());
        let ready = self.servers.get(server, "/readyz").await?;
        let status =
            self.servers.get(server, "/status?holders=0&resources=1000&order=busiest").await?.wanted()?;
        let page = self.servers.get(server, "/metrics").await?.wanted()?;
        let date = health.date.and_then(|date| date.duration_since(SystemTime::UNIX_EPOCH).ok());
        let why =
            |page: &crate::pages::Page| (page.status != StatusCode::OK).then(|| page.text.trim().to_owned());
        Ok(TaskFacts {
            server: server.to_owned(),
            away: None,
            sick: why(&health),
            unready: why(&ready),
            status: serde_json::from_str::<Value>(&status)?,
            figures: figures(&page),
            asked_at: asked,
            ahead_seconds: date.map(|date| (date.as_secs_f64() - here).round()),
        })
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    clock::wall().since_epoch.as_secs_f64()
}
