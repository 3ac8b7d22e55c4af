//! Streams over loopback, against a bare bidirectional tonic echo of the same messages in the same run: opening them,
//! reports a second, what one costs in memory, what a unary caller waits in a storm of pushes, and how soon one that wants
//! its share has it. Each server is a process of
//! its own, so that processor time and memory are those of the server.
//!
//! `cargo bench -p lessor-server --bench streams [-- STREAMS... seconds=TURN]`, 1,000 and 10,000 streams without a number. Heartbeats
//! go round for that long in each turn, two seconds without a number.

mod fleet;
mod server;
mod storm;

use std::time::Duration;

use lessor_client::internals::clock;

use fleet::Fleet;
use server::{Child, Kind};

/// The time for which reports go round in one turn if nothing else is said, and the turns of each server.
const TURN: Duration = Duration::from_secs(2);
const TURNS: usize = 3;
/// The wants of everybody, in units a second; the capacity is half of that for each.
pub(crate) const WANTS: f64 = 20.0;

#[tokio::main]
async fn main() {
    if let Some(kind) = Kind::of_this_process() {
        return server::run(kind).await;
    }
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let turn = std::env::args().find_map(|word| word.strip_prefix("seconds=")?.parse().ok());
    let turn = turn.map_or(TURN, Duration::from_secs);
    let sizes = if sizes.is_empty() { vec![1_000, 10_000] } else { sizes };
    println!("{:<44} {:>12} {:>12} {:>7}", "", "echo", "lessor", "ratio");
    for streams in sizes {
        let (echo, ours) = (Child::start(Kind::Echo, streams), Child::start(Kind::Lessor, streams));
        let (mut peer, opened_peer) = open(&echo, streams).await;
        let (mut own, opened) = open(&ours, streams).await;
        row(streams, "opened, ms of processor each", opened_peer.0, opened.0);
        row(streams, "memory, KB each", opened_peer.1, opened.1);
        let (mut rates, mut costs) = ([0.0; 2], [0.0; 2]);
        for _ in 0..TURNS {
            for (which, (fleet, child)) in [(&mut peer, &echo), (&mut own, &ours)].into_iter().enumerate() {
                let (before, start) = (child.cpu(), clock::now());
                let answers = fleet.run(turn).await as f64;
                rates[which] += answers / clock::now().since(start).as_secs_f64() / TURNS as f64;
                costs[which] += (child.cpu() - before) / answers * 1e6 / TURNS as f64;
            }
        }
        row(streams, "heartbeats a second, closed loop", rates[0], rates[1]);
        row(streams, "microseconds of processor for each", costs[0], costs[1]);
        for (whose, (ended, unanswered)) in [("echo", peer.faults()), ("lessor", own.faults())] {
            println!("{streams:>7} {whose}: {ended} streams ended, {unanswered} heartbeats unanswered");
        }
        drop((peer, echo, own, ours));
        let ours = Child::start(Kind::Metered, streams);
        let (mut own, _) = open(&ours, streams).await;
        own.run(turn).await;
        turns(streams, "so far", &ours).await;
        let (calm, rough) = (storm::calm(ours.address()).await, storm::storm(ours.address(), streams).await);
        for (when, calls) in [("calm", calm), ("a storm", rough)] {
            let storm::Calls { median, p99, longest } = calls;
            println!(
                "{streams:>7} unary calls in {when}, ms: median {median:.2}, p99 {p99:.2}, longest {longest:.2}"
            );
        }
        turns(streams, "by now", &ours).await;
        let fed = own.starve(streams).await;
        let (ended, unanswered) = own.faults();
        println!(
            "{streams:>7} one at 0.4 of its share that triples its wants: {:.1} ms, {} grants to all",
            fed.took * 1e3,
            fed.grants
        );
        println!("{streams:>7} lessor: {ended} streams ended, {unanswered} heartbeats unanswered");
    }
}

/// Opens so many streams. Returns milliseconds of processor and kilobytes of memory for each.
async fn open(child: &Child, streams: usize) -> (Fleet, (f64, f64)) {
    let (cpu, memory) = (child.cpu(), child.memory());
    let fleet = Fleet::open(child.address(), streams).await;
    if child.grants() {
        fleet.fed(streams).await;
    }
    let cost = (child.cpu() - cpu) * 1e3 / streams as f64;
    (fleet, (cost, (child.memory() - memory) / 1024.0 / streams as f64))
}

/// Prints for how long the lock was held at once.
async fn turns(streams: usize, when: &str, server: &Child) {
    for (what, metric) in [("", "lessor_turn_seconds"), (" of processor", "lessor_turn_metered_seconds")] {
        let bounds = storm::turns(server.address(), metric).await;
        println!("{streams:>7} turns {when}, no longer than seconds{what}: {bounds}");
    }
}

fn row(streams: usize, what: &str, echo: f64, ours: f64) {
    println!("{streams:>7} {what:<36} {echo:>12.2} {ours:>12.2} {:>7.2}", ours / echo);
}
