//! One of the processes: some clients that want now this and now that, and write down what they believe.

use std::time::Duration;

use lessor_client::limiter::Limiter;
use lessor_client::shell::clock;
use lessor_client::{Client, Resource};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// The first argument of such a process. Then come the server, its number, how many clients, and a seed.
pub(crate) const CALL: &str = "clients";
/// Somebody wants something else so often.
const PACE: Duration = Duration::from_millis(100);
/// On the average twice of what everybody is due.
const MOST_WANTED: f64 = 20.0;

/// The clock of leases, in nanoseconds.
struct Boottime;

impl FormatTime for Boottime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", clock::now().as_nanos())
    }
}

/// Until it is killed.
pub(crate) async fn run(arguments: &[String]) {
    let [server, process, clients, seed] = arguments else { panic!("four arguments: {arguments:?}") };
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
    let mut open: Vec<(Client, Resource<Limiter>)> = Vec::new();
    for number in 0..clients.parse().unwrap() {
        let client = Client::builder(server).id(format!("client-{process}-{number}")).build().unwrap();
        let queries = client.rate("db").wants(dice.random_range(0.0..MOST_WANTED)).open().unwrap();
        open.push((client, queries));
    }
    let mut timer = tokio::time::interval(PACE);
    loop {
        timer.tick().await;
        let (_, queries) = open.choose(&mut dice).unwrap();
        queries.set_wants(dice.random_range(0.0..MOST_WANTED));
    }
}
