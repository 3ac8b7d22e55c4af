//! A process of clients that want now this and now that, and write down what they believe: a test starts it by calling
//! its own program with [`CALL`].

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::{Builder, Client, Rate};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// The first argument of such a process. Then comes what it is, in JSON.
pub(crate) const CALL: &str = "clients";

/// The description of such a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Clients {
    /// All tasks of their node.
    pub(crate) servers: String,
    /// With what their ids begin.
    pub(crate) name: String,
    /// The number of clients.
    pub(crate) clients: usize,
    pub(crate) seed: u64,
    /// Somebody wants something else so often.
    pub(crate) pace: Duration,
    /// The range of what one may want.
    pub(crate) wants: Range<f64>,
}

/// The clock of leases, in nanoseconds.
struct Boottime;

impl FormatTime for Boottime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", clock::now().as_nanos())
    }
}

// === impl Clients ===

impl Clients {
    /// A process that writes its diary there, and ends when dropped.
    pub(crate) fn start(&self, diary: &Path) -> Child {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([CALL, &serde_json::to_string(self).unwrap()])
            .stdin(Stdio::null())
            .stdout(File::create(diary).unwrap())
            .kill_on_drop(true)
            .spawn();
        child.unwrap()
    }

    /// Runs such a process until it is killed.
    pub(crate) async fn run(arguments: &[String]) {
        let [clients] = arguments else { panic!("one argument: {arguments:?}") };
        let clients: Clients = serde_json::from_str(clients).unwrap();
        write_down();
        let mut dice = Pcg64::seed_from_u64(clients.seed);
        let servers: Vec<&str> = clients.servers.split(',').collect();
        let mut open: Vec<(Client, Rate)> = Vec::new();
        for number in 0..clients.clients {
            let builder = Client::builder(servers[0]).id(format!("{}-{number}", clients.name));
            let client = servers[1..].iter().fold(builder, Builder::server);
            let client = client.build().unwrap();
            let queries = client.rate("db").wants(dice.random_range(clients.wants.clone())).open().unwrap();
            open.push((client, queries));
        }
        let mut timer = tokio::time::interval(clients.pace);
        loop {
            timer.tick().await;
            let (_, queries) = open.choose(&mut dice).unwrap();
            queries.set_wants(dice.random_range(clients.wants.clone()));
        }
    }
}

/// Writes logs to standard output. A client logs its allowance when its limiter has just been told. A line is
/// one write.
fn write_down() {
    let filter = "off,lessor_client::shell::driver=debug,lessor_client::shell::client=info";
    tracing_subscriber::fmt()
        .json()
        .with_timer(Boottime)
        .with_env_filter(EnvFilter::new(filter))
        .with_span_list(false)
        .with_writer(std::io::stdout)
        .init();
}
