//! One of the processes: some clients that want now this and now that, and write down what they believe.

use std::time::Duration;

use lessor_client::limiter::Limiter;
use lessor_client::shell::{Builder, clock};
use lessor_client::{Client, Resource};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// The first argument of such a process. Then come the tasks of its node, its name, how many clients, and a seed.
pub(crate) const CALL: &str = "clients";
/// Somebody wants something else so often.
const PACE: Duration = Duration::from_millis(250);
/// What one may want: never nothing, so that nobody is ever rightly without a lease.
const WANTS: std::ops::Range<f64> = 1.0..20.0;

/// The clock of leases, in nanoseconds.
struct Boottime;

impl FormatTime for Boottime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", clock::now().as_nanos())
    }
}

/// Until it is killed.
pub(crate) async fn run(arguments: &[String]) {
    let [servers, process, clients, seed] = arguments else { panic!("four arguments: {arguments:?}") };
    let mut dice = Pcg64::seed_from_u64(seed.parse().unwrap());
    // What a client logs of its allowance it logs when its limiter has just been told. A line is one write.
    tracing_subscriber::fmt()
        .json()
        .with_timer(Boottime)
        .with_env_filter(EnvFilter::new(
            "off,lessor_client::shell::driver=debug,lessor_client::shell::client=info",
        ))
        .with_span_list(false)
        .with_writer(std::io::stdout)
        .init();
    let servers: Vec<&str> = servers.split(',').collect();
    let mut open: Vec<(Client, Resource<Limiter>)> = Vec::new();
    for number in 0..clients.parse().unwrap() {
        let builder = Client::builder(servers[0]).id(format!("{process}-{number}"));
        let client = servers[1..].iter().fold(builder, Builder::server);
        let client = client.build().unwrap();
        let queries = client.rate("db").wants(dice.random_range(WANTS)).open().unwrap();
        open.push((client, queries));
    }
    let mut timer = tokio::time::interval(PACE);
    loop {
        timer.tick().await;
        let (_, queries) = open.choose(&mut dice).unwrap();
        queries.set_wants(dice.random_range(WANTS));
    }
}
