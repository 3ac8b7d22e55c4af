//! The work for streams that hold much, for their heartbeats and for their ends: the processor time, and the longest time that the
//! node is held up, which is the time of one call of it.
//!
//! `cargo bench -p lessor-server --bench heartbeats [-- RESOURCES...]`; it prints a line for each number of resources on one
//! stream, which sends a hundred heartbeats in a row, as no client does.

use std::time::Duration;

use lessor_proto::message::{Band, Down, Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer};
use lessor_server::repository::{Glob, Repository, Template};
use rustix::time::{ClockId, clock_gettime};

/// Heartbeats in a row.
const ROW: u64 = 100;
/// The goal of the longest call.
const GOAL: Duration = Duration::from_millis(2);

/// A node, and a clock that goes as fast as it is served.
struct Served {
    now: Time,
    node: Node,
    total: Duration,
    longest: Duration,
    renewals: usize,
}

/// The way in which a stream ends.
#[derive(Clone, Copy)]
enum End {
    Breaks,
    Leaves,
}

fn main() {
    let named: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let counts = if named.is_empty() { vec![1, 100, 1_000, 20_000] } else { named };
    println!("goal: no call above {GOAL:?}");
    for count in counts {
        let served = Served::beaten(count);
        println!(
            "{count} resources: {ROW} heartbeats are {} renewals and {:.2} ms, longest call {:.3} ms",
            served.renewals,
            served.total.as_secs_f64() * 1e3,
            served.longest.as_secs_f64() * 1e3,
        );
        for (end, name) in [(End::Breaks, "the stream breaks"), (End::Leaves, "all is given back")] {
            let ended = Served::ended(count, end);
            println!(
                "{count} resources: {name}, {:.2} ms, longest call {:.3} ms",
                ended.total.as_secs_f64() * 1e3,
                ended.longest.as_secs_f64() * 1e3,
            );
        }
    }
}

/// The time that this thread has been on a processor.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("less than a second"))
}

// === impl Served ===

impl Served {
    /// A stream of so many resources, each of which it has been granted.
    fn holding(count: usize) -> (Served, Peer) {
        let template = Template {
            learning: Duration::ZERO,
            ..Template::new(Glob::new("*").expect("a glob"), Amount::from_units(100))
        };
        let repository = Repository::new(vec![template]).expect("it holds together");
        let config = NodeConfig { resources_per_stream: count, ..NodeConfig::new("root", Epoch(1)) };
        let mut node = Node::new(Time::ZERO, config, repository);
        let holder = ClientId::new("greedy", 256).expect("a name");
        let hello = Hello::new(HolderKind::Client, holder, Incarnation(1));
        let peer = node.connect(Time::ZERO, hello);
        let report = |number: usize| {
            Report::new(
                ResourceId::new(format!("resource/{number}"), 256).expect("a name"),
                [Band { priority: 0, subclients: 1, wants: 10.0 }],
            )
        };
        let reports = (0..count).map(report).collect();
        node.receive(
            Time::ZERO,
            peer,
            Up::Report(StreamReport { id: ReportId(1), target_epoch: None, renew_all: false, reports }),
        );
        let [total, longest] = [Duration::ZERO; 2];
        let mut served = Served { now: Time::ZERO, node, total, longest, renewals: 0 };
        served.all();
        (served.total, served.longest, served.renewals) = Default::default();
        (served, peer)
    }

    /// One that has ended.
    fn ended(count: usize, end: End) -> Served {
        let (mut served, peer) = Served::holding(count);
        served.call(|node, now| match end {
            End::Breaks => node.disconnect(now, peer),
            End::Leaves => node.receive(now, peer, Up::Bye),
        });
        served.all();
        served
    }

    /// One that has sent its heartbeats, each a hundredth of a second after the one before.
    fn beaten(count: usize) -> Served {
        let (mut served, peer) = Served::holding(count);
        for id in 2..ROW + 2 {
            served.now += Duration::from_millis(10);
            let beat =
                StreamReport { id: ReportId(id), target_epoch: None, renew_all: true, reports: Vec::new() };
            served.call(|node, now| node.receive(now, peer, Up::Report(beat)));
            served.all();
        }
        served
    }

    /// A call of the node, which is timed.
    fn call<T>(&mut self, act: impl FnOnce(&mut Node, Time) -> T) -> T {
        let begin = thread_time();
        let done = act(&mut self.node, self.now);
        let took = thread_time() - begin;
        self.total += took;
        self.longest = self.longest.max(took);
        done
    }

    /// Takes all that there is to be sent, and every look that is due, as a driver does: one look in a turn.
    fn all(&mut self) {
        loop {
            while let Some(output) = self.call(Node::poll_said) {
                let Output::Send { peer, down } = output else { continue };
                self.renewals += usize::from(matches!(down, Down::Renewed { .. }));
                self.call(|node, now| node.ready(now, peer));
            }
            if !self.node.is_look_due(self.now) {
                return;
            }
            self.call(Node::look_next);
        }
    }
}
