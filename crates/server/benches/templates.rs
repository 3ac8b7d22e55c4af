//! The work for a change of a template of which many clients listen to a resource: the processor time of the call that puts it
//! in force, during which the node does nothing else, and of the longest call after that, until everybody has been told.
//!
//! `cargo bench -p lessor-server --bench templates [-- CLIENTS...]`; it prints a line for each change.

mod listener;

use std::time::Duration;

use lessor_algorithms::SharePolicy;
use lessor_proto::message::{Band, Down, Grant, Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer};
use lessor_server::repository::{Glob, Repository, Template};
use rustix::time::{ClockId, clock_gettime};

/// A client that listens, and wants two units a second.
struct Client {
    reports: u64,
    grant: Option<Grant>,
}

/// A node, its clients by their peers, and the longest call of it.
struct Crowd {
    now: Time,
    node: Node,
    clients: std::collections::BTreeMap<Peer, Client>,
    longest: Duration,
    grants: usize,
}

fn main() {
    let named: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    for count in if named.is_empty() { vec![10_000, 100_000] } else { named } {
        let usual = template(count);
        let changes: [(&str, Template); 5] = [
            ("the same", usual.clone()),
            (
                "half the capacity",
                Template { capacity: Amount::from_units(count as u64 / 2), ..usual.clone() },
            ),
            ("a cap that cuts nobody", Template { most_priority: Some(9), ..usual.clone() }),
            ("a cap that cuts everybody", Template { most_priority: Some(0), ..usual.clone() }),
            ("another policy", Template { policy: SharePolicy::ProportionalShare, ..usual.clone() }),
        ];
        for (what, changed) in changes {
            let mut crowd = Crowd::new(count, usual.clone());
            crowd.rest();
            (crowd.longest, crowd.grants) = Default::default();
            let repository = Repository::new(vec![changed]).expect("it holds together");
            crowd.call(|node, now| node.reload(now, repository));
            let reload = std::mem::take(&mut crowd.longest);
            crowd.rest();
            println!(
                "{count} clients, {what}: {:.2} ms to put it in force, longest call after that {:.2} ms, {} grants",
                reload.as_secs_f64() * 1e3,
                crowd.longest.as_secs_f64() * 1e3,
                crowd.grants
            );
        }
    }
}

fn template(count: usize) -> Template {
    Template::new(Glob::new("*").expect("a glob"), Amount::from_units(count as u64))
}

/// The time that this thread has been on a processor.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("less than a second"))
}

// === impl Crowd ===

impl Crowd {
    fn new(count: usize, template: Template) -> Crowd {
        let repository = Repository::new(vec![template]).expect("it holds together");
        let config = NodeConfig { clients_per_resource: count, ..NodeConfig::new("root", Epoch(1)) };
        let mut node = Node::new(Time::ZERO, config, repository);
        let now = Time::ZERO + Duration::from_secs(120);
        node.advance(now);
        let connect = |number: usize| {
            let holder = ClientId::new(format!("web-{number}"), 256).expect("a name");
            let peer = node.connect(now, Hello::new(HolderKind::Client, holder, Incarnation(1)));
            (peer, Client { reports: 0, grant: None })
        };
        let clients: std::collections::BTreeMap<Peer, Client> = (0..count).map(connect).collect();
        let mut crowd = Crowd { now, node, clients, longest: Duration::ZERO, grants: 0 };
        let peers: Vec<Peer> = crowd.clients.keys().copied().collect();
        for peer in peers {
            crowd.say(peer);
        }
        crowd
    }

    /// A call of the node, which is timed.
    fn call<T>(&mut self, act: impl FnOnce(&mut Node, Time) -> T) -> T {
        let begin = thread_time();
        let done = act(&mut self.node, self.now);
        self.longest = self.longest.max(thread_time() - begin);
        done
    }

    /// Until everybody has been told, and nothing is due for a second.
    fn rest(&mut self) {
        let mut quiet = self.now + Duration::from_secs(1);
        loop {
            // As the driver of a server does it: one look at a time.
            self.call(Node::look_next);
            while let Some(output) = self.call(Node::poll_said) {
                quiet = self.now + Duration::from_secs(1);
                let Output::Send { peer, down } = output else { continue };
                self.call(|node, now| node.ready(now, peer));
                self.hear(peer, down);
            }
            if !self.node.is_look_due(self.now) {
                let due = self.node.next_deadline().unwrap_or(Time::MAX);
                if due > quiet {
                    return;
                }
                self.now = self.now.max(due);
            }
        }
    }

    fn hear(&mut self, peer: Peer, down: Down) {
        let Down::Grants(grants) = down else { return };
        self.grants += grants.len();
        let wanted = grants.iter().any(|grant| grant.ack_wanted);
        let client = self.clients.get_mut(&peer).expect("a client");
        client.grant = grants.into_iter().next_back().or(client.grant.take());
        if wanted {
            self.say(peer);
        }
    }

    fn say(&mut self, peer: Peer) {
        let client = self.clients.get_mut(&peer).expect("a client");
        client.reports += 1;
        let report = StreamReport {
            id: ReportId(client.reports),
            target_epoch: None,
            renew_all: false,
            reports: vec![client.report()],
        };
        self.call(|node, now| node.receive(now, peer, Up::Report(report)));
    }
}

// === impl Client ===

impl Client {
    fn report(&self) -> Report {
        listener::report(
            ResourceId::new("db", 16).expect("a name"),
            Band { priority: 5, subclients: 1, wants: 2.0 },
            self.grant.as_ref(),
        )
    }
}
