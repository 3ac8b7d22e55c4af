//! Streams over loopback, against a bare bidirectional tonic echo of the same messages in the same run: opening them, a few at
//! a time and all at once, heartbeats and reports a second, what an idle one costs, pushes, what a unary caller waits in a
//! storm of them, and how soon one that wants its share has it. Each server is a process of
//! its own, so that processor time and memory are those of the server.
//!
//! `cargo bench -p lessor-server --bench streams [-- STREAMS... seconds=TURN connections=C]`, 1,000 and 10,000 streams without a
//! number, over ten connections. Heartbeats go round for that long in each turn, two seconds without a number.

mod fleet;
mod server;
mod storm;

use std::time::Duration;

use lessor_client::internals::clock;

use fleet::{Fleet, Orders, Size};
use server::{Child, Kind};

/// The time for which reports go round in one turn if nothing else is said, and the turns of each server.
const TURN: Duration = Duration::from_secs(2);
const TURNS: usize = 3;
/// The connections that all streams share if nothing else is said.
const CONNECTIONS: usize = 10;
/// The time for which idle clients are looked at: two heartbeats each.
const IDLE_TURN: Duration = Duration::from_secs(10);
/// The wants of everybody, in units a second; the capacity is half of that for each.
pub(crate) const WANTS: f64 = 20.0;

#[tokio::main]
async fn main() {
    if let Some(kind) = Kind::of_this_process() {
        return server::run(kind).await;
    }
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let turn = setting("seconds=").map_or(TURN, Duration::from_secs);
    let connections = setting("connections=").map_or(CONNECTIONS, |number| number as usize);
    let sizes = if sizes.is_empty() { vec![1_000, 10_000] } else { sizes };
    println!("{:<44} {:>12} {:>12} {:>7}", "", "echo", "lessor", "ratio");
    for streams in sizes {
        let size = Size { streams, connections: connections.min(streams) };
        beside_an_echo(size, turn).await;
        herd(size).await;
        in_a_storm(size, turn).await;
    }
}

/// The number that the command line gives after `name`.
fn setting(name: &str) -> Option<u64> {
    std::env::args().find_map(|word| word.strip_prefix(name)?.parse().ok())
}

/// Opening, rounds of messages, and silence: the echo and ours in turn.
async fn beside_an_echo(size: Size, turn: Duration) {
    let streams = size.streams;
    let (echo, ours) = (Child::start(Kind::Echo, streams), Child::start(Kind::Lessor, streams));
    let (mut peer, opened_peer) = open(&echo, size).await;
    let (mut own, opened) = open(&ours, size).await;
    row(streams, "opened, ms of processor each", opened_peer.processor, opened.processor);
    row(streams, "memory, KB each", opened_peer.memory, opened.memory);
    let mut pair = [(&mut peer, &echo), (&mut own, &ours)];
    for (what, orders) in [("heartbeats", Orders::Beat), ("reports of other wants", Orders::Report)] {
        let rounds = go_round(&mut pair, orders, turn).await;
        row(streams, &format!("{what} a second, closed loop"), rounds[0].rate, rounds[1].rate);
        row(streams, "microseconds of processor for each", rounds[0].cost, rounds[1].cost);
    }
    let mut cores = [0.0; 2];
    for (cores, (fleet, child)) in cores.iter_mut().zip(&mut pair) {
        let (before, start) = (child.cpu(), clock::now());
        fleet.run(Orders::Idle, IDLE_TURN).await;
        *cores = (child.cpu() - before) / clock::now().since(start).as_secs_f64();
    }
    row(streams, "cores, a heartbeat each 5 s", cores[0], cores[1]);
    for (whose, (ended, unanswered)) in [("echo", peer.faults()), ("lessor", own.faults())] {
        println!("{streams:>7} {whose}: {ended} streams ended, {unanswered} heartbeats unanswered");
    }
}

/// Pushes to all and what one caller waits meanwhile; how long turns of the lock are, and how soon one is fed.
async fn in_a_storm(size: Size, turn: Duration) {
    let streams = size.streams;
    let ours = Child::start(Kind::Metered, streams);
    let (mut own, _) = open(&ours, size).await;
    own.run(Orders::Beat, turn).await;
    turns(streams, "so far", &ours).await;
    let calm = storm::calm(ours.address()).await;
    let (before, start, grants) = (ours.cpu(), clock::now(), own.grants());
    let rough = storm::storm(ours.address(), streams).await;
    let (pushed, took) = ((own.grants() - grants) as f64, clock::now().since(start).as_secs_f64());
    println!(
        "{streams:>7} pushed in a storm: {:.0} a second, {:.1} microseconds of processor for each with its acknowledgement",
        pushed / took,
        (ours.cpu() - before) / pushed * 1e6
    );
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

/// The cost of opening a stream.
struct Opened {
    /// In seconds, for all of them.
    took: f64,
    /// In milliseconds of processor, for each.
    processor: f64,
    /// In kilobytes, for each.
    memory: f64,
}

/// A closed loop: answers a second, and microseconds of processor for each.
#[derive(Clone, Copy, Default)]
struct Rounds {
    rate: f64,
    cost: f64,
}

/// Opens the streams, some at a time, until everybody has had its share.
async fn open(child: &Child, size: Size) -> (Fleet, Opened) {
    opened(child, size, Fleet::open(child.address(), size)).await
}

/// The cost until all of `opening` stand and everybody has had its share.
async fn opened(child: &Child, size: Size, opening: impl Future<Output = Fleet>) -> (Fleet, Opened) {
    let streams = size.streams;
    let (cpu, memory, start) = (child.cpu(), child.memory(), clock::now());
    let fleet = opening.await;
    if child.grants() {
        fleet.fed(streams).await;
    }
    let took = clock::now().since(start).as_secs_f64();
    let processor = (child.cpu() - cpu) * 1e3 / streams as f64;
    (fleet, Opened { took, processor, memory: (child.memory() - memory) / 1024.0 / streams as f64 })
}

/// The echo and ours in turn, each as ordered.
async fn go_round(pair: &mut [(&mut Fleet, &Child); 2], orders: Orders, turn: Duration) -> [Rounds; 2] {
    let mut rounds = [Rounds::default(); 2];
    for _ in 0..TURNS {
        for (rounds, (fleet, child)) in rounds.iter_mut().zip(pair.iter_mut()) {
            let (before, start) = (child.cpu(), clock::now());
            let answers = fleet.run(orders, turn).await as f64;
            rounds.rate += answers / clock::now().since(start).as_secs_f64() / TURNS as f64;
            rounds.cost += (child.cpu() - before) / answers * 1e6 / TURNS as f64;
        }
    }
    rounds
}

/// All come at one moment to servers that have just begun, as after a restart.
async fn herd(size: Size) {
    let streams = size.streams;
    let (echo, ours) = (Child::start(Kind::Echo, streams), Child::start(Kind::Lessor, streams));
    let (peer, all_answered) = opened(&echo, size, Fleet::rush(echo.address(), size)).await;
    let (own, all_fed) = opened(&ours, size, Fleet::rush(ours.address(), size)).await;
    row(streams, "herd: all at once, seconds", all_answered.took, all_fed.took);
    row(streams, "herd: ms of processor each", all_answered.processor, all_fed.processor);
    println!(
        "{streams:>7} herd: {} grants to all; {} tries of the echo's and {} of ours failed",
        own.grants(),
        peer.failed_tries(),
        own.failed_tries()
    );
    drop((peer, own));
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
