//! Units that go round among those who poll, while somebody of a higher priority is short of one.

use std::time::Duration;

use lessor_proto::message::{Ask, Grant, Has, HolderKind};
use lessor_proto::{ClientId, Incarnation, ReportId, Time};
use lessor_server::node::Node;
use lessor_sim::mutation::Mutation;

use super::hall;

/// The seconds between two turns: the refresh interval, as nothing else is said.
const QUANTUM: u64 = 5;

/// A client that polls, and keeps to what it was granted last.
struct Poller {
    name: &'static str,
    priority: i64,
    grant: Option<Grant>,
    reports: u64,
}

/// Three take turns for two units, and who holds none always asks as soon as one is given back. Then somebody of a higher
/// priority wants one of them, and asks once in a quantum, at any time of it.
pub(crate) fn of_a_lower_priority(without: Option<Mutation>) -> Option<String> {
    let most = (0..QUANTUM).map(|phase| asks_in_vain(without, phase)).max();
    most.filter(|&most| most > 1)
        .map(|most| format!("who wants one of two units with a higher priority asks {most} times in vain"))
}

fn asks_in_vain(without: Option<Mutation>, phase: u64) -> u64 {
    let mut node = hall::first(without, 2);
    node.reload(Time::ZERO, hall::gauge(2));
    let mut low = ["ann", "bob", "cid"].map(|name| Poller::new(name, 0));
    let (mut high, mut asked) = (Poller::new("high", 1), 0);
    for second in 0..20 * QUANTUM {
        let now = Time::ZERO + Duration::from_secs(second);
        low.sort_by_key(|client| client.units() == 0);
        for client in &mut low {
            client.poll(&mut node, now);
        }
        if second >= 10 * QUANTUM && second % QUANTUM == phase {
            high.poll(&mut node, now);
            if high.units() == 1 {
                return asked;
            }
            asked += 1;
        }
    }
    asked
}

// === impl Poller ===

impl Poller {
    fn new(name: &'static str, priority: i64) -> Poller {
        Poller { name, priority, grant: None, reports: 0 }
    }

    fn units(&self) -> u64 {
        self.grant.as_ref().map_or(0, |grant| grant.capacity.as_micros() / 1_000_000)
    }

    fn poll(&mut self, node: &mut Node, now: Time) {
        self.reports += 1;
        let report = hall::Report { wants: 1.0, priority: self.priority, ..hall::Report::default() };
        let mut told = report.told();
        told.held = self.grant.as_ref().map(|grant| grant.capacity);
        told.has = self.grant.as_ref().map(|grant| Has {
            capacity: grant.capacity,
            order: grant.order,
            token: grant.token.clone(),
            lasts: None,
        });
        let ask = Ask {
            kind: HolderKind::Client,
            holder: ClientId::new(self.name, 16).expect("a name"),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(self.reports)),
            target_epoch: None,
            line: None,
            reports: vec![told],
        };
        let answer = node.ask(now, &ask).expect("it is asked well");
        if let Some(grant) = answer.grants.into_iter().next() {
            self.grant = Some(grant);
        }
    }
}
