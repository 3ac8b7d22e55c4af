//! The work for one gauge of which many clients want a unit each, and have one in turn: the processor time of a quantum, and of
//! the longest time that the node is held up, which is the time of one call of it.
//!
//! `cargo bench -p lessor-server --bench turns [-- CLIENTS...]`; it prints a line for each number of clients, once with clients
//! that listen on streams and once with clients that poll.

mod listener;

use std::time::Duration;

use lessor_proto::message::{Ask, Band, Down, Grant, Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer};
use lessor_server::repository::{Glob, Kind, Repository, Template};
use rustix::time::{ClockId, clock_gettime};

/// The time between two turns.
const QUANTUM: Duration = Duration::from_secs(5);
/// The quanta that are measured, after those in which everybody comes.
const QUANTA: u32 = 4;
/// One of so many clients has a unit.
const CROWD: usize = 10;
/// The goal of the longest call.
const GOAL: Duration = Duration::from_millis(2);

/// A client that wants one unit.
struct Client {
    name: String,
    peer: Option<Peer>,
    reports: u64,
    grant: Option<Grant>,
}

/// A gauge, those who want units of it, and a clock that goes as fast as they are served.
struct Pool {
    now: Time,
    node: Node,
    clients: Vec<Client>,
    total: Duration,
    longest: Duration,
    /// Calls that took longer than the goal.
    long: usize,
    grants: usize,
}

fn main() {
    let named: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let counts = if named.is_empty() { vec![1_000, 10_000, 50_000] } else { named };
    println!("goal: no call above {GOAL:?}");
    for count in counts {
        for listens in [true, false] {
            let mut pool = Pool::new(count, listens);
            pool.run(QUANTUM * 2);
            (pool.total, pool.longest, pool.long, pool.grants) = Default::default();
            pool.run(QUANTUM * QUANTA);
            let holding = pool.clients.iter().filter(|client| client.units() > 0).count();
            assert!(holding <= count / CROWD, "{holding} units are held of {}", count / CROWD);
            println!(
                "{count} clients that {}: {:.1} ms a quantum with {} grants, longest call {:.2} ms, {} above the goal; \
                 {holding} units are held",
                if listens { "listen" } else { "poll" },
                pool.total.as_secs_f64() * 1e3 / f64::from(QUANTA),
                pool.grants / QUANTA as usize,
                pool.longest.as_secs_f64() * 1e3,
                pool.long,
            );
        }
    }
}

/// The time that this thread has been on a processor.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("less than a second"))
}

fn resource() -> ResourceId {
    ResourceId::new("licences", 16).expect("a name")
}

// === impl Pool ===

impl Pool {
    fn new(count: usize, listens: bool) -> Pool {
        let template = Template {
            kind: Kind::Gauge,
            lease_length: Duration::from_secs(60),
            refresh_interval: QUANTUM,
            ..Template::new(Glob::new("*").expect("a glob"), Amount::from_units((count / CROWD) as u64))
        };
        let repository = Repository::new(vec![template]).expect("it holds together");
        let config = NodeConfig { clients_per_resource: count, ..NodeConfig::new("root", Epoch(1)) };
        let mut node = Node::new(Time::ZERO, config, repository);
        let now = Time::ZERO + Duration::from_secs(120);
        node.advance(now);
        let clients = (0..count).map(|number| {
            let name = format!("worker-{number}");
            let holder = ClientId::new(name.as_str(), 256).expect("a name");
            let hello = Hello::new(HolderKind::Client, holder, Incarnation(1));
            let peer = listens.then(|| node.connect(now, hello));
            Client { name, peer, reports: 0, grant: None }
        });
        let clients: Vec<Client> = clients.collect();
        let [total, longest] = [Duration::ZERO; 2];
        let mut pool = Pool { now, node, clients, total, longest, long: 0, grants: 0 };
        if listens {
            (0..count).for_each(|number| pool.say(number));
        }
        pool
    }

    /// A call of the node, which is timed.
    fn call<T>(&mut self, act: impl FnOnce(&mut Node, Time) -> T) -> T {
        let begin = thread_time();
        let done = act(&mut self.node, self.now);
        let took = thread_time() - begin;
        self.total += took;
        self.longest = self.longest.max(took);
        self.long += usize::from(took > GOAL);
        done
    }

    /// Everybody asks once in a quantum, or listens; and acknowledges what it is asked to.
    fn run(&mut self, time: Duration) {
        let (end, count) = (self.now + time, self.clients.len());
        let (mut number, every) = (0, QUANTUM / u32::try_from(count).expect("few clients"));
        let mut next = self.now + every;
        while self.now < end {
            while let Some(output) = self.call(Node::poll) {
                let Output::Send { peer, down } = output else { continue };
                self.call(|node, now| node.ready(now, peer));
                self.hear(peer, down);
            }
            let due = self.node.next_deadline().unwrap_or(Time::MAX);
            self.now = self.now.max(due.min(next));
            if self.now >= next {
                self.say(number);
                (number, next) = ((number + 1) % count, next + every);
            }
        }
    }

    fn hear(&mut self, peer: Peer, down: Down) {
        let Down::Grants(grants) = down else { return };
        let number = self.clients.iter().position(|client| client.peer == Some(peer)).expect("a client");
        let ack = grants.iter().any(|grant| grant.ack_wanted);
        self.grants += grants.len();
        self.clients[number].grant = grants.into_iter().last();
        if ack {
            self.say(number);
        }
    }

    fn say(&mut self, number: usize) {
        let client = &mut self.clients[number];
        client.reports += 1;
        let (id, report) = (ReportId(client.reports), client.report());
        let Some(peer) = client.peer else {
            let ask = Ask {
                kind: HolderKind::Client,
                holder: ClientId::new(client.name.as_str(), 256).expect("a name"),
                incarnation: Some(Incarnation(1)),
                report_id: Some(id),
                target_epoch: None,
                line: None,
                reports: vec![report],
            };
            let answer = self.call(|node, now| node.ask(now, &ask)).expect("it is asked well");
            self.grants += answer.grants.len();
            self.clients[number].grant = answer.grants.into_iter().next();
            if self.clients[number].grant.as_ref().is_some_and(|grant| grant.ack_wanted) {
                self.say(number);
            }
            return;
        };
        let up = Up::Report(StreamReport { id, target_epoch: None, renew_all: true, reports: vec![report] });
        self.call(|node, now| node.receive(now, peer, up));
    }
}

// === impl Client ===

impl Client {
    fn units(&self) -> u64 {
        self.grant.as_ref().map_or(0, |grant| grant.capacity.as_micros() / 1_000_000)
    }

    fn report(&self) -> Report {
        listener::report(resource(), Band { priority: 0, subclients: 1, wants: 1.0 }, self.grant.as_ref())
    }
}
