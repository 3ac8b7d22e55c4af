//! The memory that a holding costs: the growth of the resident set over a million of them, and what is left of it when all have
//! ended and a while has passed. The second filling shows that what an allocator keeps is used again.
//!
//! `cargo bench -p lessor-server --bench memory`; with the allocator of the program, `--bench memory_mimalloc`.

#[allow(dead_code, reason = "the decision bench uses the rest")]
mod population;

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::message::{Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer};
use lessor_server::token::{Key, TokenKeys};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use population::{Wants, ask, repository};

const HOLDINGS: usize = 1_000_000;
const PAGE: usize = 4096;
/// The time after which all leases have ended.
const LEASE: Duration = Duration::from_secs(120);
/// The time for which requests come when all have gone: an allocator that gives something back does so at work.
const WHILE: Duration = Duration::from_secs(3);

/// The kind of crowd that a child process measures.
const CROWD: &str = "LESSOR_BENCH_CROWD";

/// Those who hold.
#[derive(Clone, Copy)]
enum Crowd {
    /// Clients that poll, for one resource.
    Polling(Wants),
    /// Clients on streams, each for so many resources, with names that are too long for a place in the holding itself.
    Streaming(usize),
}

/// A node, and the streams that are open.
struct Crowded {
    node: Node,
    peers: Vec<Peer>,
}

pub(crate) fn main() {
    let polling = [Wants::Fixed, Wants::Uniform, Wants::Zipf].map(Crowd::Polling);
    let crowds = [&polling[..], &[Crowd::Streaming(1), Crowd::Streaming(10)]].concat();
    let asked = std::env::var(CROWD).ok();
    if let Some(crowd) = crowds.iter().find(|crowd| asked.as_deref() == Some(&crowd.name())) {
        return measure(*crowd);
    }
    // Each in a process of its own: what an allocator keeps of one would be missing in the next.
    let program = std::env::current_exe().expect("this program has a path");
    for crowd in crowds {
        let child = std::process::Command::new(&program).env(CROWD, crowd.name()).status();
        assert!(child.expect("it can be started").success(), "{} failed", crowd.name());
    }
}

fn measure(crowd: Crowd) {
    let mut crowded = Crowded::new();
    let before = resident();
    crowd.fill(&mut crowded, Time::ZERO);
    let full = resident();
    let later = Time::ZERO + LEASE;
    crowded.empty(later);
    let gone = resident();
    crowded.go_on(later);
    let left = resident();
    crowd.fill(&mut crowded, later + LEASE);
    let again = resident();
    println!(
        "{:12} bytes a holding: {:6.1} at {HOLDINGS}, {:6.1} kept when all have ended, {:6.1} a while later, {:6.1} filled again; \
         {} MB at the peak, {} MB a while later",
        crowd.name(),
        per_holding(full, before),
        per_holding(gone, before),
        per_holding(left, before),
        per_holding(again, before),
        full >> 20,
        left >> 20,
    );
}

// === impl Crowd ===

impl Crowd {
    fn name(self) -> String {
        match self {
            Crowd::Polling(wants) => wants.name().to_owned(),
            Crowd::Streaming(resources) => format!("streams/{resources}"),
        }
    }

    /// All of a million holdings are granted.
    fn fill(self, crowded: &mut Crowded, now: Time) {
        let mut dice = Pcg64::seed_from_u64(1);
        match self {
            Crowd::Polling(wants) => {
                for number in 0..HOLDINGS {
                    let ask = ask(number, wants.draw(&mut dice));
                    crowded.node.ask(now, &ask).expect("a template covers it");
                }
            }
            Crowd::Streaming(resources) => {
                let names: Vec<ResourceId> = (0..resources).map(resource).collect();
                for number in 0..HOLDINGS / resources {
                    let reports = names.iter().map(|name| Report {
                        resource: name.clone(),
                        ..ask(number, Wants::Uniform.draw(&mut dice)).reports.remove(0)
                    });
                    crowded.open(now, number, reports.collect());
                }
            }
        }
    }
}

// === impl Crowded ===

impl Crowded {
    fn new() -> Crowded {
        let config =
            NodeConfig { keys: Some(TokenKeys::new(Key::new([7; 32]))), ..NodeConfig::new("root", Epoch(1)) };
        let capacity = Amount::from_units(10_000_000);
        Crowded { node: Node::new(Time::ZERO, config, repository(capacity)), peers: Vec::new() }
    }

    /// A client opens a stream and asks for all that it wants.
    fn open(&mut self, now: Time, number: usize, reports: Vec<Report>) {
        let holder = ClientId::new(format!("checkout-7d9f8b6c5d-{number:07}"), 256).expect("a name");
        let hello = Hello::new(HolderKind::Client, holder, Incarnation(number as u64));
        let peer = self.node.connect(now, hello);
        self.peers.push(peer);
        let report = StreamReport { id: ReportId(1), target_epoch: None, renew_all: false, reports };
        self.node.receive(now, peer, Up::Report(report));
        self.send(now);
    }

    /// All that is to be sent is on its way.
    fn send(&mut self, now: Time) {
        while let Some(output) = self.node.poll(now) {
            if let Output::Send { peer, .. } = output {
                self.node.ready(now, peer);
            }
        }
    }

    /// Everybody goes, and all leases end.
    fn empty(&mut self, now: Time) {
        for peer in std::mem::take(&mut self.peers) {
            self.node.disconnect(now, peer);
        }
        self.send(now);
        self.node.advance(now);
    }

    /// A while passes, with a few clients that ask.
    fn go_on(&mut self, now: Time) {
        let (until, mut number) = (clock::now() + WHILE, 0);
        while clock::now() < until {
            self.node.ask(now, &ask(number % 10, 1.0)).expect("a template covers it");
            number += 1;
        }
        self.node.advance(now);
    }
}

fn resource(number: usize) -> ResourceId {
    ResourceId::new(format!("db-{number}"), 256).expect("a name")
}

fn per_holding(now: usize, before: usize) -> f64 {
    now.saturating_sub(before) as f64 / HOLDINGS as f64
}

/// In bytes, as the system counts it.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("the second number is the resident set") * PAGE
}
