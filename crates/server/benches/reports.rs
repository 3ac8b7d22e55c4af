//! The work for reports of streams of one resource, which want a little more and a little less in turn: the processor time of one
//! in process, from the message to the answer, without a socket.
//!
//! `cargo bench -p lessor-server --bench reports [-- STREAMS...]`; it prints a line for each number of streams.

mod listener;

use std::collections::HashMap;
use std::time::Duration;

use lessor_proto::message::{Band, Down, Grant, Hello, HolderKind, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer};
use lessor_server::repository::{Glob, Repository, Template};
use rustix::time::{ClockId, clock_gettime};

/// The rounds in which each stream reports once; the first ones are not measured.
const ROUNDS: u64 = 12;
const FIRST: u64 = 4;
/// The wants of each, in units a second; the capacity is half of all of them.
const WANTS: f64 = 20.0;
/// The time between two reports of two streams.
const STEP: Duration = Duration::from_micros(10);

/// A client that listens.
struct Client {
    peer: Peer,
    wants: f64,
    reports: u64,
    grant: Option<Grant>,
}

/// A node, those who report to it, and a clock that goes on with each report.
struct Fleet {
    now: Time,
    node: Node,
    clients: Vec<Client>,
    by_peer: HashMap<Peer, usize>,
    /// The clients that have been granted something that is to be acknowledged.
    asked: Vec<usize>,
    grants: u64,
}

fn main() {
    let named: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let counts = if named.is_empty() { vec![1_000, 10_000, 100_000] } else { named };
    for count in counts {
        let mut fleet = Fleet::new(count);
        (0..FIRST).for_each(|_| fleet.round());
        let (before, grants) = (thread_time(), fleet.grants);
        (FIRST..ROUNDS).for_each(|_| fleet.round());
        let reports = count as u64 * (ROUNDS - FIRST);
        println!(
            "{count} streams: {:.2} microseconds of processor for a report and its answer; {} grants for {reports} reports",
            (thread_time() - before).as_secs_f64() / reports as f64 * 1e6,
            fleet.grants - grants,
        );
    }
}

/// The time that this thread has been on a processor.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("less than a second"))
}

// === impl Fleet ===

impl Fleet {
    fn new(count: usize) -> Fleet {
        let capacity = Amount::from_f64(count as f64 * WANTS / 2.0);
        let template =
            Template { learning: Duration::ZERO, ..Template::new(Glob::new("*").expect("a glob"), capacity) };
        let repository = Repository::new(vec![template]).expect("it holds together");
        let mut config = NodeConfig::new("root", Epoch(1));
        config.clients_per_resource = count + 10;
        let mut node = Node::new(Time::ZERO, config, repository);
        let connect = |number: usize| {
            let holder = ClientId::new(format!("client-{number}"), 256).expect("a name");
            let hello = Hello::new(HolderKind::Client, holder, Incarnation(number as u64 + 1));
            Client { peer: node.connect(Time::ZERO, hello), wants: WANTS, reports: 0, grant: None }
        };
        let clients: Vec<Client> = (0..count).map(connect).collect();
        let by_peer = clients.iter().enumerate().map(|(number, client)| (client.peer, number)).collect();
        let mut fleet = Fleet { now: Time::ZERO, node, clients, by_peer, asked: Vec::new(), grants: 0 };
        fleet.deliver();
        fleet
    }

    /// Each reports once, and acknowledges what it is asked to.
    fn round(&mut self) {
        for number in 0..self.clients.len() {
            let client = &mut self.clients[number];
            client.wants *= if client.reports.is_multiple_of(2) { 1.01 } else { 1.0 / 1.01 };
            self.report(number);
            while let Some(number) = self.asked.pop() {
                self.report(number);
            }
        }
    }

    fn report(&mut self, number: usize) {
        self.now += STEP;
        let client = &mut self.clients[number];
        client.reports += 1;
        let band = Band { priority: 0, subclients: 1, wants: client.wants };
        let resource = ResourceId::new("db", 256).expect("a name");
        let report = listener::report(resource, band, client.grant.as_ref());
        let id = ReportId(client.reports);
        let up = StreamReport { id, target_epoch: None, renew_all: true, reports: vec![report] };
        let peer = client.peer;
        self.node.receive(self.now, peer, Up::Report(up));
        self.deliver();
    }

    /// Takes all that there is to be sent, and every look that is due, as a driver does.
    fn deliver(&mut self) {
        loop {
            while let Some(output) = self.node.poll_said(self.now) {
                let Output::Send { peer, down } = output else { continue };
                self.node.ready(self.now, peer);
                let Down::Grants(grants) = down else { continue };
                for grant in grants {
                    let number = self.by_peer[&peer];
                    self.grants += 1;
                    self.asked.extend(grant.ack_wanted.then_some(number));
                    self.clients[number].grant = Some(grant);
                }
            }
            if !self.node.is_look_due(self.now) {
                return;
            }
            self.node.look_next(self.now);
        }
    }
}
